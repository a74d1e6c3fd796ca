"""The empty toolset, for agents without tools."""

from collections.abc import Sequence
from typing import Final

from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec


class _NoTools:
    @property
    def specs(self) -> Sequence[ToolSpec]:
        return ()

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        return ToolResult(
            text=f"There is no tool {call.name[:80]!r}; answer with text.", is_error=True
        )


NO_TOOLS: Final = _NoTools()
