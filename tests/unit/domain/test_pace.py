import pytest

from mimir.domain.pace import TaskTime, measure_pace


def test_lower_bound_is_the_longer_of_critical_path_and_work_on_all_agents():
    tasks = {
        "a": TaskTime(seconds=10, has_ended=True),
        "b": TaskTime(seconds=30, has_ended=True, dependencies=("a", "elsewhere")),
        "c": TaskTime(seconds=20, has_ended=True),
    }
    alone, together = measure_pace(tasks, 1), measure_pace(tasks, 4)
    assert alone is not None
    assert together is not None
    assert (alone.bound_seconds, together.bound_seconds) == (60, 40)
    assert together.path == ("a", "b")
    assert together.left_seconds == 0


def test_open_task_is_estimated_by_the_mean_or_its_own_time():
    tasks = {
        "a": TaskTime(seconds=10, has_ended=True),
        "b": TaskTime(seconds=4, dependencies=("a",)),
        "c": TaskTime(seconds=25, dependencies=("a",)),
        "d": TaskTime(dependencies=("b",)),
    }
    pace = measure_pace(tasks, 2)
    assert pace is not None
    assert pace.left_seconds == 16
    assert (pace.bound_seconds, pace.path) == (35, ("a", "c"))


@pytest.mark.parametrize(
    "tasks",
    [
        {},
        {"a": TaskTime(seconds=5)},
        {
            "a": TaskTime(seconds=5, has_ended=True, dependencies=("b",)),
            "b": TaskTime(dependencies=("a",)),
        },
    ],
)
def test_pace_without_an_ended_task_or_with_a_cycle_is_none(tasks: dict[str, TaskTime]):
    assert measure_pace(tasks, 2) is None
