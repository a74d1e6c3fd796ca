"""`chain`, `execute`, `resume`, `cancel`, `apply`: their arguments, output and exit codes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mimir.domain.event import EventKind
from mimir.domain.finding import Finding
from mimir.domain.run import RunBudget, RunResult
from mimir.domain.task_states import RunStatus
from tests.support.fake_app import CREATED, DONE, RUN, FakeMimir, FakePlanned, Mimir, event

FINDING = Finding(
    code="plan-cycle",
    severity="error",
    message="a → b → a",
    suggestion="Take one away.",
    line=4,
    column=2,
)
STOPPED = RunResult(
    run=RUN,
    outcome=RunStatus.PAUSED,
    exit_code=75,
    message="The budget is used up.",
    next_step=f"mimir resume {RUN} --max-calls 20",
)


def ended(outcome: RunStatus, code: int, /, **more: object) -> RunResult:
    return replace(DONE, outcome=outcome, exit_code=code, **more)  # pyright: ignore[reportArgumentType]


def test_chain_plans_the_request_and_prints_the_next_command(mimir: Mimir, fake: FakeMimir):
    said = mimir("chain", "Add a limiter", "--ecko", "--model", "m", "--output", "new.md")
    assert said.code == 0
    assert fake.calls("plan") == [("Add a limiter", True, "new.md", "m")]
    assert said.out.splitlines() == [
        "chains/limiter/chain-output.md can run: 1 task.",
        "next: mimir execute chains/limiter",
    ]


def test_chain_with_a_plan_that_cannot_run_is_65_and_names_the_findings(
    mimir: Mimir, fake: FakeMimir
):
    fake.planned = FakePlanned(findings=(FINDING,), exit_code=65)
    said = mimir("chain", "Add a limiter")
    assert said.code == 65
    assert said.out.splitlines() == [
        "chains/limiter/chain-output.md:4:2: error plan-cycle: a → b → a",
        "    Take one away.",
        "chains/limiter/chain-output.md cannot run: 1 task, 1 error.",
        "next: mimir check chains/limiter",
    ]


def test_chain_for_scripts_is_one_object(mimir: Mimir, fake: FakeMimir):
    fake.planned = FakePlanned(findings=(FINDING,), exit_code=65)
    said = mimir("chain", "Add a limiter", "--json")
    assert said.code == 65
    assert said.shape["path"] == "chains/limiter/chain-output.md"
    assert said.shape["run"] == "plan-1"
    assert [task["id"] for task in said.shape["tasks"]] == ["task-0"]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]


def test_execute_runs_the_newest_plan_and_prints_its_results(mimir: Mimir, fake: FakeMimir):
    said = mimir("execute", "--yes")
    assert said.code == 0
    assert fake.calls("create_run") == [
        (("task-0", "task-1"), "chains/limiter/chain-output.md", (), RunBudget(), "")
    ]
    assert fake.calls("drive") == [(RUN, 4, "auto", RunBudget(), False)]
    assert said.out.splitlines() == [
        "chains/limiter/chain-output.md: 2 tasks",
        "   0:00  run           RunCreated: Limiter (2 tasks)",
        "completed",
        "1 of 1 tasks completed; criteria: 2 executed, 1 judged",
        "plan: chains/limiter/chain-output.md",
        "report: chains/limiter/execution-report.md",
        "store: .mimir/mimir.db",
        "seal: 5ea1",
        "applied: 1 file in your directory",
        "next: mimir report run-1",
        "next: mimir verify run-1",
    ]


def test_execute_passes_on_its_flags(mimir: Mimir, fake: FakeMimir):
    budget = ["--max-calls", "9", "--max-tokens", "99", "--time-limit", "2h", "--max-cost", "0.5"]
    more = ["--workers", "7", "--apply", "never", "--from", "run", "--model", "m"]
    said = mimir("execute", "limiter", "--yes", "--only", "task-0", *budget, *more)
    limits = RunBudget(max_calls=9, max_tokens=99, seconds=7200, max_cost=5 * 10**11)
    assert said.code == 0
    assert fake.calls("create_run")[0][2:] == (("task-0",), limits, RUN)
    assert fake.calls("drive") == [(RUN, 7, "never", limits, False)]
    assert fake.opened[0][1].settings.llm.model == "m"


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (RunStatus.COMPLETED, 0),
        (RunStatus.COMPLETED_WITH_GAPS, 1),
        (RunStatus.FAILED, 1),
        (RunStatus.CANCELLED, 1),
        (RunStatus.PAUSED, 75),
    ],
)
def test_the_outcome_is_the_exit_code(outcome: RunStatus, code: int, mimir: Mimir, fake: FakeMimir):
    fake.ending = ended(outcome, code)
    said = mimir("execute", "--yes")
    assert said.code == code
    assert outcome.value in said.out.splitlines()


def test_failed_run_proposes_to_reuse_its_completed_tasks(mimir: Mimir, fake: FakeMimir):
    fake.ending = ended(RunStatus.FAILED, 1, applied=(), message="task-1 failed.")
    said = mimir("execute", "--yes")
    assert "failed: task-1 failed." in said.out
    assert said.out.splitlines()[-1] == (
        "next: mimir execute chains/limiter/chain-output.md --from run-1"
    )


def test_paused_run_prints_cause_and_next_step(mimir: Mimir, fake: FakeMimir):
    fake.ending = STOPPED
    said = mimir("execute", "--yes")
    assert said.code == 75
    assert "paused: The budget is used up." in said.out
    assert said.out.splitlines()[-1] == f"next: {STOPPED.next_step}"


def test_execute_names_files_that_the_user_changed(mimir: Mimir, fake: FakeMimir):
    fake.ending = ended(RunStatus.COMPLETED, 0, applied=(), conflicts=("b.py", "c.py"))
    said = mimir("execute", "--yes")
    assert "not applied: you changed these files during the run: b.py, c.py" in said.out
    assert said.out.splitlines()[-1] == "next: mimir apply run-1"


def test_for_scripts_there_are_events_and_nothing_else(mimir: Mimir, fake: FakeMimir):
    fake.story = (
        CREATED,
        event(EventKind.TOOL_CALLED, "task-0", 1, role="worker", seq=0, title="\x1b[2Jls"),
        event(EventKind.RUN_FINISHED, outcome="completed"),
    )
    said = mimir("execute", "--yes", "--json")
    told = [json.loads(line) for line in said.out.splitlines()]
    assert [(one["seq"], one["event"]) for one in told] == [
        (1, "RunCreated"),
        (2, "ToolCalled"),
        (3, "RunFinished"),
    ]
    assert told[-1]["outcome"] == "completed"
    assert "\x1b" not in said.out
    assert said.err == ""


def test_pause_with_json_events_is_explained_on_standard_error(mimir: Mimir, fake: FakeMimir):
    fake.ending = STOPPED
    said = mimir("execute", "--yes", "--json")
    assert said.code == 75
    assert len(said.out.splitlines()) == 1
    assert said.err.splitlines() == [
        "paused: The budget is used up.",
        f"next: {STOPPED.next_step}",
    ]


def test_execute_of_a_request_plans_and_runs(mimir: Mimir, fake: FakeMimir):
    said = mimir("execute", "Add a limiter", "--yes", "--ecko")
    assert said.code == 0
    assert [name for name, *_ in fake.asked][:2] == ["plan", "create_run"]
    assert fake.calls("plan") == [("Add a limiter", True, None, "")]
    assert fake.calls("create_run")[0][:2] == (("task-0",), "chains/limiter/chain-output.md")


def test_execute_of_a_request_as_json_has_events_of_the_run_only(mimir: Mimir):
    said = mimir("execute", "Add a limiter", "--yes", "--json")
    assert [json.loads(line)["run"] for line in said.out.splitlines()] == [RUN]


def test_request_with_an_invalid_plan_exits_with_65_without_a_run(mimir: Mimir, fake: FakeMimir):
    fake.planned = FakePlanned(findings=(FINDING,), exit_code=65)
    said = mimir("execute", "Add a limiter", "--yes")
    assert said.code == 65
    assert "chain-output.md:4:2: error plan-cycle" in said.err
    assert fake.calls("create_run") == []


def test_flags_of_a_request_are_refused_with_a_plan(mimir: Mimir):
    assert mimir("execute", "limiter", "--ecko", "--yes").code == 2


def test_plan_with_errors_exits_with_65_before_the_store_opens(
    mimir: Mimir, fake: FakeMimir, project: Path
):
    plan = project / "chains" / "limiter" / "chain-output.md"
    plan.write_text(
        plan.read_text().replace("**Dependencies:** task-0", "**Dependencies:** task-7")
    )
    said = mimir("execute", "limiter", "--yes")
    assert said.code == 65
    assert "error dependency-unknown" in said.err
    assert fake.opened == []


def test_resume_continues_with_new_limits(mimir: Mimir, fake: FakeMimir):
    fake.told_before = 1
    fake.story = (CREATED, event(EventKind.RUN_RESUMED))
    said = mimir("resume", "run", "--workers", "2", "--max-calls", "50", "--model", "m")
    assert said.code == 0
    assert fake.calls("find_run") == [("run", True)]
    assert fake.calls("drive") == [(RUN, 2, "auto", RunBudget(max_calls=50), True)]
    assert fake.opened[0][2] is False
    assert said.out.splitlines()[0] == "   0:00  run           RunResumed"


def test_the_bounds_of_a_request_hold_for_planning_and_work_together(mimir: Mimir, fake: FakeMimir):
    fake.state = {"calls": 4, "tokens": 200, "cost": "0.20"}
    budget = ["--max-calls", "9", "--max-tokens", "99", "--max-cost", "0.5"]
    assert mimir("execute", "Add a limiter", "--yes", *budget).code == 0
    whole = RunBudget(max_calls=9, max_tokens=99, max_cost=5 * 10**11)
    assert fake.planning_limits == whole
    left = RunBudget(max_calls=5, max_tokens=0, max_cost=3 * 10**11)
    assert fake.calls("create_run")[0][3] == left


@pytest.mark.parametrize("amount", ["0", "-1", "1e3", "nan", "0.0000001", "100001", "2 EUR", "٣"])
def test_invalid_amount_of_money_is_wrong_usage(amount: str, mimir: Mimir, fake: FakeMimir):
    for command in (["execute", "limiter", "--yes"], ["resume"]):
        said = mimir(*command, f"--max-cost={amount}")
        assert said.code == 2
        assert "--max-cost" in said.err
    assert fake.opened == []


def test_run_started_without_apply_is_resumed_without_apply(mimir: Mimir, fake: FakeMimir):
    fake.state = {"apply": "never"}
    mimir("resume")
    mimir("resume", "--apply", "commit")
    assert [call[2] for call in fake.calls("drive")] == ["never", "commit"]


def test_cancel_ends_the_run_that_is_named(mimir: Mimir, fake: FakeMimir):
    said = mimir("cancel", "run-1")
    assert said.code == 0
    assert fake.calls("cancel") == [(RUN,)]
    assert said.out.splitlines()[0] == "cancelled: run-1"
    assert mimir("cancel", "run-1", "--json").shape["outcome"] == "cancelled"


def test_apply_names_applied_or_conflicting_files(mimir: Mimir, fake: FakeMimir):
    assert mimir("apply", "--commit").out.splitlines() == ["1 file applied.", "  a.py"]
    assert fake.calls("apply") == [(RUN, True)]
    fake.ending = ended(RunStatus.COMPLETED, 0, applied=(), conflicts=("b\x1b[2J.py",))
    said = mimir("apply")
    assert said.code == 1
    assert said.out.splitlines()[1] == "  b\\x1b[2J.py"
    assert mimir("apply", "--json").shape["conflicts"] == ["b\x1b[2J.py"]
