"""Outcome of an attempt that was not accepted, with the changes that store it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from mimir.attempts.results import OUTPUT_ON_TASK, AttemptRejection, Judged, WorkerUsage
from mimir.domain.deliverable import Deliverable
from mimir.domain.evidence import CheckOutcome
from mimir.domain.failure import QCFailureReport, TimelineEntry
from mimir.domain.json_value import as_number, as_object, as_text, as_whole_number
from mimir.domain.plan import Task
from mimir.domain.task_states import Cause
from mimir.domain.text_hash import hash_text
from mimir.domain.value_class import value_class
from mimir.domain.verdict import Verdict
from mimir.qc.judgement import score
from mimir.qc.judgement.diagnosis import failure_report
from mimir.scheduling import retry
from mimir.scheduling.completion.integration import MergeConflict
from mimir.store.records.attempt_changes import AttemptResultChange, RejectedAttemptChange
from mimir.store.records.attempt_records import AttemptRecord
from mimir.store.records.record_codec import PackedJson, StoredRecord
from mimir.store.records.task_changes import FailureChange, RetryChange, VerdictHistoryChange
from mimir.store.records.task_records import TaskRecord

MAX_OUTPUT = 8_000
"""Characters of a failed check's output that a retry is given."""


@value_class
class AttemptOutcome:
    """End of an attempt that was not accepted."""

    cause: Cause
    issues: tuple[str, ...]
    required_fixes: tuple[str, ...] = ()
    feedback: str = ""
    score: float | None = None
    answer: str = ""
    tree: str = ""
    base_tree: str = ""
    failed_checks: tuple[tuple[str, str], ...] = ()
    """(check, output) of each red check."""
    tripped: str = ""
    smaller_context: bool = False
    judged: bool = True
    """True: it uses up an attempt."""
    effort: WorkerUsage | None = None
    """Usage of the worker. None: it was stored when the worker answered."""
    onto: str = ""
    """Head that it could not be merged with. Empty: no merge was tried."""
    work: Deliverable | None = None
    """Changes of a program that did not succeed. None: there are none, or they are stored."""


@value_class
class RetryContext:
    """Part of the failed attempt that the next attempt starts from."""

    tree: str = ""
    """Empty: nothing to start from."""
    base_tree: str = ""
    smaller_context: bool = False

    @classmethod
    def of_task(cls, task: TaskRecord) -> "RetryContext":
        """Read the context of a task's retry; empty for its first attempt."""
        stored = task.retry_error_context.mapping()
        return cls(
            tree=as_text(stored.get("tree")),
            base_tree=as_text(stored.get("baseTree")),
            smaller_context=bool(stored.get("smallerContext")),
        )


def outcome_of_rejection(state: AttemptRejection | Judged, base_tree: str) -> AttemptOutcome:
    """Return the outcome of an attempt that was rejected, without QC or by its verdict."""
    if isinstance(state, AttemptRejection):
        return AttemptOutcome(
            cause=state.cause,
            issues=state.issues,
            answer=state.answer,
            tree=state.tree,
            base_tree=base_tree,
            smaller_context=state.smaller_context,
            # An unsettled conflict uses up no attempt, like one found by a merge.
            judged=state.cause is not Cause.INTEGRATION,
            effort=state.effort,
            work=state.work,
        )
    verdict = state.verdict
    return replace(
        _of_deliverable(state.work, base_tree),
        cause=score.rejection_cause(verdict, state.outcomes) or Cause.QC_REJECTED,
        issues=(*verdict.issues, *verdict.reasons),
        required_fixes=verdict.required_fixes,
        feedback=verdict.verdict.feedback,
        score=float(verdict.score),
        failed_checks=_failed_checks(state.outcomes),
    )


def outcome_without_verdict(work: Deliverable, cause: Cause, reason: str) -> AttemptOutcome:
    """Return the outcome of an attempt that QC did not judge; it uses up no attempt."""
    end = _of_deliverable(work, work.base_tree)
    return replace(end, cause=cause, issues=(reason,), judged=False)


def outcome_of_conflict(state: Judged, conflict: MergeConflict, base_tree: str) -> AttemptOutcome:
    """Return the outcome of an accepted attempt that cannot be merged; it uses up no attempt."""
    return replace(
        _of_deliverable(state.work, base_tree),
        cause=conflict.cause,
        issues=conflict.issues,
        onto=conflict.onto,
        score=float(state.verdict.score),
        failed_checks=tuple(
            (run.check, run.output_tail[-MAX_OUTPUT:]) for _, run in conflict.runs if not run.green
        ),
        judged=False,
    )


def _of_deliverable(work: Deliverable, base_tree: str) -> AttemptOutcome:
    return AttemptOutcome(
        cause=Cause.QC_REJECTED,
        issues=(),
        answer=work.answer,
        tree=work.tree,
        base_tree=base_tree,
        tripped=work.tripped,
    )


def _failed_checks(outcomes: Sequence[CheckOutcome]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (o.check, o.after.output_tail[-MAX_OUTPUT:]) for o in outcomes if o.state == "failed"
    )


def find_judged_before(attempts: Sequence[AttemptRecord], number: int) -> AttemptRecord | None:
    """Return the last judged failure before attempt `number`; None if there is none."""
    before = [attempt for attempt in attempts if attempt.judged and attempt.number < number]
    return before[-1] if before else None


def retry_input(
    plan_task: Task, task: TaskRecord, previous: AttemptRecord | None, end: AttemptOutcome
) -> retry.RetryInput:
    """Return the inputs of the retry decision; `previous` is the judged failure before."""
    # Merge conflicts use up no attempt.
    counts = end.judged and end.cause is not Cause.INTEGRATION
    # Two attempts without an answer are not alike: the model may answer the next time.
    is_same = (
        bool(end.answer)
        and previous is not None
        and (previous.tree, previous.answer_hash) == (end.tree, hash_text(end.answer))
    )
    return retry.RetryInput(
        cause=end.cause,
        judged_failures=task.qc_failures_count + counts,
        max_retries=plan_task.max_retries,
        integration_retries=task.integration_retries,
        same_as_before=is_same and end.judged,
    )


def retry_change(
    attempt: int, end: AttemptOutcome, given: retry.RetryInput, now: str
) -> RetryChange:
    """Return the change that prepares a retry (phase 7), with the findings of the attempt."""
    is_integration = end.cause is Cause.INTEGRATION
    # An answer of the user that corrects an assumption uses up no attempt either.
    is_free = is_integration or end.cause is Cause.REJECTED
    context: Mapping[str, object] = {
        "previousAttempt": attempt,
        "qcFeedback": end.feedback,
        "issues": list(end.issues),
        "requiredFixes": list(end.required_fixes),
        "answer": end.answer,
        "tree": end.tree,
        "baseTree": end.base_tree,
        "failedChecks": [list(check) for check in end.failed_checks],
        "tripped": end.tripped,
        "smallerContext": end.smaller_context,
        "reason": end.cause.value,
    }
    return RetryChange(
        next_attempt_number=attempt + 1,
        retry_reason="integration" if is_integration else "qc_failure",
        retry_error_context=PackedJson.pack(context),
        retry_prepared_at=now,
        qc_failures_count=given.judged_failures,
        integration_retries=given.integration_retries + is_free,
    )


def history_change(
    task: TaskRecord, attempt: int, verdict: Verdict | None, *, now: str, is_done: bool
) -> VerdictHistoryChange:
    """Return the history of a task's verdicts, with the scores of a completed task.

    Args:
        task: The task before the change.
        attempt: Number of the attempt.
        verdict: New verdict. None: no new one.
        now: Time of the verdict.
        is_done: True: the task is completed with it.
    """
    stored = task.qc_verification_history
    history = [as_object(one) for one in stored.decode(tuple[object, ...])] if stored else []
    if verdict:
        history.append(
            {
                "attempt": attempt,
                "passed": verdict.passed,
                "score": float(verdict.score),
                "feedback": verdict.verdict.feedback,
                "issues": list(verdict.issues),
                "requiredFixes": list(verdict.required_fixes),
                "at": now,
            }
        )
    change = VerdictHistoryChange()
    if verdict:
        change = replace(change, qc_verification_history=PackedJson.pack(history))
    if is_done:
        # The last verdict on an attempt counts: its merge may have been judged again.
        last = {as_whole_number(one.get("attempt")): as_number(one.get("score")) for one in history}
        metrics = _score_metrics([(number or 0, value) for number, value in last.items()])
        change = replace(
            change, qc_attempt_metrics=metrics, qc_failures_count=task.qc_failures_count
        )
    return change


def _score_metrics(scored: Sequence[tuple[int, float | None]]) -> PackedJson:
    """Return the scores of a task's attempts in numbers; None: judged without QC."""
    scores = [value for _, value in scored if value is not None]
    return PackedJson.pack(
        {
            "history": [{"attempt": attempt, "score": value} for attempt, value in scored],
            "lowestScore": min(scores, default=None),
            "highestScore": max(scores, default=None),
            "avgScore": sum(scores) / len(scores) if scores else None,
        }
    )


def rejected_changes(end: AttemptOutcome) -> tuple[StoredRecord, ...]:
    """Return the changes of an attempt that was not accepted."""
    kept = (AttemptResultChange(deliverable=PackedJson.pack(end.work)),) if end.work else ()
    return (_rejected_change(end), *kept)


def _rejected_change(end: AttemptOutcome) -> RejectedAttemptChange:
    return RejectedAttemptChange(
        end_cause=end.cause.value,
        answer_text=end.answer[:OUTPUT_ON_TASK],
        tripped=end.tripped,
        required_fixes=end.required_fixes,
        issues=end.issues,
        tree=end.tree,
        answer_hash=hash_text(end.answer),
        judged=end.judged,
        score=end.score,
    )


def report(
    task: Task, attempts: Sequence[AttemptRecord], last: tuple[int, AttemptOutcome], cause: Cause
) -> QCFailureReport:
    """Compute the failure report from the earlier attempts and the one that ended the task."""
    number, end = last
    timeline = [
        TimelineEntry(
            attempt=attempt.number,
            score=None if attempt.score is None else float(attempt.score),
            cause=attempt.end_cause,
            issues=attempt.issues,
        )
        for attempt in attempts
        if attempt.has_ended and attempt.number != number
    ]
    # The attempt that ended the task is not stored yet.
    timeline.append(
        TimelineEntry(attempt=number, score=end.score, cause=end.cause.value, issues=end.issues)
    )
    return failure_report(task.id, cause, tuple(timeline))


def failure_change(
    failure: QCFailureReport, cause: Cause, end: AttemptOutcome, given: retry.RetryInput
) -> FailureChange:
    """Return the change of a task that failed, with its report (phase 9)."""
    return FailureChange(
        cause=cause.value,
        qc_failure_report=PackedJson.pack(asdict(failure)),
        total_attempts=len(failure.timeline),
        total_qc_failures=given.judged_failures,
        qc_failures_count=given.judged_failures,
        final_worker_output=end.answer[:OUTPUT_ON_TASK],
        qc_attempt_metrics=_score_metrics([(e.attempt, e.score) for e in failure.timeline]),
    )
