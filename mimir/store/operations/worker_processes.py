"""Which processes serve a run: each registers itself and says again and again that it is there; and what they hold of it.

A registration decides nothing: who may work is said by leases alone. It is for people, and it says where the lock file of a process is,
so that others of its host see at once that it died.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from mimir.domain.clock import moment, stamp
from mimir.store import row_fields
from mimir.store.protocol import ReadOps, Row, WriteOps
from mimir.store.records.artifact_records import ProcessRecord
from mimir.store.schema import NodeLabel

KIND = "worker"
"""Of the nodes (`Artifact`) that hold registrations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerProcess:
    """One process of mimir."""

    owner: str
    """Its name in leases."""
    host: str
    number: int
    """The operating system's, on its host."""
    lock_file: str
    """Absolute path on its host; the process holds an `flock` of it while it lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCounters:
    """What a process has done so far for a run."""

    agents: int = 0
    """Tasks that it works on at once, at most."""
    tries: int = 0
    """Claims that were tried because something was to be had."""
    empty: int = 0
    """Those of them that got nothing: others were faster."""
    claimed: int = 0
    """Tasks that were taken."""
    lost: int = 0
    """Leases that others took over."""
    busy_seconds: float = 0.0
    """Summed over its agents."""
    served_seconds: float = 0.0
    """Summed over its agents: since each came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLock:
    """A task under a lease, as the world sees it."""

    task_id: str
    agent_id: str
    version: int
    locked_at: str
    expires_at: str

    def as_json(self) -> dict[str, object]:
        """Return it with the names of the interface."""
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
    """Say that a process serves a run, and will be heard of again within `seconds`."""
    until = stamp(moment(ops.now()) + timedelta(seconds=seconds))
    known = ops.get(NodeLabel.ARTIFACT, _id(run, process.owner)) or {}
    row: Row = {
        "id": _id(run, process.owner),
        "name": process.owner,
        "runId": run,
        "kind": KIND,
        "owner": process.owner,
        "host": process.host,
        "process": process.number,
        "lockFile": process.lock_file,
        "since": row_fields.text_field(known, "since") or ops.now(),
        "seenAt": ops.now(),
        "until": until,
        "leftAt": None,
        **_counted(tally),
    }
    ops.upsert(NodeLabel.ARTIFACT, [row])


def count(ops: WriteOps, run: str, owner: str, tally: PoolCounters) -> None:
    """Write down what a process has done, whether it has left or not."""
    ops.patch(NodeLabel.ARTIFACT, _id(run, owner), _counted(tally))


def unregister_process(ops: WriteOps, run: str, owner: str) -> None:
    """Say that a process serves a run no more."""
    ops.patch(NodeLabel.ARTIFACT, _id(run, owner), {"leftAt": ops.now()})


def present(reads: ReadOps, run: str) -> list[Row]:
    """Return the registrations of a run, the one that came first first; those who left too."""
    found = reads.find(NodeLabel.ARTIFACT, {"runId": run, "kind": KIND})
    return sorted(found, key=lambda row: (row_fields.text_field(row, "since"), str(row["id"])))


def locks(reads: ReadOps, run: str) -> list[TaskLock]:
    """Return the tasks of a run that somebody holds, whether the lease has ended or not; by task."""
    held = reads.find(NodeLabel.TASK, {"runId": run, "claimState": "held"}, order=("seq",))
    return [
        TaskLock(
            task_id=row_fields.text_field(row, "taskId"),
            agent_id=row_fields.text_field(row, "lockedBy"),
            version=row_fields.int_field(row, "version"),
            locked_at=row_fields.text_field(row, "lockedAt"),
            expires_at=row_fields.text_field(row, "expiresAt"),
        )
        for row in held
    ]


def by_host(rows: Sequence[Row], host: str) -> Mapping[str, str]:
    """Return owner → lock file of the processes of one host that have not left. Pure."""
    return {
        row_fields.text_field(row, "owner"): row_fields.text_field(row, "lockFile")
        for row in rows
        if row_fields.text_field(row, "host") == host and not row.get("leftAt")
    }


def lock_files(processes: Iterable[ProcessRecord], host: str) -> Mapping[str, str]:
    """Return owner → lock file of the processes of one host that have not left."""
    return {one.owner: one.lock_file for one in processes if one.host == host and not one.left_at}


def _id(run: str, owner: str) -> str:
    return f"{run}#worker/{owner}"


def _counted(tally: PoolCounters) -> Row:
    return {_camel(name): value for name, value in asdict(tally).items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
