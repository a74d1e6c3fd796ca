"""Changes of an attempt: properties that one phase writes. None removes one."""

from dataclasses import dataclass
from typing import Annotated

from mimir.store.records.record_codec import PackedJson, Property, StoredRecord
from mimir.store.schema import NodeLabel


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStartChange(StoredRecord, label=NodeLabel.ATTEMPT):
    """Start of an attempt; its context figures are written beside it."""

    start: PackedJson
    """Base, workspace tree and brief."""
    receipt: PackedJson
    """Context receipt of the worker."""
    preamble_hash: str
    estimated_context_tokens: int
    worker_start_time: str
    """ISO-8601 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContextChange(StoredRecord, label=NodeLabel.ATTEMPT):
    """Context of the worker in numbers, for queries that cannot look into JSON."""

    context_tokens: int
    context_tokens_available: int
    context_pieces: tuple[str, ...]
    """One `hash tokens` for each piece."""
    context_given: tuple[str, ...]
    """One `name (tokens)` for each piece that was given."""
    context_withheld: tuple[str, ...]
    """One `name (tokens, why)` for each piece that was withheld."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QCContextChange(StoredRecord, label=NodeLabel.ATTEMPT):
    """Context of QC in numbers, for queries that cannot look into JSON."""

    qc_context_tokens: int
    qc_context_tokens_available: int
    qc_context_pieces: tuple[str, ...]
    """One `hash tokens` for each piece."""
    qc_context_given: tuple[str, ...]
    """One `name (tokens)` for each piece that was given."""
    qc_context_withheld: tuple[str, ...]
    """One `name (tokens, why)` for each piece that was withheld."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptDeliverableChange(StoredRecord, label=NodeLabel.ATTEMPT):
    """Deliverable of an attempt (phase 3)."""

    deliverable: Annotated[PackedJson, Property(name="workJson")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptChecksChange(StoredRecord, label=NodeLabel.ATTEMPT):
    """Check outcomes of an attempt (phase 4)."""

    check_outcomes: Annotated[PackedJson, Property(name="checksJson")]


@dataclass(frozen=True, slots=True, kw_only=True)
class QCReceiptChange(StoredRecord, label=NodeLabel.ATTEMPT):
    """Context receipt of a QC agent that gave no verdict."""

    qc_receipt: PackedJson


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptVerdictChange(StoredRecord, label=NodeLabel.ATTEMPT):
    """Verdict on an attempt (phase 6), with QC's context receipt."""

    verdict: Annotated[PackedJson, Property(name="judgementJson")]
    qc_receipt: PackedJson
    qc_tokens: int
    """Tokens that QC used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptMergeChange(StoredRecord, label=NodeLabel.ATTEMPT):
    """Final verdict and merge of an accepted attempt (phase 10)."""

    verdict: Annotated[PackedJson, Property(name="judgementJson")]
    integrated_commit: str | None
    """None: nothing was merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTripChange(StoredRecord, label=NodeLabel.ATTEMPT):
    """Reason why the circuit breaker tripped."""

    trip: PackedJson


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedAttemptChange(StoredRecord, label=NodeLabel.ATTEMPT):
    """End of an attempt that was not accepted."""

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
