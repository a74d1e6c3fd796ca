"""Attempts take CPU turns: an attempt with an answer reaches its next call before the next attempt begins."""

import asyncio

import pytest

from mimir.domain.message import Answer, Message, ModelRequest
from mimir.domain.turn_hook import YIELD_TURN, give_way
from mimir.errors import ModelError
from mimir.scheduling.cpu_turns import CpuTurn, CpuTurns, TurnTakingModels

REQUEST = ModelRequest(model="m", messages=(Message(role="user", text="?"),), max_tokens=1)
ANSWER = Answer(message=Message(role="assistant", text="!"))


class Asked:
    """Models that answer on a signal of the test."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    def for_lane(self, role: str, lane: str, model: str = ""):
        assert (role, lane, model) == ("worker", "a/b", "m")
        return self

    async def ask(self, request: ModelRequest) -> Answer:
        self.asked.set()
        await self.may_answer.wait()
        if self.fails:
            raise ModelError("no", scope="attempt")
        return ANSWER


async def settled() -> None:
    """Let everything that can go on go on."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_cpu_turns_are_taken_in_request_order():
    all_of_them, order = CpuTurns(), []
    turns = [CpuTurn(all_of_them) for _ in range(3)]
    await turns[0].acquire()

    async def think(number: int) -> None:
        await turns[number].acquire()
        order.append(number)

    others = [asyncio.ensure_future(think(number)) for number in (1, 2)]
    await settled()
    assert order == []
    turns[0].yield_turn()
    await settled()
    assert order == [1]
    turns[1].yield_turn()
    await asyncio.gather(*others)
    assert order == [1, 2]
    turns[2].yield_turn()
    assert not all_of_them.lock.locked()


async def test_cpu_turn_may_be_taken_and_yielded_repeatedly():
    turns = CpuTurns()
    turn = CpuTurn(turns)
    turn.yield_turn()
    await turn.acquire()
    await turn.acquire()
    turn.yield_turn()
    assert not turns.lock.locked()
    turn.yield_turn()
    await CpuTurn(turns).acquire()
    turn.yield_turn()
    assert turns.lock.locked()


async def test_model_call_yields_the_cpu_turn_and_its_answer_waits(monkeypatch):
    monkeypatch.setattr("mimir.scheduling.cpu_turns.AT_ONCE_SECONDS", 0.0)
    turns, models = CpuTurns(), Asked()
    mine, other = CpuTurn(turns), CpuTurn(turns)
    await mine.acquire()
    asking = asyncio.ensure_future(
        TurnTakingModels(models, mine).for_lane("worker", "a/b", "m").ask(REQUEST)
    )
    await models.asked.wait()
    await other.acquire()
    models.may_answer.set()
    await settled()
    assert not asking.done()
    other.yield_turn()
    assert await asking == ANSWER
    assert turns.lock.locked()
    mine.yield_turn()


async def test_call_is_sent_before_the_next_attempt_takes_a_cpu_turn():
    turns, order = CpuTurns(), []
    mine, other = CpuTurn(turns), CpuTurn(turns)
    await mine.acquire()

    async def think() -> None:
        await other.acquire()
        order.append("the next one thinks")

    async def ask() -> None:  # an HTTP client sends the request in a task of its own
        await asyncio.ensure_future(send())

    async def send() -> None:
        order.append("the question is sent")

    thinking = asyncio.ensure_future(think())
    await settled()
    asking = asyncio.ensure_future(mine.away(ask()))
    await thinking
    assert order == ["the question is sent", "the next one thinks"]
    other.yield_turn()
    await asking


async def test_model_that_fails_leaves_no_turn_behind():
    turns, models = CpuTurns(), Asked(fails=True)
    mine = CpuTurn(turns)
    await mine.acquire()
    models.may_answer.set()
    with pytest.raises(ModelError):
        await TurnTakingModels(models, mine).for_lane("worker", "a/b", "m").ask(REQUEST)
    assert not turns.lock.locked()


async def test_cancelled_wait_for_a_cpu_turn_blocks_no_other():
    turns = CpuTurns()
    first, gone, last = CpuTurn(turns), CpuTurn(turns), CpuTurn(turns)
    await first.acquire()
    waiting = asyncio.ensure_future(gone.acquire())
    await settled()
    waiting.cancel()
    await asyncio.wait((waiting,))
    first.yield_turn()
    await last.acquire()
    last.yield_turn()
    assert not turns.lock.locked()


async def test_cpu_turn_that_is_not_yielded_ends_by_itself():
    turns = CpuTurns()
    await CpuTurn(turns).acquire()
    await CpuTurn(turns).acquire()  # would wait for ever otherwise


async def test_wait_for_a_program_yields_the_cpu_turn():
    turns = CpuTurns()
    mine = CpuTurn(turns)
    give_way()  # no attempt's
    await mine.acquire()
    YIELD_TURN.set(mine.yield_turn)

    async def deep_inside() -> None:
        give_way()
        give_way()

    await asyncio.gather(deep_inside(), deep_inside())
    assert not turns.lock.locked()


async def test_fast_model_needs_no_cpu_turn(monkeypatch):
    monkeypatch.setattr("mimir.scheduling.cpu_turns.AT_ONCE_SECONDS", 3600.0)
    turns, models = CpuTurns(), Asked()
    mine, other = CpuTurn(turns), CpuTurn(turns)
    await other.acquire()
    models.may_answer.set()
    asked = TurnTakingModels(models, mine).for_lane("worker", "a/b", "m").ask(REQUEST)
    assert await asked == ANSWER
    other.yield_turn()
    await mine.acquire()
    assert not turns.lock.locked()
