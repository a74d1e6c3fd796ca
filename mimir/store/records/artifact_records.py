"""Records of artifacts: texts of a run, registrations of processes, and check runs."""

from typing import Annotated

from mimir.domain.evidence import CheckRun
from mimir.domain.value_class import value_class
from mimir.store.records.record_codec import ABSENT, PackedJson, Property, StoredRecord
from mimir.store.schema import NodeLabel


@value_class
class ArtifactRecord(StoredRecord, label=NodeLabel.ARTIFACT):
    """Stored text: an answer, the narrative of a report, the plan as it was written."""

    id: str
    kind: str = ""
    run_id: str = ""
    text: str = ""
    sha256: str = ""
    """Of the text when it was stored. Empty: not recorded."""
    length: int | None = None
    """Characters of the text when it was stored. None: not recorded."""


@value_class
class JsonArtifactRecord(StoredRecord, label=NodeLabel.ARTIFACT):
    """Stored JSON of a run: its preambles, the PM's brief, the PM's context receipt."""

    id: str
    kind: str = ""
    run_id: str = ""
    value: Annotated[PackedJson, Property(name="text")] = ABSENT


@value_class
class PoolCounters(StoredRecord, label=NodeLabel.ARTIFACT):
    """Work of a process for a run."""

    agents: int = 0
    """Tasks that it works on at once, at most."""
    tries: int = 0
    """Claims that it tried."""
    empty: int = 0
    """Claims that found no free task."""
    claimed: int = 0
    """Tasks that it claimed."""
    lost: int = 0
    """Leases that other processes took over."""
    busy_seconds: float = 0.0
    """Summed over its agents."""
    served_seconds: float = 0.0
    """Summed over its agents, since each started."""


@value_class
class ProcessRecord(PoolCounters):
    """Registration of a process that serves a run. It decides nothing; leases do."""

    id: str
    owner: str
    """Name of the process in leases."""
    run_id: str = ""
    host: str = ""
    number: Annotated[int, Property(name="process")] = 0
    """Process id of the operating system."""
    lock_file: str = ""
    """Absolute path on its host, locked while the process lives."""
    since: str = ""
    """ISO-8601 UTC, when it registered."""
    seen_at: str = ""
    """ISO-8601 UTC, its newest heartbeat."""
    until: str = ""
    """ISO-8601 UTC; a live process sends a heartbeat before that."""
    left_at: str = ""
    """ISO-8601 UTC. Empty: it did not leave in order."""


@value_class
class CheckRunRecord(StoredRecord, label=NodeLabel.ARTIFACT):
    """Stored check run, written before any conclusion is drawn from it."""

    id: str
    run_id: str = ""
    created_at: str = ""
    """ISO-8601 UTC."""
    place: Annotated[str, Property(name="by")] = ""
    """Task and attempt, or the part of the engine, for which it ran."""
    owner: str = ""
    """Process that ran it."""
    timeout_seconds: float = 0.0
    result: Annotated[PackedJson, Property(name="text")] = ABSENT
    """The check run."""

    def check_run(self) -> CheckRun:
        """Read the result.

        Raises:
            StoreError: It has another form.
        """
        return self.result.decode(CheckRun)
