"""Verdict rules: the QC answer and the checks decide on an attempt. Pure, fail-closed.

- A criterion with a required check is *executed*: it passes if all these checks passed and QC did not call it `failed`. QC's
  `unverified` yields to a passed check; a check's `unverified` stays.
- A `broken` check decides nothing: a criterion that has only broken ones, or passed only with them, is judged. If it stays unverified,
  that prevents no pass: the fault is that of the plan. The run ends with gaps.
- Any other criterion is *judged*: it passes if QC calls it passed with a verified quote; `failed` needs no quote.
- Score = 100 × points of passed criteria ÷ points of decided ones (passed or failed), in fractions; 0 if none is decided.
- An attempt passes if the QC answer is PASS, both scores are at least 80, no required check, critical criterion or earlier required fix
  failed, no protected file changed, and no critical criterion and at most half of the points are unverified.
- It is *unverifiable* if only unverified criteria prevent a pass, so that no retry could help. A FAIL that names no failed criterion,
  issue or fix is no further reason.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction

from mimir.domain.evidence import CheckOutcome
from mimir.domain.plan import Task, weights
from mimir.domain.task_states import Cause
from mimir.domain.value_class import value_class
from mimir.domain.verdict import CriterionOpinion, CriterionResult, QCAnswer, State, Verdict
from mimir.qc.judgement.quotes import (
    NO_COMMANDS,
    Commands,
    Sources,
    explain_missing_quote,
)
from mimir.qc.judgement.verdict_parser import PASS_SCORE

INSENSITIVE = " is insensitive: "
"""Part of a reason: a required check passed with changed expectations."""
HALF = Fraction(50)
"""Of 100 points; if more are unverified, the attempt cannot pass."""


@value_class
class ScoreInput:
    """Input of a verdict."""

    task: Task
    verdict: QCAnswer
    outcomes: Sequence[CheckOutcome]
    """Of the task's checks; an absent one counts as `unverified`."""
    sources: Sources
    """Texts that QC may quote."""
    commands: Commands = field(default_factory=lambda: NO_COMMANDS)
    fixes: Sequence[str] = ()
    """Required fixes of the previous attempt; QC's fix 1 is the first."""
    protected: Sequence[str] = ()
    """Protected files that the attempt changed."""
    unsupported: Sequence[str] = ()
    """Claims of the worker's answer that its tool log does not support; informative only."""


def decide_verdict(case: ScoreInput) -> Verdict:
    """Decide the verdict on one attempt."""
    verdict = case.verdict
    results = tuple(_results(case))
    score = score_of(results)
    failed_fixes = tuple(f.index for f in verdict.fixes if f.state == "failed")
    gaps = find_gaps(results, _excused_criteria(case))
    repairable = [*_failures(case, results), *_rejections(case, results, score, failed_fixes, gaps)]
    passed = not repairable and not gaps and verdict.verdict == "PASS"
    engine = list(_engine_fixes(case, failed_fixes))
    return Verdict(
        passed=passed,
        score=score,
        model_score=verdict.score,
        verdict=verdict,
        criteria=results,
        reasons=(*repairable, *gaps),
        issues=_deduplicate((*verdict.issues, *(issue for issue, _ in engine))),
        required_fixes=()
        if passed
        else _deduplicate((*verdict.required_fixes, *(f for _, f in engine))),
        fixes_failed=failed_fixes,
        unverifiable=bool(gaps) and not repairable,
        criteria_impossible=verdict.criteria_impossible and verdict.verdict == "FAIL",
        unsupported_claims=tuple(case.unsupported),
    )


def judge_without_criteria() -> Verdict:
    """Return the engine's own judgement on a task that has no criteria: it proves nothing."""
    own = QCAnswer(verdict="PASS", score=Fraction(0))
    return Verdict(passed=True, score=own.score, model_score=own.score, verdict=own, criteria=())


def judge_by_checks(
    task: Task,
    outcomes: Sequence[CheckOutcome],
    *,
    protected: Sequence[str] = (),
    unsupported: Sequence[str] = (),
) -> Verdict:
    """Return the verdict of the checks alone; what they do not decide stays unverified."""
    own = QCAnswer(verdict="PASS", score=Fraction(100))
    case = ScoreInput(
        task=task,
        verdict=own,
        outcomes=outcomes,
        sources={},
        protected=protected,
        unsupported=unsupported,
    )
    verdict = decide_verdict(case)
    # No model gave a score.
    return replace(verdict, model_score=verdict.score, verdict=replace(own, score=verdict.score))


def reject_uncited(verdict: Verdict, faults: Sequence[str]) -> Verdict:
    """Return the verdict on an answer that must be cited: each fault is to be corrected."""
    if not faults:
        return verdict
    return replace(
        verdict,
        passed=False,
        reasons=(*verdict.reasons, *faults),
        issues=_deduplicate((*verdict.issues, *faults)),
        required_fixes=_deduplicate((*verdict.required_fixes, *faults)),
        unverifiable=False,
    )


def rejection_cause(judgement: Verdict, outcomes: Sequence[CheckOutcome]) -> Cause | None:
    """Return the cause of a rejection; None: the attempt passed."""
    if judgement.passed:
        return None
    # The order is that of the remedies: no retry helps the first two.
    if judgement.criteria_impossible:
        return Cause.CRITERIA_IMPOSSIBLE
    if judgement.unverifiable:
        return Cause.UNVERIFIABLE
    is_insensitive = any(INSENSITIVE in reason for reason in judgement.reasons)
    if is_insensitive or any(one.required and one.state == "failed" for one in outcomes):
        return Cause.CHECK_FAILED
    return Cause.QC_REJECTED


def select_causes(verdict: Verdict, issues: Sequence[str]) -> tuple[str, ...]:
    """Return the issues of a rejection, the engine's first, without derived reasons."""
    own = [one for one in verdict.issues if one not in verdict.verdict.issues]
    gaps = find_gaps(verdict.criteria)
    derived = {one for one in verdict.reasons if one not in gaps and INSENSITIVE not in one}
    causes = _deduplicate(
        (*(one for one in own if one in issues), *(one for one in issues if one not in derived))
    )
    # A FAIL without a reason leaves only what was derived.
    return causes or tuple(issues)


def score_of(results: Sequence[CriterionResult]) -> Fraction:
    """Return 100 × points passed ÷ points decided; 0 if none is decided."""
    won = _points(results, "passed")
    decided = won + _points(results, "failed")
    return won * 100 / decided if decided else Fraction(0)


def _points(results: Sequence[CriterionResult], state: State) -> Fraction:
    return sum((result.points for result in results if result.state == state), Fraction(0))


def _results(case: ScoreInput) -> Iterator[CriterionResult]:
    share = weights(case.task.criteria)
    outcomes = {outcome.check: outcome for outcome in case.outcomes}
    opinions = {opinion.id: opinion for opinion in case.verdict.criteria}
    for criterion in case.task.criteria:
        opinion = opinions.get(criterion.id) or CriterionOpinion(
            id=criterion.id, state="unverified"
        )
        checks = required_checks(case.task, criterion.id)
        broken = [id for id in checks if id in outcomes and outcomes[id].state == "broken"]
        deciding = [(id, outcomes.get(id)) for id in checks if id not in broken]
        state, reason = _decide_by_checks(deciding, opinion) if deciding else ("passed", "")
        is_judged = not checks or (bool(broken) and state == "passed")
        fault = explain_missing_quote(opinion.quote, opinion.source, case.sources, case.commands)
        if is_judged:
            state, reason = _decide_by_quote(opinion, fault)
        if broken:
            reason = " ".join(filter(None, (f"check {broken[0]!r} is broken", reason)))
        yield CriterionResult(
            id=criterion.id,
            text=criterion.text,
            state=state,
            basis="judged" if is_judged else "executed",
            points=share[criterion.id],
            critical=criterion.critical,
            quote="" if fault else opinion.quote,
            source="" if fault else opinion.source.strip(),
            reason=reason,
        )


def required_checks(task: Task, criterion: str) -> list[str]:
    """Return the ids of the required checks of a criterion."""
    return [c.id for c in task.checks if c.required and criterion in c.criteria]


def _decide_by_checks(
    checks: Sequence[tuple[str, CheckOutcome | None]], opinion: CriterionOpinion
) -> tuple[State, str]:
    """Decide a criterion that has required checks."""
    states = {id: outcome.state if outcome else "unverified" for id, outcome in checks}
    # One failed check outweighs all others, also unverified ones.
    if failed := [id for id, state in states.items() if state == "failed"]:
        return "failed", f"check {failed[0]!r} failed"
    if opinion.state == "failed":
        return "failed", "QC found it failed"
    for id, outcome in checks:
        if outcome is None:
            return "unverified", f"check {id!r} was not run"
        if outcome.state == "unverified":
            return "unverified", " ".join((f"check {id!r} proves nothing.", *outcome.findings))
    return "passed", ""


def _decide_by_quote(opinion: CriterionOpinion, fault: str) -> tuple[State, str]:
    """Decide a criterion by QC's quote; `fault` is why it does not count."""
    match opinion.state:
        case "failed":
            return "failed", "QC found it failed"
        case "unverified":
            return "unverified", "QC could not verify it"
        case "passed":
            return ("unverified", f"QC calls it passed, but {fault}") if fault else ("passed", "")


def _failures(case: ScoreInput, results: Sequence[CriterionResult]) -> Iterator[str]:
    """Yield the engine's own reasons against the attempt."""
    for outcome in _failed_checks(case):
        yield f"The required check {outcome.check!r} failed."
    for path in case.protected:
        yield f"The protected file {path!r} was changed."
    for result in results:
        if result.critical and result.state == "failed":
            yield f"The critical criterion {result.id} failed: {result.reason}."


def _rejections(
    case: ScoreInput,
    results: Sequence[CriterionResult],
    score: Fraction,
    failed_fixes: Sequence[int],
    gaps: Sequence[str],
) -> Iterator[str]:
    """Yield the reasons of QC and of the score against the attempt."""
    verdict = case.verdict
    for index in failed_fixes:
        yield f"Required fix {index} of the attempt before is still not done."
    named = verdict.issues or verdict.required_fixes or verdict.criteria_impossible
    failed = any(result.state == "failed" for result in results)
    if verdict.verdict == "FAIL" and (named or failed or not gaps):
        yield "QC's verdict is FAIL."
    if verdict.verdict == "PASS" and verdict.score < PASS_SCORE:
        yield f"QC's score is below {PASS_SCORE}."
    if (failed or not results) and score < PASS_SCORE:
        yield f"The score is {float(score):.4g}, below {PASS_SCORE}."


def _excused_criteria(case: ScoreInput) -> Collection[str]:
    """Return the criteria whose check could not have worked: they reject no right deliverable."""
    broken = {one.check for one in case.outcomes if one.required and one.state == "broken"}
    return {id for one in case.task.checks if one.id in broken for id in one.criteria}


def find_gaps(results: Sequence[CriterionResult], excused: Collection[str] = ()) -> list[str]:
    """Return the unverified criteria that prevent a pass."""
    counted = [r for r in results if r.basis == "executed" or r.id not in excused]
    gaps = [
        f"The critical criterion {result.id} is unverified: {result.reason}."
        for result in counted
        if result.critical and result.state == "unverified"
    ]
    # Otherwise one trivial criterion could carry a deliverable.
    if _points(counted, "unverified") > HALF:
        gaps.append("More than half of the points are unverified.")
    return gaps


def _engine_fixes(case: ScoreInput, failed_fixes: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Yield the engine's own issues, each with its required fix."""
    for outcome in _failed_checks(case):
        command = " ".join(outcome.after.argv)
        why = "".join(f" [{finding}]" for finding in outcome.findings)
        yield (
            f"Check {outcome.check!r} failed ({outcome.after.describe_end}): {command}{why}",
            f"Make check {outcome.check!r} pass: {command}",
        )
    for path in case.protected:
        yield (
            f"The protected file {path!r} was changed; the checks ran with it as it was.",
            f"Leave the protected file {path!r} as it was.",
        )
    wanted: Mapping[int, str] = dict(enumerate(case.fixes, start=1))
    for index in failed_fixes:
        text = wanted.get(index, f"required fix {index}")
        yield f"Still not done: {text}", text


def _failed_checks(case: ScoreInput) -> Iterator[CheckOutcome]:
    return (o for o in case.outcomes if o.required and o.state == "failed")


def _deduplicate(texts: Sequence[str]) -> tuple[str, ...]:
    """Drop repetitions and keep the order."""
    # The place in the list is the number of the fix.
    return tuple(dict.fromkeys(texts))
