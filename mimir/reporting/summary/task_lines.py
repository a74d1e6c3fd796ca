"""Lines of the report about tasks, criteria and attempts. Pure."""

from mimir.agents.context.receipt import ReceiptTotals
from mimir.domain.criteria_counts import NO_CRITERIA, CriteriaCounts, count_criteria
from mimir.domain.task_states import TaskStatus, shown_state
from mimir.domain.tool_call_limit import call_limit
from mimir.domain.value_class import value_class
from mimir.domain.verdict import CriterionResult
from mimir.reporting.summary.proofs import deciding_attempt
from mimir.reporting.summary.run_data import AttemptData, TaskData


@value_class
class AttemptLine:
    """One attempt."""

    node: str
    number: int
    cause: str
    """Reason of its rejection. Empty: it was accepted, or has not ended."""
    issues: tuple[str, ...]
    score: float | None
    model_score: float | None
    """Score that QC gave."""
    tool_calls: int
    tripped: str
    """Limit that was reached. Empty: none."""
    commit: str
    """Of its deliverable. Empty: no file was changed, or there is no deliverable."""
    receipts: tuple[ReceiptTotals, ...]


@value_class
class TaskLine:
    """One task."""

    id: str
    node: str
    title: str
    status: str
    cause: str
    blocked_by: str
    score: float | None
    attempts: int
    """So far."""
    attempts_granted: int
    """By the plan, and because of merge conflicts."""
    tool_calls: int
    """Of the worker in the attempt that counts."""
    limit: int
    """Tool calls of one attempt."""
    seconds: float | None
    """From the start of the first attempt to the end of the task. None: it has not ended."""
    counts: CriteriaCounts
    criteria: tuple[CriterionResult, ...]
    """As last judged. Empty: no verdict."""
    files: tuple[str, ...]
    """Changed files of the accepted deliverable, otherwise of the last one."""
    in_result: bool
    """True: these files are part of the run's result."""
    commit: str
    """On the run branch."""
    answer: str
    """Node of the answer that counts. Empty: none."""
    answer_hash: str
    feedback: str
    """Feedback of QC; untrusted."""
    taken_from: str
    history: tuple[AttemptLine, ...]


def describe_trip(attempt: AttemptData) -> str:
    """Return the limit that an attempt reached, in words; empty: none."""
    return (attempt.trip.detail or attempt.trip.kind) if attempt.trip else ""


def task_line(task: TaskData, seconds: float | None) -> TaskLine:
    """Return the line of a task; `seconds`: from its first start to its end."""
    judged = deciding_attempt(task)
    verdict = judged.judgement if judged else None
    last = task.accepted_attempt or task.last_attempt
    criteria = verdict.criteria if verdict else ()
    is_read_only = task.is_read_only
    is_completed = task.status is TaskStatus.COMPLETED
    offered = last.work.changed if last and last.work else ()
    return TaskLine(
        id=task.id,
        node=task.node,
        title=task.title,
        status=shown_state(task.status, is_read_only=is_read_only),
        cause=task.cause,
        blocked_by=task.blocked_by,
        score=None if is_read_only else task.score,
        attempts=task.made,
        attempts_granted=task.max_retries + 1 + task.integration_retries,
        tool_calls=last.tool_calls if last else 0,
        limit=call_limit(task.estimated_tool_calls),
        seconds=seconds,
        counts=count_criteria((c.state, c.basis) for c in criteria) if criteria else NO_CRITERIA,
        criteria=criteria,
        files=task.files_changed if is_completed else offered,
        in_result=is_completed,
        commit=task.commit,
        answer=f"{last.id}/answer" if last and last.answer_hash else "",
        answer_hash=last.answer_hash if last else "",
        feedback=verdict.verdict.feedback if verdict else task.feedback,
        taken_from=task.taken_from,
        history=tuple(map(_attempt_line, task.attempts)),
    )


def _attempt_line(attempt: AttemptData) -> AttemptLine:
    verdict = attempt.judgement
    return AttemptLine(
        node=attempt.id,
        number=attempt.number,
        cause=attempt.cause,
        issues=attempt.issues,
        score=attempt.score,
        model_score=float(verdict.model_score) if verdict else None,
        tool_calls=attempt.tool_calls,
        tripped=describe_trip(attempt),
        commit=attempt.work.commit if attempt.work else "",
        receipts=attempt.receipts,
    )
