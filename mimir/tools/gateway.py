"""The gateway: every tool call of every agent passes these stages, in this order.

    known name → permission → valid arguments → quota → intent → execution → redaction → outcome

A call that one of the first four refuses is recorded like any other; it had no effect. A failing tool never ends a run: its failure
becomes a text for the model. A recorded result is served again. The tree of the workspace is recorded after each effect.
"""

import hashlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace

from mimir.domain.agent import ASK_TOOL, NAMED_TOOLS
from mimir.domain.call_outcome import CallOutcome, Transcript, encode_result, read_result
from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec
from mimir.domain.question import NewQuestion
from mimir.domain.quoted_text import list_names, nearest, quote_text, storable
from mimir.domain.value_class import value_class
from mimir.errors import MimirError, StoreError, ToolError
from mimir.tools.calls import arguments
from mimir.tools.calls.arguments import ToolArguments
from mimir.tools.calls.failures import CallDenied, failure, pause_if_full
from mimir.tools.permissions import not_granted
from mimir.tools.protocol import Toolset
from mimir.tools.wrappers.quota import CallQuota

Snapshot = Callable[[], Awaitable[str]]
"""Returns the id of the workspace's tree."""

MAX_RESULT_CHARS = 60_000
"""Limit for tools that do not limit their own text."""
MAX_RECORDED_CHARS = 1_000_000
"""Longer arguments are recorded by their start, length and hash; they are refused anyway."""
TITLE_CHARS = 80


@value_class
class _CallDecision:
    """The decision on a call, made before anything is executed."""

    refusal: ToolResult | None = None
    """None: the call is admitted."""
    effectful: bool = False
    """False for a read and for a refused call."""
    title: str = ""
    """A few words for display, without secrets."""
    question: NewQuestion | None = None
    """Question that the call asks the user. None: it asks none."""


class Gateway:
    """The tools of one agent in one attempt."""

    def __init__(
        self,
        toolsets: Sequence[Toolset],
        *,
        granted: Collection[str],
        transcript: Transcript,
        snapshot: Snapshot | None = None,
        redact: Callable[[str], str],
        why: Callable[[str], str] = not_granted,
        quota: CallQuota | None = None,
        base_tree: str = "",
        ask: Callable[[ToolArguments], NewQuestion] | None = None,
    ) -> None:
        """Put the stages around the tools.

        Args:
            toolsets: The tools; the first toolset with a name serves it.
            granted: Names of permitted tools; only these are described to the model.
            transcript: Records the calls, and serves recorded results.
            snapshot: Awaited after each effect. None: no workspace tree is recorded.
            redact: Removes secrets from results, arguments and titles before they are recorded or shown.
            why: Returns the reason for a name that is not granted.
            quota: Limits of single tools; None: no limit.
            base_tree: The workspace's tree before the first call.
            ask: Returns the question of a call of `ask_user`. None: the agent cannot ask.
        """
        # Reversed, so that the first toolset with a name wins.
        self._owners = {s.name: (t, s) for t in reversed(toolsets) for s in t.specs}
        self._granted = frozenset(granted)
        permitted = (spec for _, spec in self._owners.values() if spec.name in self._granted)
        self.specs: Sequence[ToolSpec] = tuple(sorted(permitted, key=_prompt_order))
        self._transcript = transcript
        self._snapshot = snapshot
        self._redact = redact
        self._why = why
        self._quota = quota or CallQuota({})
        self._tree = base_tree
        self._ask = ask

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        """Execute one call, or serve its recorded result."""
        # Nothing is awaited before the call's place in the transcript is taken.
        decision = self._decide(call)

        async def work() -> CallOutcome:
            result = decision.refusal or await self._execute(call, context)
            tree = await self._take_snapshot() if decision.effectful else ""
            return CallOutcome(value=encode_result(result), tree=tree)

        # Redacted before it is stored: the store must hold no secret.
        request = {
            "tool": _shorten(self._redact(storable(call.name))),
            "arguments": _shorten(self._redact(storable(call.arguments))),
        }
        if decision.question is not None:
            outcome = await self._transcript.ask(request, decision.question, title=decision.title)
        else:
            outcome = await self._transcript.call(
                "tool", request, request, work, effectful=decision.effectful, title=decision.title
            )
        # A read leaves the tree of the last effect.
        self._tree = outcome.tree or self._tree
        try:
            return replace(read_result(outcome.value), tree=self._tree)
        except ValueError as error:
            raise StoreError(f"A recorded tool result is invalid: {error}.") from None

    def _decide(self, call: ToolCall) -> _CallDecision:
        """Decide on a call without waiting; the quota is taken here."""
        title = ""
        try:
            spec = self._require_tool(call.name)
            values = arguments.parse_arguments(call.arguments, spec)
            title = self._title(call.name, values.first)
            refused = self._quota.take(call.name)
            if refused is not None:
                raise CallDenied(refused, next_step=self._list_tools())
            # The transcript asks: question and intent are one transaction.
            question = self._ask(values) if self._ask and call.name == ASK_TOOL else None
        except ToolError as error:
            title = title or self._title(call.name)
            return _CallDecision(refusal=self._clean(failure(error)), title=title)
        return _CallDecision(effectful=not spec.read_only, title=title, question=question)

    async def _execute(self, call: ToolCall, context: CallContext) -> ToolResult:
        """Execute an admitted call; an exception becomes a result unless the engine must act."""
        toolset, _ = self._owners[call.name]
        try:
            result = await toolset.call(call, context)
        except ToolError as error:
            return self._clean(failure(error))
        except MimirError:
            raise
        except Exception as error:  # noqa: BLE001  the boundary of the tools: a bug in one must not end the run
            # A full disk is not a bug of the tool: the run can be resumed.
            pause_if_full(error)
            return self._describe_bug(call.name, error)
        return self._clean(result)

    async def _take_snapshot(self) -> str:
        if self._snapshot is None:
            return ""
        # A full disk pauses the run; another error of the disk is a bug.
        try:
            return await self._snapshot()
        except OSError as error:
            pause_if_full(error)
            raise

    def _require_tool(self, name: str) -> ToolSpec:
        """Return the description of a permitted tool, or raise a `ToolError`."""
        if name not in self._owners and name not in NAMED_TOOLS:
            near = nearest(name, [spec.name for spec in self.specs])
            raise ToolError(
                f"There is no tool {quote_text(name)}.{near}", next_step=self._list_tools()
            )
        if name not in self._granted:
            raise CallDenied(self._why(name), next_step=self._list_tools())
        if name not in self._owners:
            raise CallDenied(
                f"{quote_text(name)} is not there in this attempt.", next_step=self._list_tools()
            )
        return self._owners[name][1]

    def _list_tools(self) -> str:
        return f"Your tools: {list_names([spec.name for spec in self.specs], 30)}."

    def _describe_bug(self, tool: str, error: Exception) -> ToolResult:
        text = (
            f"Error: {tool} failed inside the engine ({type(error).__name__}); your call was not at fault, "
            "and it may have been done in part. Look at the result before you repeat it, or take another way."
        )
        return ToolResult(text=text, is_error=True)

    def _clean(self, result: ToolResult) -> ToolResult:
        # Redacted before it is cut: half of a secret would not be found.
        text = storable(self._redact(result.text))
        if len(text) > MAX_RESULT_CHARS:
            rest = len(text) - MAX_RESULT_CHARS
            text = f"{text[:MAX_RESULT_CHARS]}\n[{rest:,} more characters left out: ask for less at once]"
        return replace(result, text=text)

    def _title(self, tool: str, words: str = "") -> str:
        """Return the tool and its first argument on one short line."""
        # A long argument is cut twice: a whole file's text is not worth redacting for a title.
        plain = " ".join(self._redact(storable(f"{tool} {words[: 10 * TITLE_CHARS]}")).split())
        return quote_text(plain, TITLE_CHARS)[1:-1]


def _prompt_order(spec: ToolSpec) -> tuple[int, str]:
    # A fixed order keeps the bytes of every prompt equal, which providers cache.
    known = NAMED_TOOLS.index(spec.name) if spec.name in NAMED_TOOLS else len(NAMED_TOOLS)
    return known, spec.name


def _shorten(text: str) -> str:
    if len(text) <= MAX_RECORDED_CHARS:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{text[:1000]}… [{len(text)} characters, sha256 {digest}]"
