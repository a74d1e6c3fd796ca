"""Processes that serve a run: each registers itself and renews its registration.

A registration decides nothing; leases do. It names the lock file of a process, so that processes of the same host see its death at once.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from mimir.domain.clock import moment, stamp
from mimir.domain.value_class import value_class
from mimir.store.protocol import Row, WriteOps
from mimir.store.records.artifact_records import PoolCounters, ProcessRecord
from mimir.store.records.record_codec import encode
from mimir.store.row_fields import text_field
from mimir.store.schema import NodeLabel

# Kind of the artifacts that are registrations.
KIND = "worker"


@value_class
class WorkerProcess:
    """One process of mimir."""

    owner: str
    """Its name in leases."""
    host: str
    number: int
    """Process id on its host."""
    lock_file: str
    """Absolute path on its host, locked (`flock`) while the process lives."""


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


def lock_files(processes: Iterable[ProcessRecord], host: str) -> Mapping[str, str]:
    """Return owner → lock file of the processes of one host that have not left."""
    return {one.owner: one.lock_file for one in processes if one.host == host and not one.left_at}


def _id(run: str, owner: str) -> str:
    return f"{run}#worker/{owner}"
