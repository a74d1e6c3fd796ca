"""Records for the audit: values changed after sealing are found, not refused.

A text of a wrong type counts as empty, and None is absent or damaged. A field of type `object`, which the audit compares with a seal, is
kept exactly as it is stored.
"""

from typing import Annotated

from mimir.domain.value_class import value_class
from mimir.store.records.record_codec import (
    ABSENT,
    PackedJson,
    Property,
    StoredRecord,
    TolerantText,
)
from mimir.store.schema import NodeLabel

_TOLERANT = Property(is_tolerant=True)
_TolerantNumber = Annotated[int, Property(name="seq", is_tolerant=True)]


@value_class
class AuditedRunRecord(StoredRecord, label=NodeLabel.RUN):
    """Properties of a run that the audit compares with seals and events."""

    id: str
    kind: TolerantText = ""
    status: TolerantText = ""
    outcome: TolerantText = ""
    seal: TolerantText = ""
    base_commit: TolerantText = ""
    head: TolerantText = ""
    head_tree: TolerantText = ""
    final_commit: TolerantText = ""
    gate_length: Annotated[int | None, _TOLERANT] = None
    gate_hash: Annotated[str | None, _TOLERANT] = None


@value_class
class AuditedTaskRecord(StoredRecord, label=NodeLabel.TASK):
    """Properties of a task that the audit compares with seals and events."""

    id: str
    task_id: TolerantText = ""
    status: object = None
    attempt_number: int = 0
    accepted_attempt: int = 0
    """0: none."""
    taken_from: object = None
    """As stored. None: it was worked on in this run."""
    qc_score: object = None
    qc_passed: object = None
    integrated_commit: TolerantText = ""
    integrated_tree: TolerantText = ""
    files_changed: tuple[str, ...] = ()
    passed_checks: tuple[str, ...] = ()
    criteria_executed: object = None
    criteria_judged: object = None
    criteria_unverified: object = None
    criteria_failed: object = None
    criteria_open: object = None


@value_class
class AuditedAttemptRecord(StoredRecord, label=NodeLabel.ATTEMPT):
    """Properties of an attempt that the audit compares with seals."""

    id: str
    task_id: TolerantText = ""
    number: _TolerantNumber = -1
    """-1: damaged."""
    status: object = None
    deliverable: Annotated[PackedJson, Property(name="workJson")] = ABSENT
    check_outcomes: Annotated[PackedJson, Property(name="checksJson")] = ABSENT
    verdict: Annotated[PackedJson, Property(name="judgementJson")] = ABSENT
    tree: object = None
    answer_hash: object = None
    worker_output: Annotated[str | None, _TOLERANT] = None
    answer_text: Annotated[str | None, _TOLERANT] = None
    qc_score: object = None
    qc_passed: object = None
    evidence_length: Annotated[int | None, Property(name="chainLength", is_tolerant=True)] = None
    evidence_hash: Annotated[str | None, Property(name="chainHash", is_tolerant=True)] = None


@value_class
class AuditedArtifactRecord(StoredRecord, label=NodeLabel.ARTIFACT):
    """Answer of an attempt under audit."""

    id: str
    kind: TolerantText = ""
    text: str = ""
    sha256: object = None
    length: object = None


@value_class
class AuditedVerdictRecord(StoredRecord, label=NodeLabel.VERDICT):
    """Verdict node under audit."""

    id: str
    task_id: TolerantText = ""
    attempt_number: int = 0
    number: _TolerantNumber = -1
    """Which verdict on the attempt, 1-based. -1: damaged."""
    passed: object = None
    score: object = None
    verdict: Annotated[PackedJson, Property(name="judgementJson")] = ABSENT
