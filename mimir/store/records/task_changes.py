"""Changes of a task: the properties that one phase writes together. None removes a property unless the class skips it."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from mimir.domain.criteria_counts import CriteriaCounts
from mimir.store.records.record_codec import ABSENT, PackedJson, Property, StoredRecord
from mimir.store.schema import NodeLabel


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStartChange(StoredRecord):
    """Start of a task's worker (phase 2)."""

    label: ClassVar[NodeLabel] = NodeLabel.TASK

    first_base_tree: str
    """Tree that the first attempt started from."""
    estimated_context_tokens: int
    worker_start_time: str
    """ISO-8601 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAnsweredChange(StoredRecord):
    """Answer of the worker (phase 3)."""

    label: ClassVar[NodeLabel] = NodeLabel.TASK

    worker_output: str
    """Beginning of the answer."""
    worker_duration: float
    """Seconds."""
    worker_tokens: int
    worker_tool_calls: int
    worker_message_count: int
    worker_completed_at: str
    """ISO-8601 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksCompletedChange(StoredRecord):
    """End of the checks and start of QC (phases 4 and 5)."""

    label: ClassVar[NodeLabel] = NodeLabel.TASK

    checks_completed_at: str
    """ISO-8601 UTC."""
    qc_start_time: str
    """ISO-8601 UTC."""
    qc_attempt_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryChange(StoredRecord):
    """Preparation of a retry (phase 7)."""

    label: ClassVar[NodeLabel] = NodeLabel.TASK

    next_attempt_number: int
    retry_reason: str
    """`integration` or `qc_failure`."""
    retry_error_context: PackedJson
    """Findings of the attempt before, a JSON object."""
    retry_prepared_at: str
    """ISO-8601 UTC."""
    is_retry: bool = True
    qc_failures_count: int
    integration_retries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionChange(StoredRecord):
    """Completion and integration of a task (phases 8 and 10); the counts of its criteria are written beside it."""

    label: ClassVar[NodeLabel] = NodeLabel.TASK

    qc_score: float
    """0 to 100."""
    qc_passed: bool = True
    qc_feedback: str
    verified_at: str
    """ISO-8601 UTC."""
    total_attempts: int
    qc_passed_on_attempt: int
    retries_needed: int
    files_changed: tuple[str, ...]
    integrated_at: str
    """ISO-8601 UTC."""
    integrated_commit: str | None
    """None: nothing was merged."""
    integrated_tree: str | None
    """None: nothing was merged."""
    accepted_attempt: int
    passed_checks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureChange(StoredRecord):
    """Failure of a task with its report (phase 9)."""

    label: ClassVar[NodeLabel] = NodeLabel.TASK

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


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictChange(StoredRecord):
    """Verdict on an attempt (phase 6); the counts of its criteria are written beside it."""

    label: ClassVar[NodeLabel] = NodeLabel.TASK

    qc_score: float
    """0 to 100."""
    qc_passed: bool
    qc_feedback: str
    qc_issues: tuple[str, ...]
    qc_required_fixes: tuple[str, ...]
    required_fixes: tuple[str, ...]
    qc_completed_at: str
    """ISO-8601 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriteriaCountsChange(StoredRecord):
    """Criteria of a verdict in numbers; written beside `VerdictChange` and `CompletionChange`."""

    label: ClassVar[NodeLabel] = NodeLabel.TASK

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


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictHistoryChange(StoredRecord):
    """Verdicts of a task so far; what is absent stays as it is."""

    label: ClassVar[NodeLabel] = NodeLabel.TASK
    skips_none: ClassVar[bool] = True

    qc_verification_history: PackedJson = ABSENT
    """A JSON array."""
    qc_attempt_metrics: PackedJson = ABSENT
    """Scores of a completed task, a JSON object."""
    qc_failures_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseChange(StoredRecord):
    """Completion of a task with the accepted attempt of another run."""

    label: ClassVar[NodeLabel] = NodeLabel.TASK

    qc_passed: bool = True
    verified_at: str
    """ISO-8601 UTC."""
    integrated_at: str
    """ISO-8601 UTC."""
    integrated_commit: str | None
    """None: nothing was merged."""
    integrated_tree: str | None
    """None: nothing was merged."""
    accepted_attempt: int
    total_attempts: int
    taken_from: str
    """The other run."""
