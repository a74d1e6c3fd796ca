from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mimir.cli.live.board import WORDS, RunBoard, begin, fold, number
from mimir.domain.event import Event, EventKind
from mimir.domain.task_states import TaskStatus
from tests.support.fake_app import CREATED, event, numbered

STATUS = {
    "run": "run-1",
    "title": "Limiter",
    "tasks": [{"id": "task-0", "title": "Look", "limit": 12}, {"id": "task-1", "limit": None}],
}
WALK = [
    CREATED,
    event(EventKind.TASK_READY, "task-0"),
    event(EventKind.ATTEMPT_STARTED, "task-0", 1, **{"from": "pending", "to": "worker_executing"}),
    event(EventKind.MODEL_CALLED, "task-0", 1, role="worker", tokens=900, calls=4),
    event(
        EventKind.TOOL_CALLED,
        "task-0",
        1,
        role="worker",
        tool="run",
        title="run pytest -q",
        calls=1,
    ),
]
"""A task that works."""


def after(*more: Event) -> RunBoard:
    return fold(begin(STATUS), numbered([*WALK, *more]))


def moved(kind: EventKind, to: TaskStatus, /, **data: object) -> Event:
    return event(kind, "task-0", 1, **data, **{"from": "x", "to": to.value})


def test_names_and_limits_are_known_before_anything_happens():
    board = begin(STATUS)
    assert board.title == "Limiter"
    assert [(row.task, row.title, row.limit) for row in board.rows.values()] == [
        ("task-0", "Look", 12),
        ("task-1", "", None),
    ]


def test_board_gets_the_tasks_from_the_first_event():
    assert list(fold(RunBoard(), [CREATED]).rows) == ["task-0", "task-1"]


def test_a_working_task_shows_its_tool_and_calls():
    row = after().rows["task-0"]
    assert (row.phase, row.attempt, row.activity, row.calls) == ("working", 1, "run pytest -q", 1)
    assert row.is_running


def test_the_run_counts_its_calls_and_tokens():
    board = after(event(EventKind.MODEL_CALLED, "", 0, role="pm", tokens=100, calls=5))
    assert (board.calls, board.tokens) == (5, 1000)


def test_calls_of_other_roles_are_not_the_workers():
    row = after(event(EventKind.TOOL_CALLED, "task-0", 1, role="qc", tool="grep", calls=9)).rows
    assert row["task-0"].calls == 1
    assert row["task-0"].activity == "grep"


def test_a_denied_call_is_shown_and_counted():
    board = after(
        event(EventKind.TOOL_DENIED, "task-0", 1, role="worker", tool="write_file", calls=2)
    )
    assert board.rows["task-0"].activity == "denied: write_file"
    assert board.rows["task-0"].calls == 2


def test_a_released_task_is_ready():
    assert after(event(EventKind.TASK_READY, "task-1")).rows["task-1"].phase == "ready"
    assert after().rows["task-1"].phase == "waiting"


def test_a_verdict_shows_its_score():
    board = after(
        moved(
            EventKind.VERDICT_GIVEN, TaskStatus.QC_FAILED, score=66.7, passed=False, verdict="FAIL"
        )
    )
    assert board.rows["task-0"].score == 66.7
    assert board.rows["task-0"].phase == "rejected"


def test_board_shows_the_cause_of_a_retry_and_resets_the_next_attempt():
    why = {"reason": "check_failed", "issues": ["test_adds failed"]}
    retried = moved(EventKind.TASK_RETRIED, TaskStatus.PREPARING_RETRY, **why)
    board = after(retried)
    assert board.rows["task-0"].note == "check failed: test_adds failed"
    assert board.rows["task-0"].phase == "retrying"
    again = event(EventKind.ATTEMPT_STARTED, "task-0", 2, to="worker_executing")
    row = after(retried, again).rows["task-0"]
    assert (row.attempt, row.calls, row.note, row.score) == (2, 0, "", None)


def test_live_output_keeps_the_last_rejection_and_drops_preambles():
    made = event(EventKind.PREAMBLE_MADE, role="worker")
    assert after(made).note == "preamble: worker"
    started = event(EventKind.ATTEMPT_STARTED, "task-1", 1)
    assert after(made, started).note == ""
    retried = event(EventKind.TASK_RETRIED, "task-0", 1, cause="check_failed", issues=["red"])
    assert after(retried, started).note == "rejected: task-0 #1: check failed: red"


def test_a_task_that_ended_has_its_time():
    row = after(moved(EventKind.TASK_COMPLETED, TaskStatus.COMPLETED, score=100)).rows["task-0"]
    assert row.status is TaskStatus.COMPLETED
    assert row.since is not None
    assert row.until == row.since + 3


def test_blocked_task_names_its_cause():
    board = after(event(EventKind.TASK_BLOCKED, "task-1", because="task-0", to="blocked"))
    assert board.rows["task-1"].note == "task-0"
    assert board.count(TaskStatus.BLOCKED) == 1


def test_the_end_and_a_pause_are_outcomes_and_a_resumed_run_has_none():
    paused = event(EventKind.RUN_PAUSED, outcome="paused", message="No budget left.")
    assert after(paused).outcome == "paused"
    assert after(paused).note == "No budget left."
    assert after(paused, event(EventKind.RUN_RESUMED)).outcome == ""


def test_a_status_or_a_time_of_a_later_version_changes_nothing_else():
    odd = replace(event(EventKind.CHECK_RUN, "task-0", 1, to="dreaming"), at="yesterday")
    board = fold(after(), [odd])
    assert board.rows["task-0"].status is TaskStatus.WORKER_EXECUTING
    assert board.now == after().now


@given(st.integers(min_value=0, max_value=len(WALK)))
def test_fold_does_not_depend_on_portions(cut: int):
    events = numbered(WALK)
    whole = fold(begin(STATUS), events)
    assert fold(fold(begin(STATUS), events[:cut]), events[cut:]) == whole


def test_every_status_has_a_label():
    assert set(WORDS) == set(TaskStatus)
    assert max(map(len, WORDS.values())) <= 9


def test_numbers_are_read_in_every_form_and_nothing_else_is():
    assert [number(v) for v in (3, 2.5, "200/4", "7")] == [3.0, 2.5, 50.0, 7.0]
    assert [number(v) for v in (None, True, "x", "1/0", [], "1/2/3")][:4] == [None] * 4
