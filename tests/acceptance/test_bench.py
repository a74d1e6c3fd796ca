"""The benchmarks on the real engine, at their smallest."""

import pytest

from mimir.bench import virtual
from mimir.bench.multi import stage as context
from mimir.bench.multi.case import Case as Project
from mimir.bench.schedule import families, stage
from mimir.bench.schedule.families import Job
from mimir.bench.schedule.stage import Case


def test_a_task_waits_for_its_own_dependencies_and_for_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
):
    # Level by level this takes 30 + 30 seconds; by its dependencies 1 + 30.
    graph = [Job(seconds=30.0), Job(seconds=1.0), Job(seconds=30.0, needs=(1,))]
    monkeypatch.setitem(families.FAMILIES, "small", lambda draw: graph)
    case = Case(family="small", seed=1, workers=2)

    took = virtual.run(lambda loop: stage._all([case], lambda store: virtual.Known(store, loop)))

    assert took == [pytest.approx(31.0, abs=0.5)]


def test_one_agent_and_many_are_counted_by_the_same_store():
    case = Project(tasks=2, files=3, workers=2)

    one, many = virtual.run(
        lambda loop: context._both(case, lambda store: virtual.Known(store, loop))
    )

    assert (one.agents, one.calls) == (1, 7)  # two to look around, then read and write, twice; end
    assert many.planner_largest > 0
    assert many.calls > one.calls
    assert many.largest < one.largest
    # Each of the one agent's answers takes two seconds, and nothing else any time.
    assert one.seconds == pytest.approx(14.0, abs=0.5)
