"""A wrapper for tools whose place has to be made first: it is, with the first call, and not if there is none."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec
from mimir.tools.protocol import Toolset


class Awaited:
    """Several toolsets over one place; calls that come while it is made wait for it."""

    def __init__(self, toolsets: Sequence[Toolset], make: Callable[[], Awaitable[None]]) -> None:
        """Wrap them.

        Args:
            toolsets: Tools with names of their own.
            make: Makes the place; called once, and again only if it failed.
        """
        self._owners = {spec.name: toolset for toolset in toolsets for spec in toolset.specs}
        self._make = make
        self._made = False
        self._making = asyncio.Lock()
        self.specs: Sequence[ToolSpec] = tuple(spec for t in toolsets for spec in t.specs)

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        """Run one call of a tool that is among `specs`; raises as the tool does, and what making the place raises."""
        async with self._making:
            if not self._made:
                await self._make()
                self._made = True
        return await self._owners[call.name].call(call, context)
