"""Effect of negative controls on a verdict. Pure.

A required check that cannot fail rejects the attempt. A check that does not depend on the work decides no criterion: QC's opinion does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mimir.domain.evidence import CheckOutcome, CheckRun, ControlResult
from mimir.domain.plan import Task
from mimir.domain.test_results import NO_CONTROL, describe_tests
from mimir.domain.verdict import CriterionResult, Verdict
from mimir.qc.judgement.score import INSENSITIVE, find_gaps, required_checks, score_of


def describe_checks(
    outcomes: Sequence[CheckOutcome], controls: Sequence[CheckRun]
) -> tuple[str, ...]:
    """Describe the required checks in short: `unit: 12 of 12 tests, control red`."""
    found = {run.check: run.control for run in controls}
    return tuple(
        f"{one.check}: {_describe_check(one, found.get(one.check))}"
        for one in outcomes
        if one.required
    )


def _describe_check(outcome: CheckOutcome, control: ControlResult | None) -> str:
    run = outcome.again or outcome.after
    results = run.results
    passed, counted = (len(results.passed), results.counted) if results else (0, 0)
    if control and control.counted:
        passed, counted = control.sensitive, control.counted
    skipped = len(results.skipped) if results else 0
    tests = describe_tests(
        passed, counted, skipped=skipped, control=control.state if control else ""
    )
    if outcome.state != "passed":
        return ", ".join(part for part in (outcome.state, tests) if part)
    return tests if control else ", ".join(part for part in (tests, NO_CONTROL) if part)


def apply_controls(verdict: Verdict, task: Task, controls: Sequence[CheckRun]) -> Verdict:
    """Return the verdict with the conclusions of its controls."""
    found = {run.check: run.control for run in controls if run.control is not None}
    criteria = tuple(_apply_control(one, verdict, task, found) for one in verdict.criteria)
    insensitive = tuple(id for id, one in found.items() if one.state == "insensitive")
    if criteria == verdict.criteria and not insensitive:
        return verdict
    # Gaps that the controls did not make were decided with the verdict.
    known = find_gaps(verdict.criteria)
    gaps = [gap for gap in find_gaps(criteria) if gap not in known]
    findings = [f"Check {id!r}{INSENSITIVE}{found[id].reason}" for id in insensitive]
    passed = verdict.passed and not insensitive and not gaps
    fixes = [
        f"Make check {id!r} depend on the work: it must fail when its expected values are wrong."
        for id in insensitive
    ]
    return replace(
        verdict,
        passed=passed,
        score=score_of(criteria),
        criteria=criteria,
        reasons=() if passed else (*verdict.reasons, *findings, *gaps),
        issues=(*verdict.issues, *findings),
        required_fixes=(*verdict.required_fixes, *fixes),
        unverifiable=not insensitive and (verdict.unverifiable or (verdict.passed and not passed)),
    )


def _apply_control(
    result: CriterionResult, verdict: Verdict, task: Task, found: Mapping[str, ControlResult]
) -> CriterionResult:
    """Return a criterion as its controls leave it."""
    if result.state != "passed" or result.basis != "executed":
        return result
    checks = required_checks(task, result.id)
    states = {id: found[id].state if id in found else "" for id in checks}
    if insensitive := [id for id, state in states.items() if state == "insensitive"]:
        why = f"check {insensitive[0]!r} is insensitive: {found[insensitive[0]].reason}"
        return replace(result, state="unverified", reason=why)
    if not states or set(states.values()) != {"unexercised"}:
        return result
    check = next(iter(states))
    opinion = next((one for one in verdict.verdict.criteria if one.id == result.id), None)
    why = f"check {check!r} is not exercised by this task"
    if opinion is None or opinion.state != "passed":
        return replace(result, state="unverified", basis="judged", reason=f"{why}; QC could not verify it")  # fmt: skip
    # The check holds, which is what QC could quote.
    source = result.source or f"check:{check}"
    return replace(
        result,
        basis="judged",
        quote=result.quote or "after the work: exit code 0",
        source=source,
        reason=why,
    )
