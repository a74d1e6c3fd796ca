"""Sealed payloads of an attempt: deliverable, check runs, verdict. Pure.

Members have the names of the store's properties, so that an Evidence node can show them next to the sealed text.
"""

from collections.abc import Mapping, Sequence

from mimir.domain.evidence import CheckOutcome, CheckRun
from mimir.domain.test_results import sealed_results
from mimir.domain.text_hash import hash_text
from mimir.domain.verdict import CriterionResult, Verdict
from mimir.qc.evidence.seal import canonical_json

Body = Mapping[str, object]


def deliverable_body(tree: str, base_tree: str, answer: str, changed: Sequence[str]) -> Body:
    """Return the payload of a deliverable: trees, hash of the answer, changed paths."""
    return {
        "tree": tree,
        "baseTree": base_tree,
        "answerHash": hash_text(answer),
        "changed": sorted(changed),
    }


def check_bodies(outcome: CheckOutcome) -> tuple[Body, ...]:
    """Return one payload a run: before, after, and the second run after the work.

    The last one carries what the runs prove together (`state` and its reasons); the others have the state "".
    """
    runs = [run for run in (outcome.before, outcome.after, outcome.again) if run is not None]
    proves: dict[str, object] = {
        "state": outcome.state,
        "kind": outcome.kind,
        "inferred": outcome.inferred,
        "flaky": outcome.flaky,
        "findings": list(outcome.findings),
    }
    shared: dict[str, object] = {
        "required": outcome.required,
        "selfAuthored": outcome.self_authored,
    }
    return tuple(
        {**run_body(run), **shared, **(proves if run is runs[-1] else {"state": ""})}
        for run in runs
    )


def run_body(run: CheckRun, *, task: str = "") -> Body:
    """Return the payload of a check run; `task` names its task in a chain of several tasks."""
    body: dict[str, object] = {
        "check": run.check,
        "argv": list(run.argv),
        "phase": run.phase,
        "again": run.again,
        "tree": run.tree,
        "exitCode": run.exit_code,
        "timedOut": run.timed_out,
        "missing": run.missing,
        "seconds": run.seconds,
        "outputHash": run.output_hash,
        "outputTail": run.output_tail,
        "sandbox": run.sandbox,
    }
    # Added later: payloads without it keep the hash of older versions.
    if run.cut_short:
        body["cutShort"] = True
    if run.shared:
        body["shared"] = True
    if run.stands_for:
        body["standsFor"] = run.stands_for
    if run.results is not None:
        body["tests"] = sealed_results(run.results)
    return {**body, "task": task} if task else body


def control_body(run: CheckRun) -> Body:
    """Return the payload of a control: its run and its conclusion."""
    control = run.control
    if control is None:
        raise ValueError(f"The run of check {run.check!r} is no control.")
    members: dict[str, object] = {
        "control": control.state,
        "method": control.method,
        "sensitive": control.sensitive,
        "counted": control.counted,
        "runs": control.runs,
        "reason": control.reason,
    }
    return {**run_body(run), **members}


def verdict_body(verdict: Verdict, tree: str, answer: str) -> Body:
    """Return the payload of a verdict, bound to its tree and answer."""
    # A fraction is written without rounding: `80`, `200/3`.
    return {
        "tree": tree,
        "answerHash": hash_text(answer),
        "passed": verdict.passed,
        "score": str(verdict.score),
        "modelScore": str(verdict.model_score),
        "modelVerdict": verdict.verdict.verdict,
        "unverifiable": verdict.unverifiable,
        "criteriaImpossible": verdict.criteria_impossible,
        "criteria": [_criterion(result) for result in verdict.criteria],
        "reasons": list(verdict.reasons),
        "issues": list(verdict.issues),
        "requiredFixes": list(verdict.required_fixes),
        "fixesFailed": list(verdict.fixes_failed),
    }


def facts_hash(facts: Body) -> str:
    """Return the hash of the facts of a run, which the record of its gate holds."""
    return hash_text(canonical_json(facts))


def _criterion(result: CriterionResult) -> Body:
    return {
        "id": result.id,
        "state": result.state,
        "basis": result.basis,
        "points": str(result.points),
        "critical": result.critical,
        "quote": result.quote,
        "source": result.source,
        "reason": result.reason,
    }
