"""Tools whose workspace is prepared before the first call that needs it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec
from mimir.tools.protocol import Toolset


class LazyWorkspaceTools:
    """Several toolsets over one workspace; calls wait while it is prepared."""

    def __init__(
        self, toolsets: Sequence[Toolset], prepare: Callable[[bool], Awaitable[None]]
    ) -> None:
        """Wrap the tools.

        Args:
            toolsets: Tools with distinct names.
            prepare: Awaited before each call, one at a time, with whether the call may change something. It makes the workspace
                once.
        """
        self._owners = {
            spec.name: (toolset, spec) for toolset in toolsets for spec in toolset.specs
        }
        self._prepare = prepare
        self._preparing = asyncio.Lock()
        self.specs: Sequence[ToolSpec] = tuple(spec for t in toolsets for spec in t.specs)

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        """Execute a call of a tool in `specs`; raises the errors of the tool and of `prepare`."""
        toolset, spec = self._owners[call.name]
        async with self._preparing:
            await self._prepare(not spec.read_only)
        return await toolset.call(call, context)
