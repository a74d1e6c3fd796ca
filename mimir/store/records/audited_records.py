"""Records for the audit: values changed after sealing are found, not refused.

A text of a wrong type counts as empty. A value that the audit compares with a seal is kept exactly as it is stored.
"""

from dataclasses import dataclass
from typing import Annotated

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


@dataclass(frozen=True, slots=True, kw_only=True)
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
    """None: absent or damaged."""
    gate_hash: Annotated[str | None, _TOLERANT] = None
    """None: absent or damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedTaskRecord(StoredRecord, label=NodeLabel.TASK):
    """Properties of a task that the audit compares with seals and events."""

    id: str
    task_id: TolerantText = ""
    status: object = None
    """As stored."""
    attempt_number: int = 0
    accepted_attempt: int = 0
    """0: none."""
    taken_from: object = None
    """As stored. None: it was worked on in this run."""
    qc_score: object = None
    """As stored."""
    qc_passed: object = None
    """As stored."""
    integrated_commit: TolerantText = ""
    integrated_tree: TolerantText = ""
    files_changed: tuple[str, ...] = ()
    passed_checks: tuple[str, ...] = ()
    criteria_executed: object = None
    """As stored."""
    criteria_judged: object = None
    """As stored."""
    criteria_unverified: object = None
    """As stored."""
    criteria_failed: object = None
    """As stored."""
    criteria_open: object = None
    """As stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedAttemptRecord(StoredRecord, label=NodeLabel.ATTEMPT):
    """Properties of an attempt that the audit compares with seals."""

    id: str
    task_id: TolerantText = ""
    number: _TolerantNumber = -1
    """-1: damaged."""
    status: object = None
    """As stored."""
    deliverable: Annotated[PackedJson, Property(name="workJson")] = ABSENT
    check_outcomes: Annotated[PackedJson, Property(name="checksJson")] = ABSENT
    verdict: Annotated[PackedJson, Property(name="judgementJson")] = ABSENT
    tree: object = None
    """As stored."""
    answer_hash: object = None
    """As stored."""
    worker_output: Annotated[str | None, _TOLERANT] = None
    """None: absent or damaged."""
    answer_text: Annotated[str | None, _TOLERANT] = None
    """None: absent or damaged."""
    qc_score: object = None
    """As stored."""
    qc_passed: object = None
    """As stored."""
    evidence_length: Annotated[int | None, Property(name="chainLength", is_tolerant=True)] = None
    """None: absent or damaged."""
    evidence_hash: Annotated[str | None, Property(name="chainHash", is_tolerant=True)] = None
    """None: absent or damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedArtifactRecord(StoredRecord, label=NodeLabel.ARTIFACT):
    """Answer of an attempt under audit."""

    id: str
    kind: TolerantText = ""
    text: str = ""
    sha256: object = None
    """As stored."""
    length: object = None
    """As stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedVerdictRecord(StoredRecord, label=NodeLabel.VERDICT):
    """Verdict node under audit."""

    id: str
    task_id: TolerantText = ""
    attempt_number: int = 0
    number: _TolerantNumber = -1
    """Which verdict on the attempt, 1-based. -1: damaged."""
    passed: object = None
    """As stored."""
    score: object = None
    """As stored."""
    verdict: Annotated[PackedJson, Property(name="judgementJson")] = ABSENT
