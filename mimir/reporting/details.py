"""Details of a task and of an attempt as JSON values: `mimir show`.

Stored values are taken as they are: `mimir verify` recomputes them.
"""

from collections.abc import Mapping, Sequence

from mimir.domain.deliverable import Deliverable
from mimir.domain.evidence import CheckOutcome, CheckRun
from mimir.domain.task_states import shown_state
from mimir.domain.verdict import CriterionResult, Verdict
from mimir.store.records.attempt_records import AttemptRecord
from mimir.store.records.task_records import TaskRecord


def describe_task(task: TaskRecord, attempts: Sequence[AttemptRecord]) -> dict[str, object]:
    """Return a task with a line for each attempt."""
    accepted = next((one for one in attempts if one.number == task.accepted_attempt), None)
    judged = accepted or next((one for one in reversed(attempts) if one.verdict), None)
    return {
        **_head(task),
        "status": shown_state(task.status, is_read_only=task.is_read_only),
        "cause": task.cause,
        "blocked_by": task.blocked_by,
        "score": None if task.qc_score is None or task.is_read_only else float(task.qc_score),
        "dependencies": list(task.dependencies),
        "worker_role": task.worker_role,
        "qc_role": task.qc_role,
        "prompt": task.prompt,
        "changed": list(task.files_changed),
        "criteria": _criteria(judged),
        "checks": _checks(judged),
        "attempts": [_attempt(task, one) for one in attempts],
        "answer": task.worker_output,
    }


def describe_attempt(task: TaskRecord, attempt: AttemptRecord) -> dict[str, object]:
    """Return one attempt: its deliverable, checks and criteria."""
    work = attempt.deliverable.decode(Deliverable) if attempt.deliverable else None
    return {
        **_head(task),
        **_attempt(task, attempt),
        "required_fixes": list(attempt.required_fixes),
        "left_out": list(work.left_out) if work else [],
        "protected": list(work.protected) if work else [],
        "unsupported": list(work.unsupported) if work else [],
        "tripped": work.tripped if work else attempt.tripped,
        "criteria": _criteria(attempt),
        "checks": _checks(attempt),
        "answer": work.answer if work else attempt.answer_text,
    }


def describe_check_run(run: CheckRun, place: str) -> dict[str, object]:
    """Return one run of a check with the kept end of its output."""
    return {
        "check": run.check,
        "place": place,
        "phase": run.phase,
        "command": list(run.argv),
        "end": run.describe_end,
        "green": run.green,
        "seconds": round(run.seconds, 3),
        "output": run.output_tail,
    }


def trees_of(attempt: AttemptRecord) -> tuple[str, str] | None:
    """Return the trees before and after the work of an attempt; None: it has not delivered."""
    if not attempt.deliverable:
        return None
    work = attempt.deliverable.decode(Deliverable)
    return work.base_tree, work.tree


def _head(task: TaskRecord) -> dict[str, object]:
    return {"run": task.run_id, "task": task.task_id, "title": task.title}


def _attempt(task: TaskRecord, attempt: AttemptRecord) -> dict[str, object]:
    work = attempt.deliverable.decode(Deliverable) if attempt.deliverable else None
    verdict = attempt.verdict.decode(Verdict) if attempt.verdict else None
    reasons = verdict.reasons if verdict else ()
    return {
        "attempt": attempt.number,
        "status": shown_state(attempt.status, is_read_only=task.is_read_only),
        "cause": attempt.end_cause,
        "score": _score(task, attempt, verdict),
        "issues": list(attempt.issues or reasons),
        "started": attempt.worker_start_time,
        "seconds": attempt.worker_duration,
        "tool_calls": work.tool_calls if work else None,
        "tokens": work.usage.total if work else None,
        "changed": list(work.changed) if work else [],
        "notes": list(work.notes) if work else [],
    }


def _score(task: TaskRecord, attempt: AttemptRecord, verdict: Verdict | None) -> float | None:
    if task.is_read_only:
        return None
    return float(verdict.score) if verdict else attempt.score


def _criteria(attempt: AttemptRecord | None) -> list[Mapping[str, object]]:
    if attempt is None or not attempt.verdict:
        return []
    return [_criterion(one) for one in attempt.verdict.decode(Verdict).criteria]


def _criterion(one: CriterionResult) -> Mapping[str, object]:
    return {
        "id": one.id,
        "text": one.text,
        "state": one.state,
        "basis": one.basis,
        "points": float(one.points),
        "critical": one.critical,
        "quote": one.quote,
        "source": one.source,
        "reason": one.reason,
    }


def _checks(attempt: AttemptRecord | None) -> list[Mapping[str, object]]:
    if attempt is None or not attempt.check_outcomes:
        return []
    outcomes = attempt.check_outcomes.decode(tuple[CheckOutcome, ...])
    return [
        {
            "id": one.check,
            "state": one.state,
            "required": one.required,
            "command": list(one.after.argv),
            "before": one.before.describe_end,
            "after": one.after.describe_end,
            "flaky": one.flaky,
            "findings": list(one.findings),
        }
        for one in outcomes
    ]
