"""The gateway: every tool call of every agent passes these stages, in this order.

    known name → permission → valid arguments → quota → intent → execution → redaction → outcome

A call that one of the first four refuses is recorded like any other; it had no effect. A failing tool never ends a run: its failure
becomes a text for the model.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import InitVar, dataclass, field, replace

from mimir.domain.agent import ASK_TOOL, NAMED_TOOLS
from mimir.domain.call_outcome import Transcript
from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec
from mimir.domain.question import NewQuestion
from mimir.domain.quoted_text import list_names, nearest, quote_text, storable
from mimir.errors import MimirError, ToolError
from mimir.tools.calls import arguments
from mimir.tools.calls.arguments import ToolArguments
from mimir.tools.calls.failures import CallDenied, failure, pause_if_full
from mimir.tools.permissions import not_granted
from mimir.tools.protocol import Toolset
from mimir.tools.wrappers.journaled_tools import GateDecision, JournaledTools, Snapshot
from mimir.tools.wrappers.quota import CallQuota

MAX_RESULT_CHARS = 60_000
"""Limit for tools that do not limit their own text."""
TITLE_CHARS = 80


def gateway(
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
) -> Toolset:
    """Stack the wrappers around the tools of one agent in one attempt.

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
    dispatcher = _GatewayDispatcher(
        toolsets, frozenset(granted), redact, why, quota or CallQuota({}), ask
    )
    return JournaledTools(dispatcher, transcript, snapshot, redact, base_tree)


@dataclass(slots=True)
class _GatewayDispatcher:
    """Decides on calls and executes them."""

    toolsets: InitVar[Sequence[Toolset]]
    _granted: frozenset[str]
    _redact: Callable[[str], str]
    _why: Callable[[str], str]
    _quota: CallQuota
    _ask: Callable[[ToolArguments], NewQuestion] | None
    _owners: dict[str, tuple[Toolset, ToolSpec]] = field(init=False)
    specs: Sequence[ToolSpec] = field(init=False)

    def __post_init__(self, toolsets: Sequence[Toolset]) -> None:
        # Reversed, so that the first toolset with a name wins.
        self._owners = {s.name: (t, s) for t in reversed(toolsets) for s in t.specs}
        permitted = (spec for _, spec in self._owners.values() if spec.name in self._granted)
        self.specs = tuple(sorted(permitted, key=_prompt_order))

    def admit(self, call: ToolCall) -> GateDecision:
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
            return GateDecision(refusal=self._clean(failure(error)), title=title)
        return GateDecision(effectful=not spec.read_only, title=title, question=question)

    async def run(self, call: ToolCall, context: CallContext) -> ToolResult:
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
