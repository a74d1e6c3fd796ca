"""Messages of the demo about its kill: its earliest point, and its cost."""

from mimir.demo.crash_demo import PHASE_NAMES, CrashCost, count_cost, find_acting_tasks
from mimir.domain.event import Event, EventKind
from mimir.domain.task_states import EXECUTING, TaskStatus


def event(at: int, kind: EventKind, task: str = "", **data: object) -> Event:
    return Event(seq=at, kind=kind, run="r", at="", task=task, attempt=1, data=data)


def begun(at: int, task: str) -> Event:
    return event(at, EventKind.ATTEMPT_STARTED, task, to="worker_executing")


def acted(at: int, task: str, number: int = 0) -> Event:
    return event(at, EventKind.TOOL_CALLED, task, role="worker", seq=number)


def test_a_task_is_under_way_once_its_worker_has_acted():
    events = [begun(1, "a"), begun(2, "b"), acted(3, "a")]
    assert find_acting_tasks(events) == {"a": TaskStatus.WORKER_EXECUTING}
    assert set(find_acting_tasks([*events, acted(4, "b")])) == {"a", "b"}


def test_completed_task_is_not_an_acting_task():
    done = event(4, EventKind.TASK_COMPLETED, "a", to="completed")
    assert find_acting_tasks([begun(1, "a"), acted(2, "a"), done]) == {}


def test_new_attempt_is_not_yet_an_acting_task():
    again = event(3, EventKind.TASK_RETRIED, "a", to="preparing_retry")
    assert find_acting_tasks([begun(1, "a"), acted(2, "a"), again, begun(4, "a")]) == {}


def test_repeated_calls_are_counted():
    events = [acted(1, "a", 0), acted(2, "a", 1), acted(3, "b", 0), acted(4, "a", 1)]
    assert count_cost(events, 2) == CrashCost(before=2, after=2, repeated=1)
    assert count_cost(events[:3], 2) == CrashCost(before=2, after=1, repeated=0)


def test_each_phase_of_execution_has_a_name():
    assert set(PHASE_NAMES) == set(EXECUTING)
