"""Records of tasks: the whole node, and projections for queries over thousands of tasks."""

from typing import Annotated

from mimir.domain.criteria_counts import CriteriaCounts
from mimir.domain.task_states import TaskStatus
from mimir.domain.value_class import value_class
from mimir.store.records.record_codec import ABSENT, PackedJson, Property, StoredRecord
from mimir.store.schema import NodeLabel


@value_class
class TaskStatusRecord(StoredRecord, label=NodeLabel.TASK, is_partial=True):
    """Projection of a task for `status`: no prompt, answer or JSON."""

    id: str
    task_id: str
    """Id in the plan."""
    status: TaskStatus
    title: str = ""
    attempt_number: int = 0
    """Attempts made so far."""
    max_retries: int = 0
    integration_retries: int = 0
    """Further attempts because of merge conflicts."""
    estimated_tool_calls: int | None = None
    """None: the plan has no estimate."""
    worker_tool_calls: int = 0
    """Of the attempt that answered last."""
    qc_score: float | None = None
    """0 to 100. None: not judged."""
    locked_by: str = ""
    """Process that holds the lease. Empty: no process."""
    expires_at: str = ""
    """End of the lease, ISO-8601 UTC. Empty: no lease."""
    cause: str = ""
    """Reason of an end without completion. Empty: there is none."""
    blocked_by: str = ""
    """Task that blocks this one. Empty: none."""
    waits_for: str = ""
    """Question that it waits for. Empty: none."""
    dependencies: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    """Those that the plan names. Empty: all of a worker."""
    criteria_executed: int = 0
    criteria_judged: int = 0
    criteria_unverified: int = 0
    criteria_failed: int = 0
    check_results: tuple[str, ...] = ()
    """Required checks of the last verdict in short. Empty: none, or an older version judged."""

    @property
    def criteria(self) -> CriteriaCounts:
        """Criteria by their state; zeros if no verdict was given."""
        return CriteriaCounts(
            executed=self.criteria_executed,
            judged=self.criteria_judged,
            unverified=self.criteria_unverified,
            failed=self.criteria_failed,
        )

    def is_held_at(self, now: str) -> bool:
        """Return whether a process holds the task at a time of the store."""
        return bool(self.locked_by) and self.expires_at > now


@value_class
class TaskRecord(TaskStatusRecord, is_partial=False):
    """Stored state of one task."""

    run_id: str = ""
    place: Annotated[int, Property(name="seq")] = -1
    """Place in the plan's order, 0-based. -1: damaged."""
    prompt: str = ""
    verification_criteria: tuple[str, ...] = ()
    """Criteria with their ids. Empty: nothing decides the task."""
    worker_role: str = ""
    qc_role: str = ""
    released: bool = False
    """True: the coordinator released it, so it can be claimed."""
    priority: float = 0.0
    """A higher one is claimed first."""
    fence: int = 0
    """Grows with each lease; a write under an older fence is refused."""
    version: int = 0
    claim_state: str = ""
    """`free`, `held`, `waiting` (for an answer), or empty: it cannot be claimed."""
    locked_at: str = ""
    """Start of the lease, ISO-8601 UTC. Empty: no lease."""
    held_seconds: float = 0.0
    """Time under leases that ended."""
    deaths: int = 0
    """Lost processes in a row without a gained outcome."""
    outcomes: int = 0
    """Calls and evidence records that were gained."""

    qc_failures_count: int = 0
    """Judged attempts that failed."""
    qc_feedback: str = ""
    qc_passed: bool | None = None
    """None: not judged."""
    accepted_attempt: int = 0
    """Number of the accepted attempt. 0: none."""
    worker_output: str = ""
    """Beginning of the answer; the whole one is an artifact."""
    worker_duration: float | None = None
    """Seconds. None: no attempt answered."""
    worker_tokens: int = 0
    files_changed: tuple[str, ...] = ()
    passed_checks: tuple[str, ...] = ()
    integrated_commit: str = ""
    """Empty: nothing was merged."""
    integrated_tree: str = ""
    """Empty: nothing was merged."""
    taken_from: str = ""
    """Run that it was reused from. Empty: it was worked on in this run."""
    first_base_tree: str = ""
    """Tree that the first attempt started from. Empty: none started."""
    retry_error_context: PackedJson = ABSENT
    """Findings of the attempt before, a JSON object."""
    qc_verification_history: PackedJson = ABSENT
    """Verdicts so far, a JSON array."""
    criteria_open: int = 0
    """Failed or unverified; any of them leaves a gap in the run."""

    @property
    def is_read_only(self) -> bool:
        """Whether nothing decides the task."""
        return not self.verification_criteria

    @property
    def is_reused(self) -> bool:
        """Whether it was reused from another run."""
        return bool(self.taken_from)


@value_class
class EndedTaskRecord(StoredRecord, label=NodeLabel.TASK, is_partial=True):
    """Projection of a task for the end of a run."""

    id: str
    task_id: str
    status: TaskStatus
    attempt_number: int = 0
    """Attempts made so far."""
    integrated_tree: str = ""
    """Empty: nothing was merged."""
    criteria_open: int = 0
    """Failed or unverified criteria."""


@value_class
class AcceptedTaskRecord(EndedTaskRecord):
    """Projection of a task for the checks that later trees must pass; without its answer."""

    run_id: str = ""
    accepted_attempt: int = 0
    """0: none."""
    passed_checks: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()
    taken_from: str = ""
    """Empty: it was worked on in this run."""


@value_class
class TaskAnswerRecord(StoredRecord, label=NodeLabel.TASK, is_partial=True):
    """Projection of a task for its answer."""

    id: str
    task_id: str
    run_id: str = ""
    worker_output: str = ""
    """Beginning of the answer; the whole one is an artifact."""
    accepted_attempt: int = 0
    """0: none."""


@value_class
class TaskEffortRecord(StoredRecord, label=NodeLabel.TASK, is_partial=True):
    """Projection of a task for forecasts of later runs."""

    id: str
    task_id: str
    status: TaskStatus
    worker_role: str = ""
    taken_from: str = ""
    """Run that it was reused from. Empty: it was worked on in this run."""
    held_seconds: float = 0.0
    """Time under leases that ended."""
    total_tokens_used: int = 0
    """Of all attempts, worker and QC."""


@value_class
class TaskProgressRecord(StoredRecord, label=NodeLabel.TASK, is_partial=True):
    """Projection of a task for the coordinator's snapshot."""

    id: str
    task_id: str
    status: TaskStatus
    released: bool = False
    """True: it can be claimed."""
    claim_state: str = ""
    """As of `TaskRecord`."""
