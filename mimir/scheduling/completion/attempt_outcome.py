"""What a task's row becomes after an attempt ended: completed, prepared for a retry, or failed with its report. Pure values."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from mimir.attempts.results import AttemptState, WorkerUsage, phase_values
from mimir.domain.evidence import CheckOutcome
from mimir.domain.failure import QCFailureReport, TimelineEntry
from mimir.domain.plan import Task
from mimir.domain.task_states import Cause
from mimir.domain.verdict import Verdict
from mimir.qc.evidence.seal import fingerprint
from mimir.qc.judgement import score
from mimir.qc.judgement.diagnosis import failure_report
from mimir.scheduling import retry
from mimir.scheduling.completion.integration import MergeConflict
from mimir.store import row_fields
from mimir.store.protocol import Row, Value
from mimir.store.schema import pack, unpack

ANSWER_KEPT = 50_000
"""Characters of an answer kept on its attempt; the whole is an artifact."""
MAX_OUTPUT = 8_000
"""Characters of one failed check's output that a retry is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    """How an attempt ended without being completed."""

    cause: Cause
    issues: tuple[str, ...]
    required_fixes: tuple[str, ...] = ()
    feedback: str = ""
    score: float | None = None
    answer: str = ""
    tree: str = ""
    base_tree: str = ""
    commit: str = ""
    """Empty: nothing was changed, or the deliverable was refused."""
    failed_checks: tuple[tuple[str, str], ...] = ()
    """(check, output) of each that is red."""
    tripped: str = ""
    smaller_context: bool = False
    judged: bool = True
    """True: it uses up an attempt."""
    effort: WorkerUsage | None = None
    """What the worker used. None: that was written when it answered."""
    onto: str = ""
    """Head of the line that it could not be merged with; empty: not tried."""


def outcome_of_rejection(course: AttemptState, base_tree: str) -> AttemptOutcome:
    """Say how an attempt ended that was rejected, or judged and not passed."""
    if course.rejection:
        r = course.rejection
        return AttemptOutcome(
            cause=r.cause,
            issues=r.issues,
            answer=r.answer,
            tree=r.tree,
            base_tree=base_tree,
            smaller_context=r.smaller_context,
            effort=r.effort,
        )
    work, judgement = course.work, course.judgement
    return AttemptOutcome(
        cause=course.failure or _cause(judgement, course.outcomes),
        issues=(*judgement.issues, *judgement.reasons) if judgement else ("QC gave no verdict.",),
        required_fixes=judgement.required_fixes if judgement else (),
        feedback=judgement.verdict.feedback if judgement else "",
        score=float(judgement.score) if judgement else None,
        answer=work.answer if work else "",
        tree=work.tree if work else "",
        base_tree=base_tree,
        commit=work.commit if work else "",
        failed_checks=_failed(course.outcomes),
        tripped=work.tripped if work else "",
        judged=course.failure is None,
    )


def outcome_of_conflict(
    course: AttemptState, clash: MergeConflict, base_tree: str
) -> AttemptOutcome:
    """Say how an accepted attempt ended that could not be merged: no attempt is used up."""
    end = outcome_of_rejection(replace(course, judgement=None), base_tree)
    return replace(
        end,
        cause=clash.cause,
        issues=clash.issues,
        onto=clash.onto,
        score=float(course.judgement.score) if course.judgement else None,
        failed_checks=tuple(
            (r.check, r.output_tail[-MAX_OUTPUT:]) for _, r in clash.runs if not r.green
        ),
        judged=False,
    )


def judged_before(attempts: Sequence[Row], number: int) -> Row | None:
    """Return the last judged failure before attempt `number`."""
    before = [
        r for r in attempts if r.get("judged") and row_fields.int_field(r, "attemptNumber") < number
    ]
    return before[-1] if before else None


def _cause(judgement: Verdict | None, outcomes: Sequence[CheckOutcome]) -> Cause:
    if judgement is None:
        return Cause.QC_UNAVAILABLE
    return score.rejection_cause(judgement, outcomes) or Cause.QC_REJECTED


def _failed(outcomes: Sequence[CheckOutcome]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (o.check, o.after.output_tail[-MAX_OUTPUT:]) for o in outcomes if o.state == "failed"
    )


def retry_input(
    task: Task, row: Row, previous: Row | None, end: AttemptOutcome
) -> retry.RetryInput:
    """Return what counts for the decision; `row` is the task's, `previous` the judged attempt before."""
    failures = row_fields.int_field(row, "qcFailuresCount") + (
        1 if end.judged and end.cause is not Cause.INTEGRATION else 0
    )
    # Without an answer there is nothing that could be the same: the model may find its words the next time.
    same = (
        bool(end.answer)
        and previous is not None
        and (previous.get("tree"), previous.get("answerHash"))
        == (
            end.tree,
            fingerprint(end.answer),
        )
    )
    return retry.RetryInput(
        cause=end.cause,
        judged_failures=failures,
        max_retries=task.max_retries,
        integration_retries=row_fields.int_field(row, "integrationRetries"),
        same_as_before=same and end.judged,
    )


def retry_values(
    attempt: int, end: AttemptOutcome, standing: retry.RetryInput, now: str
) -> dict[str, Value]:
    """Return the values of phase 7: what the next attempt is told."""
    integration = end.cause is Cause.INTEGRATION
    context = {
        "previousAttempt": attempt,
        "qcFeedback": end.feedback,
        "issues": list(end.issues),
        "requiredFixes": list(end.required_fixes),
        "answer": end.answer,
        "tree": end.tree,
        "baseTree": end.base_tree,
        "failedChecks": [list(c) for c in end.failed_checks],
        "tripped": end.tripped,
        "smallerContext": end.smaller_context,
        "reason": end.cause.value,
    }
    return {
        "nextAttemptNumber": attempt + 1,
        "retryReason": "integration" if integration else "qc_failure",
        "retryErrorContextJson": pack(context),
        "retryPreparedAt": now,
        "isRetry": True,
        "qcFailuresCount": standing.judged_failures,
        "integrationRetries": standing.integration_retries + (1 if integration else 0),
    }


def work_values(end: AttemptOutcome, now: str) -> dict[str, Value]:
    """Return the values of phase 3 of an attempt that was rejected as it answered, so that they are not written yet."""
    if end.effort is None:
        return {}
    return {**phase_values(end.answer, end.effort), "workerCompletedAt": now}


def history_values(
    row: Row, attempt: int, judgement: Verdict | None, *, now: str, is_done: bool
) -> dict[str, Value]:
    """Return what a task's row tells of all verdicts: the history with this one, and at the end what it comes to.

    Args:
        row: The task's, before.
        attempt: Of the verdict.
        judgement: None: no new one.
        now: When it was given.
        is_done: True: the task is completed with it.
    """
    packed = row_fields.text_field(row, "qcVerificationHistoryJson")
    history = list(cast("list[dict[str, object]]", unpack(packed))) if packed else []
    values: dict[str, Value] = {}
    if judgement:
        history.append(_told(attempt, judgement, now))
        values["qcVerificationHistoryJson"] = pack(history)
    if is_done:
        last = {entry["attempt"]: cast("float", entry["score"]) for entry in history}
        values["qcAttemptMetricsJson"] = pack(
            _metrics([(cast("int", n), s) for n, s in last.items()])
        )
        values["qcFailuresCount"] = row_fields.int_field(row, "qcFailuresCount")
    return values


def _told(attempt: int, judgement: Verdict, now: str) -> dict[str, object]:
    return {
        "attempt": attempt,
        "passed": judgement.passed,
        "score": float(judgement.score),
        "feedback": judgement.verdict.feedback,
        "issues": list(judgement.issues),
        "requiredFixes": list(judgement.required_fixes),
        "at": now,
    }


def _metrics(scored: Sequence[tuple[int, float | None]]) -> dict[str, object]:
    """Return what the scores of a task's attempts come to; an attempt without one was judged without QC."""
    scores = [score for _, score in scored if score is not None]
    return {
        "history": [{"attempt": attempt, "score": score} for attempt, score in scored],
        "lowestScore": min(scores, default=None),
        "highestScore": max(scores, default=None),
        "avgScore": sum(scores) / len(scores) if scores else None,
    }


def attempt_values(end: AttemptOutcome) -> dict[str, Value]:
    """Return what is kept on an attempt that was not accepted."""
    return {
        "endCause": end.cause.value,
        "answerText": end.answer[:ANSWER_KEPT],
        "tripped": end.tripped,
        "requiredFixes": list(end.required_fixes),
        "issues": list(end.issues),
        "tree": end.tree,
        "answerHash": fingerprint(end.answer),
        "judged": end.judged,
        "score": end.score,
    }


def report(
    task: Task, attempts: Sequence[Row], last: tuple[int, AttemptOutcome], cause: Cause
) -> QCFailureReport:
    """Compute the failure report from the attempts before and the one that ended the task."""
    number, end = last
    timeline = [
        TimelineEntry(
            attempt=row_fields.int_field(row, "attemptNumber"),
            score=_score(row),
            cause=str(row.get("endCause") or ""),
            issues=tuple(row_fields.text_list_field(row, "issues")),
        )
        for row in attempts
        if row.get("endCause") and row_fields.int_field(row, "attemptNumber") != number
    ]
    timeline.append(
        TimelineEntry(attempt=number, score=end.score, cause=end.cause.value, issues=end.issues)
    )
    return failure_report(task.id, cause, tuple(timeline))


def failure_values(
    report_json: str,
    end: AttemptOutcome,
    standing: retry.RetryInput,
    timeline: Sequence[TimelineEntry],
) -> dict[str, Value]:
    """Return the values of phase 9: why the task failed."""
    return {
        "qcPassed": False,
        "qcFailureReportJson": report_json,
        "qcFailureReportGenerated": True,
        "totalAttempts": len(timeline),
        "totalQCFailures": standing.judged_failures,
        "qcFailuresCount": standing.judged_failures,
        "finalWorkerOutput": end.answer[:50_000],
        "improvementNeeded": True,
        "qcAttemptMetricsJson": pack(_metrics([(e.attempt, e.score) for e in timeline])),
    }


def _score(row: Row) -> float | None:
    value = row.get("score")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
