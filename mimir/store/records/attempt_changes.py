"""Changes of an attempt: properties of one phase. None removes one, unless skipped."""

from typing import Annotated

from mimir.domain.value_class import value_class
from mimir.store.records.record_codec import ABSENT, PackedJson, Property, StoredRecord
from mimir.store.schema import NodeLabel


@value_class
class AttemptStartChange(StoredRecord, label=NodeLabel.ATTEMPT):
    """Start of an attempt; its context figures are written with it."""

    start: PackedJson
    """Base, workspace tree and brief."""
    receipt: PackedJson
    """Context receipt of the worker."""
    preamble_hash: str
    estimated_context_tokens: int
    worker_start_time: str
    """ISO-8601 UTC."""


@value_class
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


@value_class
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


@value_class
class AttemptResultChange(StoredRecord, label=NodeLabel.ATTEMPT, skips_none=True):
    """Results of an attempt after a phase; absent properties do not change."""

    deliverable: Annotated[PackedJson, Property(name="workJson")] = ABSENT
    check_outcomes: Annotated[PackedJson, Property(name="checksJson")] = ABSENT
    verdict: Annotated[PackedJson, Property(name="judgementJson")] = ABSENT
    """Verdict of phase 6; after a merge the final one."""
    qc_receipt: PackedJson = ABSENT
    """Context receipt of QC, also if it gave no verdict."""
    qc_tokens: int | None = None
    """Tokens that QC used."""
    trip: PackedJson = ABSENT
    """Reason why the circuit breaker tripped."""
    integrated_commit: str | None = None
    """None: nothing was merged."""


@value_class
class RejectedAttemptChange(StoredRecord, label=NodeLabel.ATTEMPT):
    """End of an attempt that was not accepted."""

    end_cause: str
    answer_text: str
    """Beginning of the answer."""
    tripped: str
    """Limit that tripped, as a sentence. Empty: none."""
    required_fixes: tuple[str, ...]
    issues: tuple[str, ...]
    tree: str
    answer_hash: str
    judged: bool
    """True: it uses up an attempt."""
    score: float | None
    """0 to 100. None: not judged."""
