"""Estimates of durations and calls from finished runs, and the cost of a query."""

from functools import partial

import pytest

from mimir.domain.estimates import LearnedEstimate, TaskSample, medians, role_key
from mimir.domain.task_states import RunStatus
from mimir.store.operations import estimates
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support import small_runs
from tests.support.small_run import RUN, SmallRun
from tests.support.stores import opened

ROLE = "Python engineer"


@pytest.fixture
async def store(tmp_path, frozen_clock):
    async with opened(SqliteStore(tmp_path / "mimir.db", frozen_clock)) as made:
        yield made


async def learn(store, run: str) -> None:
    took = await store.read(partial(estimates.of_run, run=run))
    await store.write(partial(estimates.save_samples, project="p", run=run, samples=took))


async def known(store, *roles: str):
    return await store.read(partial(estimates.load_estimates, project="p", roles=roles))


def sample(number: int, seconds: float, calls: int) -> TaskSample:
    return TaskSample(source=f"run-{number}/t", seconds=seconds, tool_calls=calls)


def test_median_of_nothing_is_none():
    samples = [sample(1, 60, 2), sample(2, 6000, 50), sample(3, 120, 4)]
    assert medians(samples) == LearnedEstimate(minutes=2, tool_calls=4, tasks=3)
    assert medians(samples[::2]) == LearnedEstimate(minutes=1.5, tool_calls=3, tasks=2)
    assert medians([]) is None


async def test_completed_tasks_of_a_finished_run_are_learned_from(store, frozen_clock):
    await small_runs.whole(store, frozen_clock)
    assert await known(store, ROLE) == {}

    await learn(store, RUN)

    # task-0 was held for 30 s, task-1 for twice 30; the failed task teaches nothing.
    wanted = LearnedEstimate(minutes=0.75, tool_calls=3, tasks=2)
    assert await known(store, ROLE, "python  ENGINEER.", "Cook") == {
        ROLE: wanted,
        "python  ENGINEER.": wanted,
    }


async def test_run_that_is_learned_twice_counts_once(store, frozen_clock):
    await small_runs.completed(store, frozen_clock)
    await learn(store, RUN)
    before = await known(store, ROLE)
    await learn(store, RUN)
    assert await known(store, ROLE) == before


async def test_only_the_newest_tasks_of_a_role_are_remembered(store):
    for number in range(40):
        took = {role_key(ROLE): [sample(number, 60.0 + number, number)] * 5}
        await store.write(
            partial(estimates.save_samples, project="p", run=f"run-{number}", samples=took)
        )
    (row,) = await store.read(lambda reads: reads.find("Artifact", {"kind": estimates.KIND}))
    assert len(row["samples"]) == estimates.MOST_SAMPLES
    assert (await known(store, ROLE))[ROLE].tool_calls == pytest.approx(29.5)


async def test_other_projects_and_runs_without_leases_teach_nothing(store, frozen_clock):
    run = SmallRun(store, frozen_clock)
    await run.create()
    await store.write(lambda ops: ops.patch("Task", f"{RUN}/task-0", {"status": "completed"}))
    await store.write(lambda ops: ops.patch("Run", RUN, {"status": RunStatus.FAILED.value}))
    assert await store.read(partial(estimates.of_run, run=RUN)) == {}
    took = {role_key(ROLE): [sample(1, 60, 1)]}
    await store.write(partial(estimates.save_samples, project="other", run="run-9", samples=took))
    assert await known(store, ROLE) == {}
