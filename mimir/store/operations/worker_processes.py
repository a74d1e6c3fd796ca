"""Processes that serve a run: each registers itself and renews its registration.

A registration decides nothing; leases do. It names the lock file of a process, so that processes of the same host see its death at once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from mimir.domain.clock import moment, stamp
from mimir.store.protocol import ReadOps, Row, WriteOps
from mimir.store.records.artifact_records import ProcessRecord
from mimir.store.records.record_codec import StoredRecord, encode
from mimir.store.row_fields import int_field, text_field
from mimir.store.schema import NodeLabel

# Kind of the artifacts that are registrations.
KIND = "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerProcess:
    """One process of mimir."""

    owner: str
    """Its name in leases."""
    host: str
    number: int
    """Process id on its host."""
    lock_file: str
    """Absolute path on its host, locked (`flock`) while the process lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLock:
    """Task under a lease, for the Todo interface."""

    task_id: str
    agent_id: str
    version: int
    locked_at: str
    expires_at: str

    def as_json(self) -> dict[str, object]:
        """Return it under the names of the interface."""
        return {
            "taskId": self.task_id,
            "agentId": self.agent_id,
            "version": self.version,
            "lockedAt": self.locked_at,
            "expiresAt": self.expires_at,
        }


def register_process(
    ops: WriteOps, run: str, process: WorkerProcess, tally: PoolCounters, seconds: float
) -> None:
    """Register a process, or renew its registration for `seconds`."""
    # The start time stays: a renewal is not a new process.
    until = stamp(moment(ops.now()) + timedelta(seconds=seconds))
    known = ops.get(NodeLabel.ARTIFACT, _id(run, process.owner)) or {}
    row: Row = {
        "id": _id(run, process.owner), "name": process.owner, "runId": run, "kind": KIND, "owner": process.owner,
        "host": process.host, "process": process.number, "lockFile": process.lock_file,
        "since": text_field(known, "since") or ops.now(), "seenAt": ops.now(), "until": until,
        "leftAt": None, **encode(tally),
    }  # fmt: skip
    ops.upsert(NodeLabel.ARTIFACT, [row])


def count(ops: WriteOps, run: str, owner: str, tally: PoolCounters) -> None:
    """Save the counters of a process, also after it has left."""
    ops.patch(NodeLabel.ARTIFACT, _id(run, owner), encode(tally))


def unregister_process(ops: WriteOps, run: str, owner: str) -> None:
    """Record that a process serves a run no longer."""
    ops.patch(NodeLabel.ARTIFACT, _id(run, owner), {"leftAt": ops.now()})


def locks(reads: ReadOps, run: str) -> list[TaskLock]:
    """Return the tasks of a run under a lease, also an ended one; by task."""
    held = reads.find(NodeLabel.TASK, {"runId": run, "claimState": "held"}, order=("seq",))
    return [
        TaskLock(
            task_id=text_field(row, "taskId"),
            agent_id=text_field(row, "lockedBy"),
            version=int_field(row, "version"),
            locked_at=text_field(row, "lockedAt"),
            expires_at=text_field(row, "expiresAt"),
        )
        for row in held
    ]


def lock_files(processes: Iterable[ProcessRecord], host: str) -> Mapping[str, str]:
    """Return owner → lock file of the processes of one host that have not left."""
    return {one.owner: one.lock_file for one in processes if one.host == host and not one.left_at}


def _id(run: str, owner: str) -> str:
    return f"{run}#worker/{owner}"
