"""The recorded order of a run: read from its events, kept while it can be, given up when it cannot."""

import asyncio

import pytest

from mimir.domain.event import Event, EventKind
from mimir.recordings.format.recording import RecordedAttempt, RecordedRun
from mimir.recordings.model_replay import recorded_order
from mimir.recordings.model_replay.recorded_order import (
    RecordedAttemptOrder,
    RecordedOrder,
    order_of,
)

K = EventKind
WORKING = {"to": "worker_executing"}


def tape(*told, bases):
    events = [
        Event(seq=n, run="r", at="2026-01-01T00:00:00Z", kind=kind, task=task, attempt=attempt, data=data)
        for n, (kind, task, attempt, data) in enumerate(told, 1)
    ]  # fmt: skip
    facts = {one: RecordedAttempt(base=base) for one, base in bases.items()}
    return RecordedRun(id="r", pinned={"baseCommit": "c0"}, events=events, attempts=facts)


RECORDED = tape(
    (K.ATTEMPT_STARTED, "a", 1, WORKING),
    (K.ATTEMPT_STARTED, "b", 1, WORKING),
    (K.ATTEMPT_STARTED, "c", 1, WORKING),
    (K.TASK_COMPLETED, "b", 1, {"to": "completed", "commit": "c1"}),
    (K.TASK_RETRIED, "a", 1, {"to": "preparing_retry", "onto": "c1"}),
    (K.ATTEMPT_STARTED, "a", 2, WORKING),
    (K.TASK_RETRIED, "c", 1, {"to": "preparing_retry"}),
    (K.TASK_COMPLETED, "a", 2, {"to": "completed", "commit": "c2"}),
    (K.ATTEMPT_STARTED, "c", 2, WORKING),
    (K.TASK_COMPLETED, "c", 2, {"to": "completed", "commit": ""}),
    bases={("a", 1): "c0", ("b", 1): "c0", ("c", 1): "c0", ("a", 2): "c1", ("c", 2): "c2", ("x", 1): "?"},
)  # fmt: skip


def test_recorded_order_has_merges_and_bases():
    order = order_of(RECORDED, {"a", "b", "c"})
    assert order.landings == (("b", 1), ("a", 1), ("a", 2))
    assert order.moved == {0, 2}
    assert order.floors == {("a", 1): 0, ("b", 1): 0, ("c", 1): 0, ("a", 2): 1, ("c", 2): 3}
    assert order.width == 3


def test_tasks_that_are_not_done_again_have_no_place_in_the_order():
    order = order_of(RECORDED, {"b"})
    assert (order.landings, order.floors, order.width) == ((("b", 1),), {("b", 1): 0}, 1)


@pytest.fixture
def impatient(monkeypatch):
    """Let nothing be waited for longer than the loop needs to find nothing to do."""
    monkeypatch.setattr(recorded_order, "PATIENCE_SECONDS", 0.0)


class Walk:
    """Attempts that go through a pace; their events, in order."""

    def __init__(self, order, agents):
        self.pace = RecordedAttemptOrder(order, agents)
        self.told = []
        self.jobs = []

    def begins(self, task, attempt=1):
        self._start("began", self.pace.before_start(task, attempt), task)

    def lands(self, task, attempt=1):
        self._start("landed", self.pace.before_merge(task, attempt), task)

    def _start(self, what, waits, task):
        async def go():
            await waits
            self.told.append(f"{task} {what}")

        self.jobs.append(asyncio.ensure_future(go()))

    async def settled(self):
        for _ in range(20):
            await asyncio.sleep(0)
        return self.told


TWO = RecordedOrder(
    landings=(("a", 1), ("b", 1)), moved=frozenset((0, 1)), floors={("a", 1): 0, ("b", 1): 0}
)


async def test_early_merge_waits_for_the_recorded_predecessor(impatient):
    walk = Walk(TWO, agents=2)
    walk.begins("b")
    walk.begins("a")
    await walk.settled()
    for task in ("a", "b"):
        walk.pace.started(task, 1)
    walk.lands("b")
    assert await walk.settled() == ["b began", "a began"]
    walk.lands("a")
    assert await walk.settled() == ["b began", "a began", "a landed"]
    walk.pace.done("a", 1)
    assert (await walk.settled())[3:] == ["b landed"]


async def test_merge_waits_for_attempts_recorded_on_the_old_base():
    walk = Walk(TWO, agents=2)
    walk.begins("a")
    await walk.settled()
    walk.pace.started("a", 1)
    walk.lands("a")
    assert await walk.settled() == ["a began"]
    walk.begins("b")
    assert await walk.settled() == ["a began", "b began"]
    walk.pace.started("b", 1)
    assert await walk.settled() == ["a began", "b began", "a landed"]


async def test_attempt_begins_after_all_merges_of_its_recorded_base():
    order = RecordedOrder(landings=(("a", 1),), moved=frozenset((0,)), floors={("b", 1): 1})
    walk = Walk(order, agents=2)
    walk.begins("a")
    await walk.settled()
    walk.begins("b")
    assert await walk.settled() == ["a began"]
    walk.pace.done("a", 1)
    assert await walk.settled() == ["a began", "b began"]


async def test_recorded_order_is_abandoned_if_all_agents_wait():
    walk = Walk(TWO, agents=1)
    walk.begins("b")
    await walk.settled()
    walk.pace.started("b", 1)
    walk.lands("b")
    assert await walk.settled() == ["b began", "b landed"]


async def test_recorded_order_is_abandoned_if_a_merge_never_comes(impatient):
    walk = Walk(TWO, agents=2)
    walk.begins("b")
    await walk.settled()
    walk.pace.started("b", 1)
    walk.lands("b")
    await walk.jobs[-1]


async def test_unrecorded_attempts_do_not_wait():
    walk = Walk(TWO, agents=2)
    walk.begins("x")
    walk.lands("x")
    assert await walk.settled() == ["x began", "x landed"]


async def test_cancelled_wait_leaves_the_recorded_order_intact(impatient):
    order = RecordedOrder(landings=(("a", 1), ("b", 1), ("c", 1)), floors={})
    walk = Walk(order, agents=2)
    walk.begins("x")
    walk.begins("b")
    await walk.settled()
    walk.lands("b")
    assert await walk.settled() == ["x began", "b began"]
    walk.jobs[-1].cancel()
    await walk.settled()
    walk.pace.done("b", 1)
    walk.pace.done("x", 1)
    walk.begins("c")
    await walk.settled()
    walk.lands("c")  # in vain: no attempt is left that could land first, so the order is given up
    await walk.jobs[-1]
