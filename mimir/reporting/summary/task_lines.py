"""Each task as a report shows it: where it stands, what it cost, what became of its criteria and files. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mimir.agents.context.receipt import ReceiptTotals
from mimir.domain.criteria_counts import NO_CRITERIA, CriteriaCounts, count_criteria
from mimir.domain.plan import call_limit
from mimir.domain.task_states import TaskStatus
from mimir.domain.verdict import CriterionResult
from mimir.reporting.summary.run_data import ArtifactData, AttemptData, RunDataPart, TaskData


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionLine:
    """One criterion with what decided it."""

    id: str
    text: str
    state: str
    """`passed`, `failed` or `unverified`."""
    basis: str
    """`executed` or `judged`."""
    points: str
    """Share of 100, exact: `60`, `200/3`."""
    critical: bool
    quote: str
    """Found word for word in `source`; empty: none."""
    source: str
    reason: str
    """Why it is not passed; empty when passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLine:
    """One attempt."""

    node: str
    number: int
    cause: str
    """Why it was not accepted; empty: it was, or has not ended."""
    issues: tuple[str, ...]
    score: float | None
    model_score: float | None
    """QC's own number."""
    tool_calls: int
    tripped: str
    """Which limit was reached; empty: none."""
    commit: str
    """Of its deliverable; empty: it changed nothing, or gave none."""
    receipts: tuple[ReceiptTotals, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
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
    """Made so far."""
    attempts_granted: int
    """By the plan, and by integration."""
    tool_calls: int
    """Of the last attempt's worker."""
    limit: int
    """Of one attempt."""
    seconds: float | None
    """From the first attempt's start to the task's end; None: it has not started or not ended."""
    counts: CriteriaCounts
    criteria: tuple[CriterionLine, ...]
    """As last judged; empty: they never were."""
    files: tuple[str, ...]
    """By git; of the accepted deliverable, else of the last one."""
    in_result: bool
    """True: these files are part of the run's result."""
    commit: str
    """With which it entered the run's line."""
    answer: str
    """Node of the answer that counts; empty: none."""
    answer_hash: str
    feedback: str
    """QC's words; untrusted."""
    taken_from: str
    history: tuple[AttemptLine, ...]


def deciding_attempt(task: TaskData) -> AttemptData | None:
    """Return the attempt whose verdict stands for the task: the accepted one, else the last that was judged."""
    for attempt in reversed(task.attempts):
        if attempt.judgement and task.accepted in (0, attempt.number):
            return attempt
    return None


def lines(part: RunDataPart, seconds: Mapping[str, float]) -> Iterator[TaskLine]:
    """Yield a line a task, in the plan's order; `seconds` as in `RunData`."""
    return (_line(task, seconds.get(task.id), part.artifacts) for task in part.tasks)


def describe_trip(attempt: AttemptData) -> str:
    """Return in words which limit an attempt reached; empty: none."""
    trip = attempt.trip
    if trip is None:
        return ""
    return trip.detail or trip.kind


def _line(task: TaskData, seconds: float | None, artifacts: Mapping[str, ArtifactData]) -> TaskLine:
    judged = deciding_attempt(task)
    judgement = judged.judgement if judged else None
    last = _standing(task)
    criteria = tuple(map(_criterion, judgement.criteria)) if judgement else ()
    answer = artifacts.get(f"{last.id}/answer") if last else None
    completed = task.status is TaskStatus.COMPLETED
    return TaskLine(
        id=task.id,
        node=task.node,
        title=task.title,
        status=task.status.value,
        cause=task.cause,
        blocked_by=task.blocked_by,
        score=task.score,
        attempts=task.made,
        attempts_granted=task.max_retries + 1 + task.integration_retries,
        tool_calls=last.tool_calls if last else 0,
        limit=call_limit(task.estimated_tool_calls),
        seconds=seconds,
        counts=count_criteria((c.state, c.basis) for c in criteria) if criteria else NO_CRITERIA,
        criteria=criteria,
        files=task.files_changed if completed else _offered(last),
        in_result=completed,
        commit=task.commit,
        answer=answer.id if answer else "",
        answer_hash=answer.sha256 if answer else "",
        feedback=judgement.verdict.feedback if judgement else task.feedback,
        taken_from=task.taken_from,
        history=tuple(map(_attempt, task.attempts)),
    )


def _standing(task: TaskData) -> AttemptData | None:
    """Return the accepted attempt, else the last one."""
    for attempt in task.attempts:
        if task.accepted == attempt.number:
            return attempt
    return task.attempts[-1] if task.attempts else None


def _offered(attempt: AttemptData | None) -> tuple[str, ...]:
    return attempt.work.changed if attempt and attempt.work else ()


def _criterion(result: CriterionResult) -> CriterionLine:
    return CriterionLine(
        id=result.id,
        text=result.text,
        state=result.state,
        basis=result.basis,
        points=str(result.points),
        critical=result.critical,
        quote=result.quote,
        source=result.source,
        reason=result.reason,
    )


def _attempt(attempt: AttemptData) -> AttemptLine:
    judgement = attempt.judgement
    return AttemptLine(
        node=attempt.id,
        number=attempt.number,
        cause=attempt.cause,
        issues=attempt.issues,
        score=attempt.score,
        model_score=float(judgement.model_score) if judgement else None,
        tool_calls=attempt.tool_calls,
        tripped=describe_trip(attempt),
        commit=attempt.work.commit if attempt.work else "",
        receipts=attempt.receipts,
    )
