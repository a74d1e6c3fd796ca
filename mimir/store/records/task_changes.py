"""Changes of a task: properties of one phase. None removes one, unless skipped.

Times are texts of ISO-8601 in UTC.
"""

from collections.abc import Collection
from typing import Annotated

from mimir.domain.criteria_counts import CriteriaCounts
from mimir.domain.task_states import TERMINAL, TaskStatus
from mimir.domain.value_class import value_class
from mimir.store.protocol import Row
from mimir.store.records.record_codec import ABSENT, PackedJson, Property, StoredRecord
from mimir.store.schema import PHASES, NodeLabel


@value_class
class TaskStartChange(StoredRecord, label=NodeLabel.TASK):
    """Start of a task's worker (phase 2)."""

    first_base_tree: str
    """Tree that the first attempt started from."""
    estimated_context_tokens: int
    worker_start_time: str


@value_class
class WorkAnsweredChange(StoredRecord, label=NodeLabel.TASK):
    """Answer of the worker (phase 3)."""

    worker_output: str
    """Beginning of the answer."""
    worker_duration: float
    """Seconds."""
    worker_tokens: int
    worker_tool_calls: int
    worker_message_count: int
    worker_completed_at: str


@value_class
class ChecksCompletedChange(StoredRecord, label=NodeLabel.TASK):
    """End of the checks and start of QC (phases 4 and 5)."""

    checks_completed_at: str
    qc_start_time: str
    qc_attempt_number: int


@value_class
class RetryChange(StoredRecord, label=NodeLabel.TASK):
    """Preparation of a retry (phase 7)."""

    next_attempt_number: int
    retry_reason: str
    """`integration` or `qc_failure`."""
    retry_error_context: PackedJson
    """Findings of the attempt before, a JSON object."""
    retry_prepared_at: str
    is_retry: bool = True
    qc_failures_count: int
    integration_retries: int


@value_class
class CompletionChange(StoredRecord, label=NodeLabel.TASK):
    """Completion and merge of a task (phases 8 and 10), with `CriteriaCountsChange`."""

    qc_score: float
    """0 to 100."""
    qc_passed: bool = True
    qc_feedback: str
    verified_at: str
    total_attempts: int
    qc_passed_on_attempt: int
    retries_needed: int
    files_changed: tuple[str, ...]
    integrated_at: str
    integrated_commit: str | None
    """None: nothing was merged."""
    integrated_tree: str | None
    """None: nothing was merged."""
    accepted_attempt: int
    passed_checks: tuple[str, ...]


@value_class
class FailureChange(StoredRecord, label=NodeLabel.TASK):
    """Failure of a task with its report (phase 9)."""

    cause: str
    qc_passed: bool = False
    qc_failure_report: PackedJson
    qc_failure_report_generated: bool = True
    total_attempts: int
    total_qc_failures: Annotated[int, Property(name="totalQCFailures")]
    qc_failures_count: int
    final_worker_output: str
    """Beginning of the answer."""
    improvement_needed: bool = True
    qc_attempt_metrics: PackedJson


@value_class
class QCFeedbackChange(StoredRecord, label=NodeLabel.TASK):
    """Reason why QC was unavailable; written together with `FailureChange`."""

    qc_feedback: str


@value_class
class VerdictChange(StoredRecord, label=NodeLabel.TASK):
    """Verdict on an attempt (phase 6), written together with `CriteriaCountsChange`."""

    qc_score: float
    """0 to 100."""
    qc_passed: bool
    qc_feedback: str
    qc_issues: tuple[str, ...]
    qc_required_fixes: tuple[str, ...]
    required_fixes: tuple[str, ...]
    qc_completed_at: str


@value_class
class CriteriaCountsChange(StoredRecord, label=NodeLabel.TASK):
    """Criteria of a verdict in numbers; written with `VerdictChange` and `CompletionChange`."""

    criteria_executed: int
    criteria_judged: int
    criteria_unverified: int
    criteria_failed: int
    criteria_open: int
    """Failed or unverified."""

    @classmethod
    def of_counts(cls, counts: CriteriaCounts) -> "CriteriaCountsChange":
        """Return the change for counted criteria."""
        return cls(
            criteria_executed=counts.executed,
            criteria_judged=counts.judged,
            criteria_unverified=counts.unverified,
            criteria_failed=counts.failed,
            criteria_open=counts.open,
        )


@value_class
class CheckResultsChange(StoredRecord, label=NodeLabel.TASK):
    """Required checks of a verdict in short; written with `VerdictChange`."""

    check_results: tuple[str, ...]
    """`unit: 12 of 12 tests, control red`."""


@value_class
class VerdictHistoryChange(StoredRecord, label=NodeLabel.TASK, skips_none=True):
    """Verdicts of a task so far; absent properties do not change."""

    qc_verification_history: PackedJson = ABSENT
    """A JSON array."""
    qc_attempt_metrics: PackedJson = ABSENT
    """Scores of a completed task, a JSON object."""
    qc_failures_count: int | None = None


@value_class
class ReuseChange(StoredRecord, label=NodeLabel.TASK):
    """Completion of a task with the accepted attempt of another run."""

    qc_passed: bool = True
    verified_at: str
    integrated_at: str
    integrated_commit: str | None
    """None: nothing was merged."""
    integrated_tree: str | None
    """None: nothing was merged."""
    accepted_attempt: int
    total_attempts: int
    taken_from: str
    """The other run."""


# Stored names that a reused attempt and its task copy from another run.
REUSED_OF_ATTEMPT = (
    "checksJson", "judgementJson", "workJson", "startJson", "receiptJson", "preambleHash",
)  # fmt: skip
REUSED_OF_TASK = (
    "qcScore", "qcFeedback", "workerOutput", "workerToolCalls", "workerTokens", "workerDuration",
    "workerMessageCount", "filesChanged", "passedChecks", "qcIssues", "criteriaExecuted",
    "criteriaJudged", "criteriaUnverified", "criteriaFailed", "criteriaOpen",
)  # fmt: skip
_OF_PHASES = frozenset(name for names in PHASES.values() for name in names)


def copied_to_attempt(values: Row, to: TaskStatus) -> Row:
    """Return the copy of a phase on the attempt: on the task, the next attempt replaces it."""
    # A verdict stays on the attempt as it was sealed, however the task ends.
    return select_present(values, _OF_PHASES.difference(PHASES[6] if to in TERMINAL else ()))


def select_present(row: Row, names: Collection[str]) -> Row:
    """Return these properties of a row, if present."""
    return {name: value for name, value in row.items() if name in names}
