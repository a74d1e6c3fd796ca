"""Leases on a run: pairs of properties `<name>` and `<name>Until`."""

from collections.abc import Collection
from datetime import timedelta

from mimir.domain.clock import moment, stamp
from mimir.store import row_fields
from mimir.store.protocol import ReadOps, Row, WriteOps
from mimir.store.schema import NodeLabel


def holder(reads: ReadOps, row: Row, name: str, dead: Collection[str] = ()) -> str:
    """Return the holder of a run's lease; empty if free, over, or of a dead process."""
    return holder_at(row, name, reads.now(), dead)


def holder_at(row: Row, name: str, now: str, dead: Collection[str] = ()) -> str:
    """Return the holder at a time of the store."""
    owner = row_fields.text_field(row, name)
    live = owner and owner not in dead and row_fields.text_field(row, f"{name}Until") > now
    return owner if live else ""


def acquire_lease(
    ops: WriteOps, run: str, name: str, owner: str, *, seconds: float, dead: Collection[str] = ()
) -> bool:
    """Take or renew a run's lease; False if another process holds it."""
    # Compared with the values read before, so two processes cannot both take a free lease.
    row = ops.get(NodeLabel.RUN, run) or {}
    held = holder(ops, row, name, dead)
    if held and held != owner:
        return False
    until = stamp(moment(ops.now()) + timedelta(seconds=seconds))
    expect = {name: row.get(name), f"{name}Until": row.get(f"{name}Until")}
    return (
        ops.patch_if(NodeLabel.RUN, run, expect, {name: owner, f"{name}Until": until}) is not None
    )


def release_lease(ops: WriteOps, run: str, name: str, owner: str) -> None:
    """Release a run's lease, unless another process holds it."""
    ops.patch_if(NodeLabel.RUN, run, {name: owner}, {name: None, f"{name}Until": None})
