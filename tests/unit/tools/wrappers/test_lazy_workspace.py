"""Tools over a place that is made when it is first needed."""

import asyncio
from dataclasses import dataclass, field

import pytest

from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec
from mimir.errors import WorkspaceError
from mimir.tools.wrappers.lazy_workspace import LazyWorkspaceTools

CONTEXT = CallContext(project="p", run="r", task="t", attempt=1, role="qc")


@dataclass
class Place:
    made: int = 0
    effects: list[bool] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    failures: int = 0
    specs: tuple[ToolSpec, ...] = (
        ToolSpec(name="look", description="Look.", input_schema={}),
        ToolSpec(name="change", description="Change.", input_schema={}, read_only=False),
    )

    async def prepare(self, effectful: bool) -> None:
        self.effects.append(effectful)
        if self.made:
            return
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise WorkspaceError("No room.")
        self.made += 1

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        self.seen.append(self.made)
        return ToolResult(text=call.name)


LOOK = ToolCall(id="1", name="look", arguments="{}")
CHANGE = ToolCall(id="2", name="change", arguments="{}")


async def test_unused_lazy_workspace_is_never_prepared():
    place = Place()
    assert LazyWorkspaceTools([place], place.prepare).specs == place.specs
    assert place.made == 0


async def test_calls_at_once_wait_until_the_place_is_made_once():
    place = Place()
    tools = LazyWorkspaceTools([place], place.prepare)
    await asyncio.gather(*(tools.call(LOOK, CONTEXT) for _ in range(3)))
    assert place.seen == [1, 1, 1]


async def test_lazy_workspace_learns_which_calls_have_effects():
    place = Place()
    tools = LazyWorkspaceTools([place], place.prepare)
    await tools.call(LOOK, CONTEXT)
    await tools.call(CHANGE, CONTEXT)
    assert place.effects == [False, True]


async def test_a_place_that_could_not_be_made_is_made_with_the_next_call():
    place = Place(failures=1)
    tools = LazyWorkspaceTools([place], place.prepare)
    with pytest.raises(WorkspaceError):
        await tools.call(LOOK, CONTEXT)
    assert (await tools.call(LOOK, CONTEXT)).text == "look"
    assert place.seen == [1]
