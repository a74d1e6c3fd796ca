"""Effect of the control of a check on a verdict."""

from fractions import Fraction

from mimir.domain.evidence import CheckOutcome, CheckRun, ControlResult, ControlState
from mimir.domain.plan import Check, Criterion, Task
from mimir.domain.test_results import TestResults
from mimir.domain.verdict import CriterionOpinion, CriterionResult, QCAnswer, State, Verdict
from mimir.qc.judgement.control_rules import apply_controls, describe_checks
from mimir.qc.judgement.score import rejection_cause

TASK = Task(
    id="t",
    title="t",
    prompt="p",
    worker_role="w",
    criteria=(Criterion(id="c1", text="It works", points=Fraction(100)),),
    checks=(Check(id="unit", criteria=("c1",), run=("t",), kind="hold"),),
)


def verdict(opinion: State = "passed") -> Verdict:
    answer = QCAnswer(
        verdict="PASS", score=Fraction(100), criteria=(CriterionOpinion(id="c1", state=opinion),)
    )
    result = CriterionResult(
        id="c1", text="It works", state="passed", basis="executed", points=Fraction(100)
    )
    return Verdict(
        passed=True,
        score=Fraction(100),
        model_score=Fraction(100),
        verdict=answer,
        criteria=(result,),
    )


def control(state: ControlState, reason: str = "") -> CheckRun:
    result = ControlResult(state=state, method="changed expectations", reason=reason)
    return CheckRun(
        check="unit", argv=("t",), phase="control", tree="t", exit_code=1, control=result
    )


def test_a_red_control_leaves_the_verdict_as_it_is():
    assert apply_controls(verdict(), TASK, [control("red")]) == verdict()
    assert apply_controls(verdict(), TASK, []) == verdict()


def test_an_insensitive_check_rejects_the_attempt_and_its_finding_reaches_the_retry():
    found = apply_controls(verdict(), TASK, [control("insensitive", "It passed anyway.")])

    assert not found.passed
    assert not found.unverifiable
    assert found.criteria[0].state == "unverified"
    assert "Check 'unit' is insensitive: It passed anyway." in found.issues
    assert len(found.required_fixes) == 1
    cause = rejection_cause(found, ())
    assert cause is not None
    assert cause.value == "check_failed"


def test_a_check_that_the_task_does_not_exercise_leaves_the_criterion_to_qc():
    held = apply_controls(verdict(), TASK, [control("unexercised")])
    doubted = apply_controls(verdict("unverified"), TASK, [control("unexercised")])

    assert held.passed
    assert (held.criteria[0].basis, held.criteria[0].source) == ("judged", "check:unit")
    assert not doubted.passed
    assert doubted.unverifiable


def test_a_check_is_described_by_its_tests_and_its_control():
    results = TestResults(runner="pytest", passed=("t::a", "t::b"), skipped=("t::c",))
    run = CheckRun(check="unit", argv=("t",), phase="after", tree="t", exit_code=0, results=results)
    outcome = CheckOutcome(
        check="unit", state="passed", required=True, kind="hold", before=run, after=run
    )
    assert describe_checks((outcome,), (control("red"),)) == (
        "unit: 2 of 2 tests, 1 skipped, control red",
    )
    assert describe_checks((outcome,), ()) == (
        "unit: 2 of 2 tests, 1 skipped, executed (no control)",
    )
