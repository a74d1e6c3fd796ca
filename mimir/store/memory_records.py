"""Records of memories that agents propose."""

from typing import Annotated, Literal

from mimir.domain.value_class import value_class
from mimir.store.records.record_codec import ABSENT, PackedJson, Property, StoredRecord
from mimir.store.schema import NodeLabel

MemoryState = Literal["proposed", "accepted", "rejected", "superseded", "expired"]


@value_class
class MemoryRecord(StoredRecord, label=NodeLabel.MEMORY):
    """Stored memory with its proposal and the decision about it."""

    id: str
    name: str = ""
    kind: str = ""
    text: str = ""
    state: MemoryState = "accepted"
    project_id: str = ""
    created_at: str = ""
    """ISO-8601 UTC."""
    run_id: str = ""
    """Run that proposed or taught it. Empty: none."""
    source_attempt: str = ""
    proposed_by: str = ""
    """`agent:ADDRESS`, a client of the server, `engine` or `person`."""
    operation: Annotated[str, Property(name="op")] = ""
    """Memory operation of the agent. Empty: a note."""
    data: PackedJson = ABSENT
    """Data of the operation."""
    entities: tuple[str, ...] = ()
    """Names that it is about."""
    sources: tuple[str, ...] = ()
    """As the agent gave them."""
    unverified: tuple[str, ...] = ()
    """Sources that do not hold, each with the reason."""
    relevance: float | None = None
    """Share of its words that belong to the task, 0 to 1. None: not computed."""
    duplicate_of: str = ""
    """Memory with the same words. Empty: none."""
    contradicts: tuple[str, ...] = ()
    """Accepted memories about the same entity with other words."""
    task_hash: str = ""
    """SHA-256 of the task of its run."""
    decided_by: str = ""
    """Empty: not decided, or by a version that did not store it."""
    decided_at: str = ""
    feedback: str = ""
    """Decision in words, for the agent."""
    superseded_by: str = ""
    """Newer memory that took its place. Empty: none."""


@value_class
class MemoryDecisionChange(StoredRecord, label=NodeLabel.MEMORY):
    """Decision about a memory."""

    state: MemoryState
    text: str
    decided_by: str
    decided_at: str
    feedback: str
    superseded_by: str | None = None


@value_class
class MemoryEndChange(StoredRecord, label=NodeLabel.MEMORY, skips_none=True):
    """End of an accepted memory."""

    state: MemoryState
    superseded_by: str | None = None
    """None: it expired."""
