"""Reads overlap, effects follow one another, results are in message order."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.message import CallContext, ToolCall, ToolResult
from mimir.errors import LeaseLost, Paused
from mimir.tools.batch import run_batch
from mimir.tools.gateway import Gateway
from tests.support.fake_tools import CONTEXT, FakeLane, spec, wish


class Watched:
    """Reads that wait for a gate, effects; records the calls that run at the same time."""

    specs = (spec("look"), spec("act", read_only=False))

    def __init__(self, gate: asyncio.Event | None = None) -> None:
        self.running: set[str] = set()
        self.began: list[str] = []
        self.begun = asyncio.Event()
        self.ended: list[str] = []
        self.together: list[frozenset[str]] = []
        self._gate = gate

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        self.began.append(call.id)
        self.begun.set()
        self.running.add(call.id)
        self.together.append(frozenset(self.running))
        if self._gate and call.id == "first":
            await self._gate.wait()
        else:
            await asyncio.sleep(0)
            if self._gate and call.name == "look":
                self._gate.set()
        self.running.discard(call.id)
        self.ended.append(call.id)
        return ToolResult(text=f"result of {call.id}", tree="t")


async def test_reads_overlap_and_results_keep_message_order():
    # Given a first read that can only end after the second one has
    tools = Watched(asyncio.Event())
    calls = [wish("look", id="first"), wish("look", id="second")]

    messages = await run_batch(tools, calls, CONTEXT)

    assert tools.ended == ["second", "first"]
    assert [m.call_id for m in messages] == ["first", "second"]
    assert [m.text for m in messages] == ["result of first", "result of second"]
    assert {(m.role, m.tool, m.tree, m.ran) for m in messages} == {("tool", "look", "t", True)}


async def test_nothing_overlaps_an_effect():
    tools = Watched()
    names = ["look", "look", "act", "act", "look", "act", "look"]
    await run_batch(tools, [wish(n, id=f"{i}") for i, n in enumerate(names)], CONTEXT)
    effects = {str(i) for i, n in enumerate(names) if n == "act"}
    assert all(len(group) == 1 for group in tools.together if group & effects)
    assert frozenset({"0", "1"}) in tools.together
    assert tools.began == [str(i) for i in range(len(names))]


async def test_an_unknown_tool_is_no_effect_and_has_its_result():
    lane = FakeLane()
    tools = Gateway([Watched()], granted=("look", "act"), transcript=lane, redact=str)
    messages = await run_batch(tools, [wish("lok", id="a"), wish("look", id="b")], CONTEXT)
    assert messages[0].text.startswith("Error: There is no tool 'lok'.")
    assert messages[0].call_id == "a"


@given(st.lists(st.sampled_from(["look", "act", "none"]), max_size=12))
async def test_transcript_has_calls_in_message_order(names: list[str]):
    lane = FakeLane()
    tools = Gateway([Watched()], granted=("look", "act"), transcript=lane, redact=str)
    calls = [wish(name, {"text": str(i)}, id=str(i)) for i, name in enumerate(names)]
    messages = await run_batch(tools, calls, CONTEXT)
    assert [row.request["arguments"] for row in lane.rows] == [call.arguments for call in calls]
    assert [m.call_id for m in messages] == [call.id for call in calls]


class Failing:
    """A tool that raises for some calls."""

    specs = (spec("look"), spec("act", read_only=False))

    def __init__(self) -> None:
        self.ended: list[str] = []

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        await asyncio.sleep(0)
        if call.id.startswith("paused"):
            raise Paused("No space.", reason="disk")
        if call.id.startswith("lost"):
            raise LeaseLost("Another has it.")
        for _ in range(5):
            await asyncio.sleep(0)
        self.ended.append(call.id)
        return ToolResult(text="")


async def test_pause_during_a_batch_finishes_reads_and_starts_no_call():
    tools = Failing()
    calls = [wish("look", id="paused"), wish("look", id="slow"), wish("act", id="later")]
    with pytest.raises(Paused):
        await run_batch(tools, calls, CONTEXT)
    assert tools.ended == ["slow"]


async def test_the_first_reason_in_message_order_is_raised():
    with pytest.raises(LeaseLost):
        await run_batch(Failing(), [wish("look", id="lost"), wish("look", id="paused")], CONTEXT)


async def test_cancelling_reaches_the_tools():
    gate = asyncio.Event()
    tools = Watched(gate)
    running = asyncio.create_task(
        run_batch(tools, [wish("look", id="first"), wish("act", id="second")], CONTEXT)
    )
    await tools.begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert tools.ended == []


async def test_no_calls_give_no_results():
    assert await run_batch(Watched(), [], CONTEXT) == ()
