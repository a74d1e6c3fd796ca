"""The parts of a process that serves a run with others: its pool of agents, its heartbeat, its place in the election."""

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from mimir.domain.event import EventKind
from mimir.domain.run import RunResult
from mimir.domain.task_states import RunStatus, TaskStatus, TransitionActor
from mimir.errors import LeaseLost, Paused, WorkspaceError
from mimir.scheduling import lifecycle
from mimir.scheduling.processes import pool_metrics
from mimir.scheduling.processes.agent_pool import AgentPool
from mimir.scheduling.processes.election import CoordinatorElection
from mimir.scheduling.processes.run_server import send_heartbeat
from mimir.scheduling.run_services import RunServices, StopSignal, WorkSignals
from mimir.store.operations import claims, record_loading, runs, worker_processes
from mimir.store.operations.claims import Claim
from mimir.store.protocol import WriteOps
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.clock import FrozenClock
from tests.support.run_services import TASKS, Hosts, Running, Work, crew_of
from tests.support.stores import Around

DONE = RunResult(run="r1", outcome=RunStatus.COMPLETED, exit_code=0)


@pytest.fixture
def other(
    store: SqliteStore, frozen_clock: FrozenClock, hosts: Hosts, tmp_path: Path
) -> RunServices:
    return crew_of("two", store, frozen_clock, hosts, tmp_path)


async def lead_forever() -> RunResult:
    await asyncio.Event().wait()
    return DONE


async def test_pool_takes_a_task_for_each_agent_in_one_transaction(crew: RunServices):
    work = Work()
    pool = AgentPool(crew, work, StopSignal())
    await pool.spawn(2)
    async with Running(pool.serve()):
        await work.until(2)
        assert (pool.agents, tuple(task for task, _ in pool.held)) == (2, ("a", "b"))
        assert (pool.counters().tries, pool.counters().claimed) == (1, 2)
    assert work.stopped == ["a", "b"]
    held = await crew.store.read(lambda r: record_loading.find_held_tasks(r, "r1"))
    assert held == [], "its tasks were released"


class CallingAfterEachGift(Around):
    """The store, in which agents are called, and look, as soon as a lease was given back."""

    def __init__(self, inner: SqliteStore, wake: WorkSignals) -> None:
        super().__init__(inner)
        self._wake = wake

    async def write(self, work, **how):
        done = await super().write(work, **how)
        if getattr(work, "func", None) is claims.release_claim:
            self._wake.work_available()
            for _ in range(50):
                await self.read(lambda r: r.now())
        return done


async def test_task_failed_by_an_engine_error_is_not_claimed_again_by_its_process(
    crew: RunServices, store: SqliteStore
):
    begun: list[str] = []
    all_begun = asyncio.Event()

    async def work(claim: Claim) -> None:
        begun.append(claim.task)
        if len(begun) == len(TASKS):
            all_begun.set()
        await all_begun.wait()
        if claim.task == "a":
            raise WorkspaceError("The workspace is gone.")
        await asyncio.Event().wait()

    crew = replace(crew, leases=CallingAfterEachGift(store, crew.wake))
    pool = AgentPool(crew, work, StopSignal())
    await pool.spawn(len(TASKS) + 2)
    with pytest.raises(WorkspaceError):
        await pool.serve()
    assert sorted(begun) == sorted(TASKS)


async def test_pool_grows_and_shrinks_while_it_works(crew: RunServices):
    work = Work()
    pool = AgentPool(crew, work, StopSignal())
    await pool.spawn(1)
    async with Running(pool.serve()):
        await work.until(1)
        assert await pool.spawn(1) == 2
        await work.until(2)
        assert await pool.scale(1) == 1
        assert tuple(task for task, _ in pool.held) == ("a", "b"), (
            "a surplus agent ends its task first"
        )
    with pytest.raises(ValueError, match="-1"):
        await pool.scale(-1)


async def test_process_stops_a_lost_task_at_its_next_heartbeat(
    crew: RunServices,
):
    work = Work()
    pool = AgentPool(crew, work, StopSignal())
    await pool.spawn(1)
    chair = CoordinatorElection(crew, lead_forever, leads=False)
    async with Running(pool.serve()):
        await work.until(1)
        taken = await crew.store.write(
            lambda ops: claims.claim(ops, "r1", "thief", lease_seconds=300, dead=("one",))
        )
        assert [claim.fence for claim in taken] == [2]
        async with Running(send_heartbeat(crew, pool, chair)):
            while not work.stopped:
                work.changed.clear()
                await work.changed.wait()
        assert work.stopped == ["a"]
    locks = await crew.store.read(lambda r: record_loading.find_held_tasks(r, "r1"))
    assert [(lock.task_id, lock.locked_by) for lock in locks] == [("a", "thief")]


async def test_retry_that_begins_while_the_attempt_before_clears_away_is_no_lost_task(
    crew: RunServices,
):
    begun: list[tuple[str, int]] = []
    stopped: list[tuple[str, int]] = []
    second = asyncio.Event()

    async def work(claim: Claim) -> None:
        begun.append((claim.task, claim.attempt))
        try:
            if begun[-1] == ("a", 1):
                await crew.store.write(partial(_retried, claim=claim))
                crew.wake.task_moved(is_offer=True)
                crew.wake.wake_idle()
            elif begun[-1] == ("a", 2):
                second.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append((claim.task, claim.attempt))
            raise

    pool = AgentPool(crew, work, StopSignal())
    await pool.spawn(len(TASKS) + 1)
    async with Running(pool.serve()):
        await second.wait()
        while not stopped:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert stopped == [("a", 1)]
        assert (pool.counters().lost, pool.counters().claimed) == (0, len(TASKS) + 1)


def _retried(ops: WriteOps, claim: Claim) -> None:
    claims.move(
        ops, "r1", claim.task, claim.fence, TaskStatus.PREPARING_RETRY, TransitionActor.SCHEDULING,
        kind=EventKind.TASK_RETRIED,
    )  # fmt: skip


async def test_one_process_coordinates_until_it_is_dead(
    crew: RunServices, other: RunServices, hosts: Hosts
):
    led: list[str] = []

    async def lead(name: str) -> RunResult:
        led.append(name)
        return DONE if name == "two" else await lead_forever()

    first = CoordinatorElection(crew, lambda: lead("one"), leads=False)
    second = CoordinatorElection(other, lambda: lead("two"), leads=False)
    async with Running(first.attend()):
        while not led:  # noqa: ASYNC110
            await asyncio.sleep(0)
        async with Running(second.attend()) as sitting:
            for _ in range(50):
                await other.store.read(lambda r: r.now())
            assert (led, second.leads) == (["one"], False)
            hosts.gone_ones.add("one")
            assert await sitting == DONE
    assert led == ["one", "two"]
    events = await crew.store.read(lambda r: runs.events(r, "r1", kinds=(EventKind.RUN_RESUMED,)))
    assert len(events) == 2


async def test_coordinator_that_lost_its_lease_stops_leading_and_may_write_no_more(
    crew: RunServices, other: RunServices, frozen_clock: FrozenClock
):
    stopped = asyncio.Event()

    async def lead() -> RunResult:
        try:
            return await lead_forever()
        finally:
            stopped.set()

    chair = CoordinatorElection(crew, lead, leads=False)
    pool = AgentPool(crew, Work(), StopSignal())
    async with Running(chair.attend()):
        while not chair.leads:  # noqa: ASYNC110
            await asyncio.sleep(0)
        frozen_clock.advance(301)
        await other.store.write(
            lambda ops: lifecycle.take_run(ops, "r1", "two", 300, (), resumed=True)
        )
        async with Running(send_heartbeat(crew, pool, chair)):
            await stopped.wait()
        assert not chair.leads
    with pytest.raises(LeaseLost):
        await crew.store.read(lambda reads: lifecycle.must_lead(reads, "r1", "one"))


async def test_coordinator_that_wakes_up_when_another_one_has_left_does_not_lead_again(
    crew: RunServices, other: RunServices, frozen_clock: FrozenClock
):
    await crew.store.write(lambda ops: lifecycle.take_run(ops, "r1", "one", 300, (), resumed=True))
    frozen_clock.advance(301)
    await other.store.write(lambda ops: lifecycle.take_run(ops, "r1", "two", 300, (), resumed=True))
    await other.store.write(lambda ops: lifecycle.leave_run(ops, "r1", "two"))
    assert not await crew.store.write(lifecycle.renew("r1", "one", 300))
    with pytest.raises(LeaseLost):
        await crew.store.read(lambda reads: lifecycle.must_lead(reads, "r1", "one"))


async def test_paused_run_refuses_claims_and_ends_each_process(crew: RunServices):
    paused = Paused("Enough.", reason="budget")
    await crew.store.write(lambda ops: lifecycle.pause(ops, "r1", "one", paused, 0.0))

    with pytest.raises(Paused, match="Enough"):
        await CoordinatorElection(crew, lead_forever, leads=False).attend()
    claim = await crew.store.write(lambda ops: claims.claim(ops, "r1", "one", lease_seconds=300))
    assert claim == []


async def test_a_pause_for_an_answer_is_the_same_for_every_process(crew: RunServices):
    asked = "1 question is open (q-1)."
    paused = Paused(asked, reason="input")
    await crew.store.write(lambda ops: lifecycle.pause(ops, "r1", "one", paused, 0.0))

    # The process that leads may see the pause before its own coordinator has returned
    with pytest.raises(Paused) as seen:
        await CoordinatorElection(crew, lead_forever, leads=True).attend()

    assert (str(seen.value), seen.value.reason) == (asked, "input")
    assert seen.value.next_step == "Answer: mimir inbox  Then continue: mimir resume r1"


async def test_workers_and_their_locks_are_seen(crew: RunServices, frozen_clock: FrozenClock):
    work = Work()
    pool = AgentPool(crew, work, StopSignal())
    await pool.spawn(1)
    async with Running(pool.serve()):
        await work.until(1)
        attend = partial(
            worker_processes.register_process,
            run="r1",
            process=crew.process,
            tally=pool.counters(),
            seconds=crew.lease_seconds,
        )
        await crew.store.write(attend)
        figured = await crew.store.read(lambda r: pool_metrics.measure_pool(r, "r1", crew.owner))
        shape = await crew.store.read(lambda r: pool_metrics.shape(r, "r1", ()))
        frozen_clock.advance(301)
        late = await crew.store.read(lambda r: pool_metrics.shape(r, "r1", ()))
        dead = await crew.store.read(lambda r: pool_metrics.shape(r, "r1", ("one",)))
    assert figured["claims"] == {"tries": 1, "empty": 0, "claimed": 1, "lost": 0}
    assert shape["locks"] == [
        {
            "taskId": "a",
            "agentId": "one",
            "version": 2,
            "lockedAt": "2030-01-02T03:04:05.000000Z",
            "expiresAt": "2030-01-02T03:09:05.000000Z",
        }
    ]
    states = [one["workers"][0]["state"] for one in (shape, late, dead)]  # type: ignore[index]
    assert states == ["live", "late", "dead"]
    assert shape["workers"][0]["tasks"] == ["a"]  # type: ignore[index]
