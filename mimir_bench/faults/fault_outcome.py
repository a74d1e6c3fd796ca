"""Outcome of a run with a planted fault, and the mechanism that stopped it."""

from dataclasses import dataclass

from mimir.domain.event import EventKind
from mimir.domain.task_states import Cause, RunStatus, TaskStatus
from mimir.reporting.summary.run_data import AttemptData, RunData
from mimir_bench.faults.judges import Judge

CATCHERS = (
    "check",
    "run before",
    "quote",
    "score rule",
    "gateway",
    "no change",
    "refusal",
    "merge",
    "final gate",
    "seal",
    "judge",
    "other",
)
"""Mechanisms that can stop a run, in the order of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOutcome:
    """Outcome of one run of a case."""

    judge: Judge
    family: str
    seed: int
    operator: str
    """`clean`: no planted fault."""
    version: str
    wrong: bool
    """Result of the oracle."""
    completed: bool
    """Result of the engine; of rewritten records, whether they verify."""
    caught: str
    """Mechanism that stopped the run; empty: none."""
    shown: bool = True
    """False: all checks of the plan pass on this work, and it attacks none of them."""


def find_catcher(run: RunData) -> str:
    """Return the mechanism that kept a run from being `completed`; empty: none."""
    if run.status is RunStatus.COMPLETED:
        return ""
    # The gate fails after all tasks completed, so that no task shows the reason.
    if run.gate_red:
        return "final gate"
    for task in run.tasks:
        if task.status is not TaskStatus.COMPLETED and task.attempts:
            # Only the first task that did not complete counts: later ones are blocked by it.
            denied = any(e.kind is EventKind.TOOL_DENIED and e.task == task.id for e in run.events)
            return _by_cause(task.cause, task.attempts[-1], denied=denied)
    gaps = [task.attempts[-1] for task in run.tasks if task.attempts]
    return _find_open_catcher(*gaps)


def _by_cause(cause: str, last: AttemptData, *, denied: bool) -> str:
    match cause:
        case Cause.CHECK_FAILED:
            return "check"
        case Cause.SILENT_NO_OP:
            # Nothing changed because the gateway refused the change, which is the real mechanism.
            return "gateway" if denied else "no change"
        case Cause.REFUSED_DELIVERABLE:
            return "refusal"
        case Cause.UNVERIFIABLE:
            return _find_open_catcher(last)
        case Cause.INTEGRATION:
            return "merge"
        case Cause.QC_REJECTED:
            verdict = last.judgement.verdict.verdict if last.judgement else ""
            # QC accepted the work, and the score rule rejected it nevertheless.
            return "score rule" if verdict == "PASS" else "judge"
        case _:
            return "other"


def _find_open_catcher(*attempts: AttemptData) -> str:
    """Distinguish a check that proves nothing from a missing quote."""
    results = [r for a in attempts if a.judgement for r in a.judgement.criteria]
    open_ones = [result for result in results if result.state == "unverified"]
    if any(result.basis == "executed" for result in open_ones):
        return "run before"
    return "quote" if open_ones else "other"
