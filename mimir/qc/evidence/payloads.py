"""Sealed payloads of an attempt: deliverable, check runs, verdict. Pure.

Members have the names of the store's properties, so that an Evidence node can show them next to the sealed text.
"""

from collections.abc import Mapping, Sequence

from mimir.agents.stored_fields import encode_fields
from mimir.domain.evidence import CheckOutcome, CheckRun
from mimir.domain.test_results import sealed_results
from mimir.domain.text_hash import hash_text
from mimir.domain.verdict import CriterionResult, Verdict
from mimir.qc.evidence.seal import canonical_json

Body = Mapping[str, object]
_NOT_SEALED = ("results", "control", "products")
_LATER = ("cutShort", "shared", "standsFor")
"""Members of a check run by their sealed names."""


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
    # Members that came later are absent if empty: such payloads keep the hash of older versions.
    members = {
        name: value
        for name, value in encode_fields(run).items()
        if name not in _NOT_SEALED and (value or name not in _LATER)
    }
    tests = {"tests": sealed_results(run.results)} if run.results is not None else {}
    return {**members, **tests, **({"task": task} if task else {})}


def control_body(run: CheckRun) -> Body:
    """Return the payload of a control: its run and its conclusion."""
    control = run.control
    if control is None:
        raise ValueError(f"The run of check {run.check!r} is no control.")
    members = encode_fields(control)
    return {**run_body(run), "control": members.pop("state"), **members}


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
    members = encode_fields(result)
    del members["text"]
    return {**members, "points": str(result.points)}
