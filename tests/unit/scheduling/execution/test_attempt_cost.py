"""The store reads of an attempt do not grow with the plan, nor with the attempts of other tasks."""

from functools import partial

import pytest

from mimir.agents.context.qc import MOST_RELATED
from mimir.domain.plan import Plan, Task
from mimir.scheduling.execution.preparation import TaskView
from mimir.store.operations import claims
from mimir.store.operations.record_loading import load_task_attempts
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.run_services import facts_of
from tests.support.small_run import RUN, SmallRun
from tests.support.stores import Around, opened


class Counted:
    """One view of the store that counts the rows it gives."""

    def __init__(self, reads) -> None:
        self._reads = reads
        self.rows = 0

    def __getattr__(self, verb: str):
        def asked(*given, **named):
            found = getattr(self._reads, verb)(*given, **named)
            self.rows += len(found) if isinstance(found, list) else 1
            return found

        return asked


class CountingStore(Around):
    """A store that remembers how many rows its last question gave."""

    def __init__(self, store) -> None:
        super().__init__(store)
        self.rows = 0

    async def read(self, work, **how):
        def counted(reads):
            view = Counted(reads)
            found = work(view)
            self.rows = view.rows
            return found

        return await super().read(counted, **how)


def wide(count: int) -> Plan:
    """Return a first task, `count` that need it, and a last one that needs all of these."""
    given = {"prompt": "p", "worker_role": "w"}
    middle = tuple(f"m{n:03}" for n in range(count))
    return Plan(
        title="wide",
        tasks=(
            Task(id="first", title="first", **given),
            *(Task(id=id, title=id, dependencies=("first",), **given) for id in middle),
            Task(id="last", title="last", dependencies=middle, **given),
        ),
    )


@pytest.fixture
async def asked(tmp_path, frozen_clock):
    """Return how many rows it takes to look around a task, in a plan of this width; every attempt of it is made."""

    async def measure(count: int, task: str) -> tuple[int, int]:
        plan = wide(count)
        async with opened(SqliteStore(tmp_path / f"{count}.db", frozen_clock)) as store:
            run = SmallRun(store, frozen_clock, plan=plan)
            await run.create()
            ready = [(one.id, 1.0) for one in plan.tasks]
            await store.write(partial(claims.release_task, run=RUN, ready=ready))
            take = partial(claims.claim, run=RUN, owner="me", lease_seconds=60, limit=count + 2)
            assert len(await store.write(take)) == count + 2
            counting = CountingStore(store)
            known = facts_of(RUN, plan)
            await counting.read(lambda reads: TaskView.look(reads, known, known.tasks[task]))
            around = counting.rows
            assert len(await counting.read(partial(load_task_attempts, run=RUN, task=task))) == 1
            return around, counting.rows

    return measure


async def test_a_task_in_the_middle_costs_the_same_in_a_plan_of_any_width(asked):
    assert await asked(5, "m001") == await asked(200, "m001")


async def test_of_many_tasks_around_one_only_those_that_are_shown_are_read(asked):
    around, attempts = await asked(200, "first")
    assert around <= MOST_RELATED + 5
    assert attempts == 2


async def test_of_a_task_with_many_dependencies_each_is_read_once_and_again_only_if_it_is_shown(
    asked,
):
    around, _ = await asked(200, "last")
    assert around <= 200 + MOST_RELATED + 5
