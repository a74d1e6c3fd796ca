from dataclasses import replace
from fractions import Fraction

import pytest

from mimir.domain.event import Event, EventKind
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.domain.verdict import CriterionResult, QCAnswer, Verdict
from mimir.reporting.summary.run_data import AttemptData, RunData, TaskData
from mimir_bench.faults.fault_outcome import find_catcher

RESULT = CriterionResult(
    id="c1",
    text="It is right",
    state="passed",
    basis="executed",
    points=Fraction(100),
    critical=False,
    quote="",
    source="",
    reason="",
)
DENIED = Event(seq=1, kind=EventKind.TOOL_DENIED, run="r", at="", task="t")


def judgement(verdict: str, state: str, basis: str) -> Verdict:
    said = QCAnswer(
        verdict=verdict,  # type: ignore[arg-type]
        score=Fraction(100),
        feedback="",
        issues=(),
        required_fixes=(),
        criteria=(),
        fixes=(),
        criteria_impossible=False,
    )
    result = replace(RESULT, state=state, basis=basis)
    return Verdict(
        passed=False,
        score=Fraction(0),
        model_score=Fraction(100),
        verdict=said,
        criteria=(result,),
        reasons=(),
        issues=(),
        required_fixes=(),
        fixes_failed=(),
        unverifiable=False,
        criteria_impossible=False,
        unsupported_claims=(),
    )


def run(
    cause: str,
    judged: Verdict | None = None,
    *,
    status: RunStatus = RunStatus.FAILED,
    task: TaskStatus = TaskStatus.FAILED,
    red: tuple[str, ...] = (),
    events: tuple[Event, ...] = (),
) -> RunData:
    attempt = AttemptData(
        id="r/t/1",
        number=1,
        cause=cause,
        issues=(),
        score=None,
        tool_calls=0,
        seconds=None,
        judgement=judged,
    )
    one = TaskData(
        id="t",
        node="r/t",
        title="T",
        status=task,
        cause=cause,
        blocked_by="",
        made=1,
        accepted=0,
        score=None,
        feedback="",
        max_retries=0,
        integration_retries=0,
        estimated_tool_calls=None,
        files_changed=(),
        commit="",
        taken_from="",
        attempts=(attempt,),
    )
    texts = dict.fromkeys(
        (
            *("id", "kind", "title", "request", "goal", "plan_path", "created_at"),
            *("engine_version", "sandbox", "base_commit", "head", "final_commit"),
            *("result_branch", "seal", "pause_reason", "pause_message"),
        ),
        "",
    )
    return RunData(**texts, status=status, gate_red=red, plan=None, tasks=(one,), events=events)


@pytest.mark.parametrize(
    ("data", "by"),
    [
        (run("", status=RunStatus.COMPLETED, task=TaskStatus.COMPLETED), ""),
        (run("check_failed"), "check"),
        (run("silent_no_op"), "no change"),
        (run("silent_no_op", events=(DENIED,)), "gateway"),
        (run("silent_no_op", events=(replace(DENIED, task="other"),)), "no change"),
        (run("refused_deliverable"), "refusal"),
        (run("integration"), "merge"),
        (run("qc_rejected", judgement("FAIL", "failed", "judged")), "judge"),
        (run("qc_rejected", judgement("PASS", "passed", "executed")), "score rule"),
        (run("unverifiable", judgement("PASS", "unverified", "executed")), "run before"),
        (run("unverifiable", judgement("PASS", "unverified", "judged")), "quote"),
        (run("", task=TaskStatus.COMPLETED, red=("Check 'unit' is red.",)), "final gate"),
        (
            run(
                "",
                judgement("PASS", "unverified", "executed"),
                status=RunStatus.COMPLETED_WITH_GAPS,
                task=TaskStatus.COMPLETED,
            ),
            "run before",
        ),
        (run("qc_unavailable"), "other"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_catcher_of_a_fault_is_the_deciding_part(data: RunData, by: str):
    assert find_catcher(data) == by
