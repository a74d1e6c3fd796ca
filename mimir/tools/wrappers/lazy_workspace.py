"""A wrapper for tools whose place has to be made first: it is, with the first call that needs it, and not if there is none."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec
from mimir.tools.protocol import Toolset


class LazyWorkspaceTools:
    """Several toolsets over one place; calls that come while it is made wait for it."""

    def __init__(
        self, toolsets: Sequence[Toolset], prepare: Callable[[bool], Awaitable[None]]
    ) -> None:
        """Wrap them.

        Args:
            toolsets: Tools with names of their own.
            prepare: Awaited before each call, one at a time, and told whether the call may change something; makes the place
                if that has not been done.
        """
        self._owners = {
            spec.name: (toolset, spec) for toolset in toolsets for spec in toolset.specs
        }
        self._prepare = prepare
        self._preparing = asyncio.Lock()
        self.specs: Sequence[ToolSpec] = tuple(spec for t in toolsets for spec in t.specs)

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        """Run one call of a tool that is among `specs`; raises as the tool does, and what preparing the place raises."""
        toolset, spec = self._owners[call.name]
        async with self._preparing:
            await self._prepare(not spec.read_only)
        return await toolset.call(call, context)
