"""The door to every tool."""

from collections.abc import Sequence
from typing import Protocol

from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec


class Toolset(Protocol):
    """Tools of one agent in one attempt."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """What the model is told, in a fixed order."""
        ...

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        """Run one call.

        What the model did wrong (unknown tool, bad arguments, missing file) is a result with `is_error`, never an exception.

        Raises:
            Paused: The sandbox, the disk or the store is gone: the run must stop, the model cannot help.
            LeaseLost: Another holder has the task.
        """
        ...
