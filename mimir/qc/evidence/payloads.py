"""What is sealed of an attempt: the deliverable, each run of each check, the verdict. Pure; JSON objects for `seal`.

The names are those of the store's properties, so that an Evidence node can show them beside the sealed text.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from mimir.domain.evidence import CheckOutcome, CheckRun
from mimir.domain.verdict import CriterionResult, Verdict
from mimir.qc.evidence.seal import fingerprint

Body = Mapping[str, object]


def deliverable_body(tree: str, base_tree: str, answer: str, changed: Sequence[str]) -> Body:
    """Return what binds an attempt's chain to its deliverable: tree, base, hash of the closing answer, changed paths."""
    return {
        "tree": tree,
        "baseTree": base_tree,
        "answerHash": fingerprint(answer),
        "changed": sorted(changed),
    }


def check_bodies(outcome: CheckOutcome) -> tuple[Body, ...]:
    """Return one body a run, in the order of the runs: before, after, and the second one after if there was one.

    The last of them carries what they prove together (`state` and what led to it); the others have the state "".
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
    """Return one run of a check; `task` names the check's task where the chain is not that of one attempt."""
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
    if run.cut_short:
        body["cutShort"] = True
    if run.stands_for:
        body["standsFor"] = run.stands_for
    return {**body, "task": task} if task else body


def verdict_body(judgement: Verdict, tree: str, answer: str) -> Body:
    """Return the ruling, bound to the tree that it is about and, where nothing was changed, to the answer."""
    return {
        "tree": tree,
        "answerHash": fingerprint(answer),
        "passed": judgement.passed,
        "score": format_exact(judgement.score),
        "modelScore": format_exact(judgement.model_score),
        "modelVerdict": judgement.verdict.verdict,
        "unverifiable": judgement.unverifiable,
        "criteriaImpossible": judgement.criteria_impossible,
        "criteria": [_criterion(result) for result in judgement.criteria],
        "reasons": list(judgement.reasons),
        "issues": list(judgement.issues),
        "requiredFixes": list(judgement.required_fixes),
        "fixesFailed": list(judgement.fixes_failed),
    }


def format_exact(number: Fraction) -> str:
    """Write a fraction so that nothing is rounded: `80`, `200/3`."""
    return str(number)


def _criterion(result: CriterionResult) -> Body:
    return {
        "id": result.id,
        "state": result.state,
        "basis": result.basis,
        "points": format_exact(result.points),
        "critical": result.critical,
        "quote": result.quote,
        "source": result.source,
        "reason": result.reason,
    }
