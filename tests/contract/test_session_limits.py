"""The limits of sessions hold exactly when two processes create something at the same moment."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest

from mimir.domain.invocation import DelegationLimits
from mimir.domain.run import RunBudget
from mimir.domain.task_states import RunStatus
from mimir.domain.usage import TokenUsage
from mimir.errors import LimitError, Paused
from mimir.orchestrator.delegation.rules import count_working, find_place
from mimir.orchestrator.sessions.limits import (
    admit_run,
    find_newest_session,
    load_session,
    open_session,
    renew_budget,
    start_queued,
)
from mimir.store.operations import budget, runs
from mimir.store.operations.runs import NewRun
from mimir.store.protocol import GraphStore, WriteOps
from mimir.store.records.session_records import SessionRecord
from mimir.store.schema import NodeLabel

Second = Callable[[], AbstractAsyncContextManager[GraphStore]]
LIMITS = DelegationLimits()


def new_run(number: int, session: str) -> NewRun:
    return NewRun(
        id=f"agent-{session}-{number}",
        kind="agent",
        project_id="p",
        project_name="p",
        name="n",
        request=f"Task {number}: " + " ".join(f"{number}{word}" for word in "abcdef"),
        plan=None,
        plan_path="",
        settings={},
        engine_version="0",
        base_commit="",
        base_tree="",
        agent="a",
        session_id=session,
    )


async def create(
    store: GraphStore,
    number: int,
    session: str,
    *,
    ended: bool = False,
    limits: DelegationLimits = LIMITS,
) -> str:
    """Create an invocation as `create_run` does; return the rule that refuses it."""
    new = new_run(number, session)

    def work(ops: WriteOps) -> None:
        runs.create(ops, new)
        admit_run(ops, new.id, (), limits, is_forced=False)
        if ended:
            ops.patch(NodeLabel.RUN, new.id, {"status": RunStatus.COMPLETED.value})

    try:
        await store.write(work)
    except LimitError as error:
        return error.rule
    return ""


async def race(store: GraphStore, other: GraphStore, session: str, count: int) -> Counter[str]:
    doors = [(store, other)[number % 2] for number in range(count)]
    made = await asyncio.gather(
        *(create(door, 100 + number, session) for number, door in enumerate(doors))
    )
    return Counter(made)


async def test_twenty_one_calls_at_one_moment_leave_twenty_and_five_at_work(
    store: GraphStore, second: Second
):
    async with second() as other:
        for number in range(19):
            assert await create(store, number, "s-1", ended=True) == ""
        last = await race(store, other, "s-1", 4)
        first = await race(store, other, "s-2", 12)
    kept = await store.read(lambda reads: load_session(reads, "p", "s-1", ()))
    busy = await store.read(lambda reads: load_session(reads, "p", "s-2", ()))

    assert last == {"": 1, "calls": 3}
    assert len(kept) == 20
    assert first == {"": 12}
    assert count_working(busy) == 5
    assert [find_place(busy, one.run) for one in busy if one.is_queued] == [1, 2, 3, 4, 5, 6, 7]


async def test_an_end_starts_the_oldest_queued_invocation_once(store: GraphStore, second: Second):
    for number in range(8):
        await create(store, number, "s-1")

    def start(ops: WriteOps) -> list[str]:
        return [*start_queued(ops, "p", "s-1", (), LIMITS)]

    def end(ops: WriteOps) -> None:
        ops.patch(NodeLabel.RUN, "agent-s-1-2", {"status": RunStatus.CANCELLED.value})

    assert await store.write(start) == []
    await store.write(end)
    async with second() as other:
        started = await asyncio.gather(*(door.write(start) for door in (store, other) * 3))
    calls = await store.read(lambda reads: load_session(reads, "p", "s-1", ()))

    assert [run for some in started for run in some] == ["agent-s-1-5"]
    assert [one.run for one in calls if one.is_queued] == ["agent-s-1-6", "agent-s-1-7"]


async def test_the_limit_of_a_day_counts_every_session(store: GraphStore):
    few = DelegationLimits(per_day=3)
    made = [await create(store, n, f"s-{n}", limits=few) for n in range(4)]

    assert made == ["", "", "", "day"]


@pytest.mark.parametrize("name", ["", "token:a"])
async def test_the_eleventh_open_session_of_a_principal_is_refused(
    store: GraphStore, second: Second, name: str
):
    async def open_one(door: GraphStore, number: int, principal: str) -> str:
        new = SessionRecord(
            id=f"s-{principal}-{number}", project_id="p", principal=principal, name="Review"
        )
        try:
            await door.write(lambda ops: open_session(ops, new))
        except LimitError as error:
            return error.rule
        return ""

    async with second() as other:
        doors = (store, other) * 7
        made = await asyncio.gather(*(open_one(door, n, name) for n, door in enumerate(doors)))

    assert Counter(made) == {"": 10, "sessions": 4}
    # Another principal has its own; without contact since then no session is continued.
    assert await open_one(store, 1, "token:b") == ""
    newest = await store.read(lambda ops: find_newest_session(ops, "p", "token:b", since="2"))
    assert newest == "s-token:b-1"


async def test_two_processes_never_exceed_the_budget_of_a_session(
    store: GraphStore, second: Second
):
    # Given five calls and the tokens of four in one session with three agents
    limits = DelegationLimits(budget=RunBudget(max_calls=5, max_tokens=400))
    for number in range(3):
        assert await create(store, number, "s-1", limits=limits) == ""

    async def reserve(door: GraphStore, number: int) -> int:
        run, bound = f"agent-s-1-{number % 3}", TokenUsage(input_tokens=100, output_tokens=0)
        try:
            await door.write(lambda ops: budget.reserve(ops, run, "m", bound, None))
        except Paused as paused:
            return 0 if "budget of the session s-1 is used up" in str(paused) else -100
        return 1

    # When twelve calls are reserved at one moment, and then one is cheaper than its bound
    async with second() as other:
        doors = (store, other) * 6
        made = await asyncio.gather(*(reserve(door, n) for n, door in enumerate(doors)))
        spent = TokenUsage(input_tokens=1, output_tokens=0)
        bound = TokenUsage(input_tokens=100, output_tokens=0)
        work = partial(budget.spend, run="agent-s-1-0", made=[("m", bound, spent)])
        await other.write(work)
        more = [await reserve(other, 1), await reserve(store, 2)]
    row = await store.read(lambda reads: reads.get(NodeLabel.SESSION, "s-1"))

    assert (sum(made), more) == (4, [0, 0])
    assert row is not None
    assert (row["treeCalls"], row["treeTokens"]) == (4, 301)
    # A raised limit of the settings holds for the next calls.
    limits = DelegationLimits(budget=RunBudget(max_calls=6, max_tokens=1000))
    await store.write(lambda ops: renew_budget(ops, "s-1", limits))
    assert [await reserve(store, n) for n in range(3)] == [1, 1, 0]
