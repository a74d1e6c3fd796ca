"""The one gateway: every call of every agent goes through here, in this order.

    known name → permission → valid arguments → quota → journal → run → secrets replaced → journal

What the first four refuse is journaled as a result like any other; it had no effect. A failing tool never ends a run: it becomes a
text for the model, and what is not the model's fault is told to `report`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from mimir.domain.agent import ALL_TOOLS
from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec
from mimir.errors import MimirError, ToolError
from mimir.tools.calls import arguments
from mimir.tools.calls.failures import CallDenied, failure, pause_if_full
from mimir.tools.calls.messages import list_names, nearest, quote_text, storable
from mimir.tools.permissions import not_granted
from mimir.tools.protocol import Toolset
from mimir.tools.wrappers.journaled_tools import GateDecision, Journal, JournaledTools, Snapshot
from mimir.tools.wrappers.quota import CallQuota, ToolQuota

MAX_RESULT_CHARS = 60_000
"""A backstop for tools that do not bound their own text."""
TITLE_CHARS = 80

Report = Callable[[str, Exception], None]
"""Told the tool's name and what it raised, when that is a fault of the engine."""


def gateway(
    toolsets: Sequence[Toolset],
    *,
    granted: Collection[str],
    lane: Journal,
    snapshot: Snapshot | None = None,
    redact: Callable[[str], str],
    why: Callable[[str], str] = not_granted,
    quota: ToolQuota | None = None,
    report: Report | None = None,
    base_tree: str = "",
) -> Toolset:
    """Stack the wrappers around the tools of one agent in one attempt.

    Args:
        toolsets: Where the tools are; the first that has a name serves it.
        granted: Names that may be used (`permissions.Rights.granted`); only these are shown to the model.
        lane: Where calls are recorded and replayed from.
        snapshot: Awaited after each effectful call that ran. None: there is no workspace whose tree matters.
        redact: Removes secrets from results, arguments and titles before the journal or the model sees them.
        why: The reason for a name that is not in `granted`.
        quota: A bound beside the breaker; None: none.
        report: See `Report`.
        base_tree: The workspace's tree before the first call.
    """
    door = _GatewayDispatcher(
        toolsets, frozenset(granted), redact, why, quota or CallQuota({}), report
    )
    return JournaledTools(door, lane, snapshot, redact, base_tree)


class _GatewayDispatcher:
    """Decides on calls and runs them."""

    def __init__(
        self,
        toolsets: Sequence[Toolset],
        granted: frozenset[str],
        redact: Callable[[str], str],
        why: Callable[[str], str],
        quota: ToolQuota,
        report: Report | None,
    ) -> None:
        self._owners = {s.name: (t, s) for t in reversed(toolsets) for s in t.specs}
        self._granted = granted
        self._redact = redact
        self._why = why
        self._quota = quota
        self._report = report
        shown = (spec for _, spec in self._owners.values() if spec.name in granted)
        self.specs = tuple(sorted(shown, key=_place))

    def admit(self, call: ToolCall, context: CallContext, /) -> GateDecision:
        """Decide on a call without waiting; the quota is taken here."""
        title = ""
        try:
            spec = self._spec(call.name)
            values = arguments.parse_arguments(call.arguments, spec)
            title = self._title(call.name, values.first)
            refused = self._quota.take(call.name, context)
            if refused is not None:
                raise CallDenied(refused, next_step=self._yours())
        except ToolError as error:
            title = title or self._title(call.name)
            return GateDecision(refusal=self._clean(failure(error)), title=title)
        return GateDecision(effectful=not spec.read_only, title=title)

    async def run(self, call: ToolCall, context: CallContext, /) -> ToolResult:
        """Run an admitted call; whatever it raises becomes a result, unless the engine must act."""
        toolset, _ = self._owners[call.name]
        try:
            result = await toolset.call(call, context)
        except ToolError as error:
            return self._clean(failure(error))
        except MimirError:
            raise
        except Exception as error:  # noqa: BLE001  the rim of the room: a tool's bug must not end the run
            pause_if_full(error)
            return self._broken(call.name, error)
        return self._clean(result)

    def _spec(self, name: str) -> ToolSpec:
        """Return what is known of a tool that may be used.

        Raises:
            Denied: It is a tool, but not for this agent.
            ToolError: There is no such tool.
        """
        if name not in self._owners and name not in ALL_TOOLS:
            near = nearest(name, [spec.name for spec in self.specs])
            raise ToolError(f"There is no tool {quote_text(name)}.{near}", next_step=self._yours())
        if name not in self._granted:
            raise CallDenied(self._why(name), next_step=self._yours())
        if name not in self._owners:
            raise CallDenied(
                f"{quote_text(name)} is not there in this attempt.", next_step=self._yours()
            )
        return self._owners[name][1]

    def _yours(self) -> str:
        return f"Your tools: {list_names([spec.name for spec in self.specs], 30)}."

    def _broken(self, tool: str, error: Exception) -> ToolResult:
        if self._report:
            self._report(tool, error)
        said = (
            f"Error: {tool} failed inside the engine ({type(error).__name__}); your call was not at fault, "
            "and it may have been done in part. Look at the result before you repeat it, or take another way."
        )
        return ToolResult(text=said, is_error=True)

    def _clean(self, result: ToolResult) -> ToolResult:
        text = storable(self._redact(result.text))
        if len(text) > MAX_RESULT_CHARS:
            rest = len(text) - MAX_RESULT_CHARS
            text = f"{text[:MAX_RESULT_CHARS]}\n[{rest:,} more characters left out: ask for less at once]"
        return replace(result, text=text)

    def _title(self, tool: str, words: str = "") -> str:
        """Name a call in a few words: the tool and its first argument, on one line."""
        # A long argument is cut twice: what is redacted must not be a whole file's text.
        plain = " ".join(self._redact(storable(f"{tool} {words[: 10 * TITLE_CHARS]}")).split())
        return quote_text(plain, TITLE_CHARS)[1:-1]


def _place(spec: ToolSpec) -> tuple[int, str]:
    """Order tools as `ALL_TOOLS` does, others after them by name: the same bytes in every prompt."""
    known = ALL_TOOLS.index(spec.name) if spec.name in ALL_TOOLS else len(ALL_TOOLS)
    return known, spec.name
