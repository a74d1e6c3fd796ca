import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.cli.console import clean
from mimir.cli.live.line_output import as_json, as_line, clock
from mimir.domain.event import EventKind
from tests.support.fake_app import CREATED, event

NASTY: list[object] = [
    "\x1b[2J\n\u202e",
    None,
    3,
    -1.5,
    True,
    [],
    ["\x1b]0;x\x07"],
    {"a": "\x1b"},
    "x" * 9000,
]
KEYS = [
    "name", "tasks", "message", "reason", "outcome", "role", "path", "because", "title", "tool", "tokens",
    "calls", "detail", "kind", "lane", "tool_calls", "limit", "changed", "check", "phase", "exitCode",
    "state", "again", "flaky", "verdict", "passed", "score", "reasons", "cause", "issues", "checks", "red",
    "paths", "conflicts", "errors", "takenFrom",
]  # fmt: skip


@pytest.mark.parametrize("kind", EventKind)
def test_every_event_has_its_line(kind: EventKind):
    assert f"  {kind.value}" in as_line(event(kind, "task-0", 1), 5)


@given(
    st.sampled_from(EventKind),
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(NASTY)),
)
def test_each_event_is_one_line_without_control_codes(kind: EventKind, data: dict[str, object]):
    line = as_line(event(kind, "task\x1b[2J", 1, **data), 5)
    assert clean(line) == line
    assert len(line.splitlines()) == 1
    assert len(line) < 300


def test_line_has_time_task_attempt_and_event():
    told = event(
        EventKind.TOOL_CALLED,
        "task-1",
        2,
        role="worker",
        tool="run",
        title="run pytest -q",
        calls=3,
    )
    assert as_line(told, 62) == "   1:02  task-1/2      ToolCalled: worker run pytest -q (call 3)"


def test_a_line_of_the_run_itself_names_no_task():
    assert as_line(CREATED, 0) == "   0:00  run           RunCreated: Limiter (2 tasks)"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"passed": True, "verdict": "PASS", "score": 95.0}, "passed, score 95"),
        ({"passed": False, "verdict": "FAIL", "score": 40}, "rejected, score 40"),
        (
            {"passed": False, "verdict": "PASS", "score": 50, "reasons": ["Check 'unit' failed."]},
            "rejected (QC answered PASS), score 50, Check 'unit' failed.",
        ),
    ],
)
def test_verdict_line_has_the_engine_verdict_and_the_qc_answer(data: dict[str, object], said: str):
    assert as_line(event(EventKind.VERDICT_GIVEN, "t", 1, **data), 0).endswith(f": {said}")


def test_check_line_has_phase_exit_code_and_state():
    data = {"check": "unit", "phase": "after", "exitCode": 1, "state": "failed", "again": True}
    line = as_line(event(EventKind.CHECK_RUN, "t", 1, **data), 0)
    assert line.endswith("CheckRun: unit after: exit 1, failed, run again")
    lost = as_line(event(EventKind.CHECK_RUN, "t", 1, **{**data, "exitCode": None}), 0)
    assert "did not end" in lost


def test_scripts_get_the_events_own_keys_and_its_data():
    told = event(EventKind.TOOL_CALLED, "task-1", 2, role="worker", seq=7, tokens=0)
    assert as_json(told) == {
        "schema": 1,
        "seq": 0,
        "event": "ToolCalled",
        "run": "run-1",
        "task": "task-1",
        "attempt": 2,
        "at": CREATED.at,
        "role": "worker",
        "call": 7,
        "tokens": 0,
    }


@given(st.dictionaries(st.text(), st.integers()))
def test_data_of_an_event_never_replaces_its_own_members(data: dict[str, int]):
    told = as_json(event(EventKind.WARNING, "task-1", 2, **{**data, "event": "RunFinished"}))
    assert (told["event"], told["run"], told["task"]) == ("Warning", "run-1", "task-1")
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0:00"), (61.9, "1:01"), (3600, "1:00:00"), (-3, "0:00")]
)
def test_durations_are_short(seconds: float, said: str):
    assert clock(seconds) == said
