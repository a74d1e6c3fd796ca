"""The brief of a retry: causes first, commands as in the plan, no mere consequences."""

from mimir.domain.evidence import CheckOutcome, CheckRun
from mimir.domain.plan import Check
from mimir.domain.verdict import CriterionOpinion, QCAnswer
from mimir.qc.judgement.score import ScoreInput, decide_verdict, select_causes
from mimir.scheduling.execution.earlier_attempts import quote_commands
from tests.support.plans import task

CHECK = Check(id="unit", criteria=("c1",), run=("python", "-c", "print('a b')"))
TASK = task("task-1", checks=(CHECK,))


def test_causes_of_a_rejection_are_the_engines_findings_and_then_those_of_qc():
    run = CheckRun(check="unit", argv=CHECK.argv, phase="after", tree="t", exit_code=1)
    outcome = CheckOutcome(
        check="unit", state="failed", required=True, kind="flip", before=run, after=run
    )
    answer = QCAnswer(
        verdict="FAIL",
        score=45,
        issues=("The bucket never refills.",),
        criteria=(CriterionOpinion(id="c1", state="failed"),),
    )
    verdict = decide_verdict(ScoreInput(task=TASK, verdict=answer, outcomes=(outcome,), sources={}))
    stored = (*verdict.issues, *verdict.reasons)
    assert any("below 80" in one for one in stored)

    causes = quote_commands(TASK, select_causes(verdict, stored))

    assert causes == (
        "Check 'unit' failed (exit 1): python -c 'print('\"'\"'a b'\"'\"')'",
        "The bucket never refills.",
    )


def test_rejection_without_a_cause_keeps_the_derived_causes():
    answer = QCAnswer(verdict="FAIL", score=45)
    verdict = decide_verdict(ScoreInput(task=TASK, verdict=answer, outcomes=(), sources={}))
    assert (
        "QC's verdict is FAIL." in select_causes(verdict, verdict.reasons) or verdict.unverifiable
    )
