"""Changes of an attempt: the properties that one phase writes together. None removes a property."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from mimir.store.records.record_codec import PackedJson, Property, StoredRecord
from mimir.store.schema import NodeLabel


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStartChange(StoredRecord):
    """Start of an attempt; its context figures are written beside it."""

    label: ClassVar[NodeLabel] = NodeLabel.ATTEMPT

    start: PackedJson
    """Base, workspace tree and brief."""
    receipt: PackedJson
    """Context receipt of the worker."""
    preamble_hash: str
    estimated_context_tokens: int
    worker_start_time: str
    """ISO-8601 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContextChange(StoredRecord):
    """Context of the worker in numbers, for queries that cannot look into JSON."""

    label: ClassVar[NodeLabel] = NodeLabel.ATTEMPT

    context_tokens: int
    context_tokens_available: int
    context_pieces: tuple[str, ...]
    """One `hash tokens` for each piece."""
    context_given: tuple[str, ...]
    """One `name (tokens)` for each piece that was given."""
    context_withheld: tuple[str, ...]
    """One `name (tokens, why)` for each piece that was withheld."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QCContextChange(StoredRecord):
    """Context of QC in numbers, for queries that cannot look into JSON."""

    label: ClassVar[NodeLabel] = NodeLabel.ATTEMPT

    qc_context_tokens: int
    qc_context_tokens_available: int
    qc_context_pieces: tuple[str, ...]
    """One `hash tokens` for each piece."""
    qc_context_given: tuple[str, ...]
    """One `name (tokens)` for each piece that was given."""
    qc_context_withheld: tuple[str, ...]
    """One `name (tokens, why)` for each piece that was withheld."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptDeliverableChange(StoredRecord):
    """Deliverable of an attempt (phase 3)."""

    label: ClassVar[NodeLabel] = NodeLabel.ATTEMPT

    deliverable: Annotated[PackedJson, Property(name="workJson")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptChecksChange(StoredRecord):
    """Check outcomes of an attempt (phase 4)."""

    label: ClassVar[NodeLabel] = NodeLabel.ATTEMPT

    check_outcomes: Annotated[PackedJson, Property(name="checksJson")]


@dataclass(frozen=True, slots=True, kw_only=True)
class QCReceiptChange(StoredRecord):
    """Context receipt of a QC agent that gave no verdict."""

    label: ClassVar[NodeLabel] = NodeLabel.ATTEMPT

    qc_receipt: PackedJson


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptVerdictChange(StoredRecord):
    """Verdict on an attempt (phase 6), with QC's context receipt."""

    label: ClassVar[NodeLabel] = NodeLabel.ATTEMPT

    verdict: Annotated[PackedJson, Property(name="judgementJson")]
    qc_receipt: PackedJson
    qc_tokens: int
    """Tokens that QC used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptMergeChange(StoredRecord):
    """Final verdict and merge of an accepted attempt (phase 10)."""

    label: ClassVar[NodeLabel] = NodeLabel.ATTEMPT

    verdict: Annotated[PackedJson, Property(name="judgementJson")]
    integrated_commit: str | None
    """None: nothing was merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTripChange(StoredRecord):
    """Reason why the circuit breaker tripped."""

    label: ClassVar[NodeLabel] = NodeLabel.ATTEMPT

    trip: PackedJson


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedAttemptChange(StoredRecord):
    """End of an attempt that was not accepted."""

    label: ClassVar[NodeLabel] = NodeLabel.ATTEMPT

    end_cause: str
    answer_text: str
    """Beginning of the answer."""
    tripped: str
    """What tripped, in words. Empty: nothing."""
    required_fixes: tuple[str, ...]
    issues: tuple[str, ...]
    tree: str
    answer_hash: str
    judged: bool
    """True: it uses up an attempt."""
    score: float | None
    """0 to 100. None: not judged."""
