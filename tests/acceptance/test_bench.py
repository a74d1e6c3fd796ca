"""The benchmarks on the real engine, at their smallest."""

import pytest

from mimir_bench import virtual_time
from mimir_bench.engine import benchmark as engine
from mimir_bench.engine import workload
from mimir_bench.engine.control_protocol import model_server
from mimir_bench.engine.workload import Workload
from mimir_bench.multi import multi_run as context
from mimir_bench.multi.multi_case import MultiCase as Project
from mimir_bench.scale import benchmark as scale
from mimir_bench.schedule import graph_families, schedule_run
from mimir_bench.schedule.graph_families import TimedTask
from mimir_bench.schedule.schedule_run import ScheduleCase


def test_a_task_waits_for_its_own_dependencies_and_for_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
):
    # Level by level this takes 30 + 30 seconds; by its dependencies 1 + 30.
    graph = [TimedTask(seconds=30.0), TimedTask(seconds=1.0), TimedTask(seconds=30.0, needs=(1,))]
    monkeypatch.setitem(graph_families.FAMILIES, "small", lambda draw: graph)
    case = ScheduleCase(family="small", seed=1, workers=2)

    took = virtual_time.run(
        lambda loop: schedule_run._all(
            [case], lambda store: virtual_time.VirtualTimeStore(store, loop)
        )
    )

    assert took == [pytest.approx(31.0, abs=0.5)]


def test_one_agent_and_many_are_counted_by_the_same_store():
    case = Project(tasks=2, files=3, workers=2)

    one, many = virtual_time.run(
        lambda loop: context._both(case, lambda store: virtual_time.VirtualTimeStore(store, loop))
    )

    assert (one.agents, one.calls) == (1, 7)  # two to look around, then read and write, twice; end
    assert many.planner_largest > 0
    assert many.calls > one.calls
    assert many.largest < one.largest
    # Each of the one agent's answers takes two seconds, and nothing else any time.
    assert one.seconds == pytest.approx(14.0, abs=0.5)


def _quiet(_said: object) -> None:
    """Discard the message."""


async def test_benchmark_side_repeats_its_workload_as_often_as_configured():
    load = Workload(tasks=3)
    async with model_server() as url:
        desk = engine._MeasurementServices(url=url, say=_quiet, scope=engine.SCOPES["smoke"])
        took = await desk.measure_repeatedly({"httpx2": 1, "mimir": 2}, load)

    floor, (first, second) = took["httpx2"][0], took["mimir"]
    assert {one.meter["calls"] for one in (floor, first, second)} == {workload.calls(load) + 1}
    assert second.stored_bytes > 0
    assert second.peak_bytes >= first.peak_bytes > floor.peak_bytes


async def test_tasks_are_claimed_once_by_one_process_and_by_several():
    result = await scale.run("smoke", store="", say=_quiet, keep=_quiet)

    told = {(row["figure"], row["of"]): row["count"] for row in result.rows if "count" in row}
    for of in ("SQLite, 1 process", "SQLite, 2 processes"):
        assert (told["tasks completed", of], told["tasks claimed", of]) == (20, 20)
