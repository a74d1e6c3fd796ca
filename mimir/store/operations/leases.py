"""Leases on a run itself: who coordinates it, who integrates now. A property pair on the Run node: `<name>` and `<name>Until`."""

from collections.abc import Collection
from datetime import timedelta

from mimir.domain.clock import moment, stamp
from mimir.store import row_fields
from mimir.store.protocol import ReadOps, Row, WriteOps
from mimir.store.schema import NodeLabel


def holder(reads: ReadOps, row: Row, name: str, dead: Collection[str] = ()) -> str:
    """Return who holds a run's lease now; empty: nobody, or one whose time is over or who is known to be gone."""
    return holder_at(row, name, reads.now(), dead)


def holder_at(row: Row, name: str, now: str, dead: Collection[str] = ()) -> str:
    """Return the same for a time that the store has told. Pure."""
    owner = row_fields.text_field(row, name)
    live = owner and owner not in dead and row_fields.text_field(row, f"{name}Until") > now
    return owner if live else ""


def acquire_lease(
    ops: WriteOps, run: str, name: str, owner: str, *, seconds: float, dead: Collection[str] = ()
) -> bool:
    """Take or renew a run's lease; False if another holds it."""
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
    """Give a run's lease back; one that another holds stays."""
    ops.patch_if(NodeLabel.RUN, run, {name: owner}, {name: None, f"{name}Until": None})
