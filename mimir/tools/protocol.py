"""The protocol of every toolset, and the toolset of agents without tools."""

from collections.abc import Sequence
from typing import Final, Protocol

from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec


class Toolset(Protocol):
    """Tools of one agent in one attempt."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """The descriptions for the model, in a fixed order."""
        ...

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        """Execute one call.

        A mistake of the model (unknown tool, bad arguments, missing file) is a result with `is_error`, never an exception.

        Raises:
            Paused: Sandbox, disk or store failed, which the model cannot fix.
            LeaseLost: Another process has the task.
        """
        ...


class _NoTools:
    @property
    def specs(self) -> Sequence[ToolSpec]:
        return ()

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        return ToolResult(
            text=f"There is no tool {call.name[:80]!r}; answer with text.", is_error=True
        )


NO_TOOLS: Final = _NoTools()
