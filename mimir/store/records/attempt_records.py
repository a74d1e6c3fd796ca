"""Records of attempts."""

from typing import Annotated

from mimir.domain.task_states import TaskStatus
from mimir.domain.value_class import value_class
from mimir.store.records.record_codec import ABSENT, PackedJson, Property, StoredRecord
from mimir.store.schema import NodeLabel


@value_class
class AttemptRecord(StoredRecord, label=NodeLabel.ATTEMPT):
    """Stored state of one attempt."""

    id: str
    task_id: str
    """Id in the plan."""
    number: Annotated[int, Property(name="seq")]
    """1-based within the task; `attemptNumber` holds the same."""
    status: TaskStatus
    """Status of the task while this attempt was its newest."""
    run_id: str = ""
    is_retry: bool = False
    taken_from: str = ""
    """Run that it was reused from. Empty: it was made in this run."""

    start: PackedJson = ABSENT
    """Base, workspace tree and brief. Absent: the worker was not called yet."""
    deliverable: Annotated[PackedJson, Property(name="workJson")] = ABSENT
    """Deliverable. Absent: the worker has not answered."""
    check_outcomes: Annotated[PackedJson, Property(name="checksJson")] = ABSENT
    """Check outcomes. Absent: the checks have not run."""
    verdict: Annotated[PackedJson, Property(name="judgementJson")] = ABSENT
    """Verdict. Absent: not judged."""
    trip: PackedJson = ABSENT
    """Reason of the trip of the circuit breaker. Absent: it did not trip."""
    receipt: PackedJson = ABSENT
    """Context receipt of the worker, a JSON object."""
    qc_receipt: PackedJson = ABSENT
    """Context receipt of QC, a JSON object."""
    preamble_hash: str = ""
    """SHA-256 of the worker's preamble."""
    estimated_context_tokens: int | None = None
    """Tokens of the brief. None: not started."""
    context_tokens: int = 0
    """Tokens that the worker was given."""
    context_tokens_available: int = 0
    """Tokens that could be given to the worker."""
    context_pieces: tuple[str, ...] = ()
    """One `hash tokens` for each piece of the worker's context."""
    qc_context_tokens: int = 0
    """Tokens that QC was given."""
    qc_context_tokens_available: int = 0
    """Tokens that could be given to QC."""
    qc_context_pieces: tuple[str, ...] = ()
    """One `hash tokens` for each piece of QC's context."""

    worker_start_time: str = ""
    """ISO-8601 UTC. Empty: not started."""
    worker_completed_at: str = ""
    """ISO-8601 UTC. Empty: not answered."""
    worker_duration: float | None = None
    """Seconds. None: not answered."""
    worker_output: str | None = None
    """Beginning of the answer. None: not answered."""

    end_cause: str = ""
    """Reason of its rejection. Empty: it was not rejected."""
    judged: bool = False
    """True: it was rejected and uses up an attempt."""
    issues: tuple[str, ...] = ()
    required_fixes: tuple[str, ...] = ()
    score: float | None = None
    """Score of a rejected attempt, 0 to 100. None: not judged."""
    qc_score: float | None = None
    """Score that was sealed, 0 to 100. None: not judged."""
    qc_passed: bool | None = None
    """None: not judged."""
    answer_text: str = ""
    """Beginning of the answer of a rejected attempt."""
    answer_hash: str = ""
    tree: str = ""
    """Tree of the rejected deliverable."""
    tripped: str = ""
    """Limit that tripped, as a sentence. Empty: none."""
    note: str = ""
    evidence_length: Annotated[int | None, Property(name="chainLength")] = None
    """Evidence records. None: no record is sealed."""
    evidence_hash: Annotated[str, Property(name="chainHash")] = ""
    """Hash of the last of them."""
    integrated_commit: str = ""
    """Empty: nothing was merged."""

    @property
    def has_ended(self) -> bool:
        """Whether it ended without being accepted."""
        return bool(self.end_cause)


@value_class
class AttemptSummaryRecord(StoredRecord, label=NodeLabel.ATTEMPT, is_partial=True):
    """Projection of an attempt for the seal of its run and for metrics."""

    id: str
    task_id: str
    number: Annotated[int, Property(name="seq")]
    evidence_hash: Annotated[str, Property(name="chainHash")] = ""
    """Empty: no record is sealed."""
    is_retry: bool = False
    estimated_context_tokens: int | None = None
    """None: not started."""
    worker_duration: float | None = None
    """Seconds. None: not answered."""
