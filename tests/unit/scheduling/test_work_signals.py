"""Wakes: the coordinator by tasks that move, idle agents by work that may be there."""

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from mimir.scheduling.coordinator import Coordinator
from mimir.scheduling.processes.agent_pool import AgentPool
from mimir.scheduling.run_services import RunServices, StopSignal, WorkSignals
from mimir.store.operations import claims
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.clock import FrozenClock
from tests.support.run_services import TASKS, Hosts, Running, Work, crew_of
from tests.support.stored_run import start, task
from tests.support.stores import Around, opened


async def test_agent_pool_claims_only_after_the_decision_of_its_coordinator(
    crew: RunServices,
):
    work = Work()
    pool = AgentPool(crew, work, StopSignal())
    await pool.spawn(1)
    with crew.wake.coordinating_here():
        async with Running(pool.serve()):
            for _ in range(50):
                await crew.store.read(lambda r: r.now())
            assert work.begun == [], "a task that is about to be released may matter more"
            crew.wake.mark_decided(crew.wake.moves)
            await work.until(1)


async def test_agent_pool_continues_after_its_coordinator_left(crew: RunServices):
    work = Work()
    pool = AgentPool(crew, work, StopSignal())
    await pool.spawn(1)
    async with Running(pool.serve()):
        with crew.wake.coordinating_here():
            pass
        await work.until(1)


class Told(WorkSignals):
    """The signals, with a record of the coordinator's decisions."""

    __slots__ = ("events",)

    def __init__(self) -> None:
        super().__init__()
        self.events: list[str] = []

    def mark_decided(self, moves: int | None) -> None:
        self.events.append("decided")
        super().mark_decided(moves)


class MovingMeanwhile(Around):
    """The store, in which another task moves whenever something is released."""

    def __init__(self, inner: SqliteStore, wake: Told) -> None:
        super().__init__(inner)
        self._wake = wake

    async def read(self, work, **how):
        self._wake.events.append("looked")
        return await super().read(work, **how)

    async def write(self, work, **how):
        done = await super().write(work, **how)
        self._wake.events.append("released")
        self._wake.task_moved()
        return done


async def test_agents_need_not_wait_for_tasks_that_move_after_the_coordinator_has_released_some(
    tmp_path: Path, frozen_clock: FrozenClock, hosts: Hosts
):
    async with opened(SqliteStore(tmp_path / "mimir.db", frozen_clock)) as store:
        await start(store, *(task(id) for id in TASKS), released=False)
        wake = Told()
        crew = crew_of("one", store, frozen_clock, hosts, tmp_path)
        crew = replace(crew, wake=wake, store=MovingMeanwhile(store, wake))
        async with Running(Coordinator(crew).drive()):
            while wake.events.count("decided") < 2:  # noqa: ASYNC110
                await asyncio.sleep(0)
        assert wake.events[:5] == ["looked", "released", "decided", "looked", "decided"]


class CountedLooks(Around):
    """The store, counting how often it is asked whether there is work."""

    def __init__(self, inner: SqliteStore) -> None:
        super().__init__(inner)
        self.looks = 0

    async def read(self, work, **how):
        self.looks += getattr(work, "func", None) is claims.is_work_there
        return await super().read(work, **how)


@pytest.mark.parametrize("is_here", [True, False])
async def test_store_is_polled_for_work_only_without_a_local_signal(
    crew: RunServices, store: SqliteStore, frozen_clock: FrozenClock, *, is_here: bool
):
    work, counted = Work(), CountedLooks(store)
    crew = replace(crew, store=counted)
    pool = AgentPool(crew, work, StopSignal())
    await pool.spawn(len(TASKS) + 1)
    async with contextlib.AsyncExitStack() as beside:
        if is_here:
            beside.enter_context(crew.wake.coordinating_here())
            crew.wake.mark_decided(0)
        await beside.enter_async_context(Running(pool.serve()))
        await work.until(len(TASKS))
        before = counted.looks
        for _ in range(20):
            crew.wake.wake_idle()
            await crew.store.read(lambda r: r.now())
        assert (counted.looks == before) == is_here, "one agent is idle, and nothing is left"
        if is_here:
            frozen_clock.advance(2 * crew.poll_seconds)
        while counted.looks == before:
            await crew.store.read(lambda r: r.now())


async def test_available_task_is_claimed_without_a_poll(
    crew: RunServices, store: SqliteStore, frozen_clock: FrozenClock
):
    work, counted = Work(), CountedLooks(store)
    crew = replace(crew, store=counted, poll_seconds=3600.0)
    pool = AgentPool(crew, work, StopSignal())
    await pool.spawn(len(TASKS) + 1)
    with crew.wake.coordinating_here():
        async with Running(pool.serve()):
            crew.wake.mark_decided(0)
            await work.until(len(TASKS))
            looks = counted.looks
            await store.write(lambda ops: claims.release_claim(ops, "r1", "b", 1))
            crew.wake.work_available()
            await work.until(len(TASKS) + 1)
            assert (work.begun[-1], counted.looks) == ("b", looks)


async def test_signal_wakes_all_its_waiters_in_one_loop_step():
    wake = WorkSignals()
    waiting = [
        asyncio.ensure_future(wait)
        for wait in (
            wake.until_moved(0, 3600), wake.until_called(0, 3600), wake.until_moved(0, 3600), wake.until_decided(0)
        )
    ]  # fmt: skip
    await asyncio.sleep(0)
    assert [wait.done() for wait in waiting] == [False, False, False, True], "nobody decides here"

    wake.task_moved()
    await asyncio.sleep(0)

    assert [wait.done() for wait in waiting] == [True, False, True, True]
    waiting[1].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    wake.wake_idle()


async def test_agent_is_idle_in_the_step_in_which_its_task_ended(crew: RunServices):
    work = Work()
    pool = AgentPool(crew, work, StopSignal())
    await pool.spawn(len(TASKS))
    async with Running(pool.serve()):
        await work.until(len(TASKS))
        work.go.set()
        await asyncio.sleep(0)
        assert not pool.held
