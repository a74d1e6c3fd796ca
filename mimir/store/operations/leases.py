"""Leases on a run: pairs of properties `<name>` and `<name>Until`."""

from collections.abc import Collection
from datetime import timedelta

from mimir.domain.clock import moment, stamp
from mimir.store.protocol import WriteOps
from mimir.store.row_fields import text_field
from mimir.store.schema import NodeLabel


def acquire_lease(
    ops: WriteOps, run: str, name: str, owner: str, *, seconds: float, dead: Collection[str] = ()
) -> bool:
    """Take or renew a run's lease; False if another process holds it."""
    # Compared with the values read before, so two processes cannot both take a free lease.
    row = ops.get(NodeLabel.RUN, run) or {}
    holder, end = text_field(row, name), text_field(row, f"{name}Until")
    if holder not in ("", owner, *dead) and end > ops.now():
        return False
    until = stamp(moment(ops.now()) + timedelta(seconds=seconds))
    expect = {name: row.get(name), f"{name}Until": row.get(f"{name}Until")}
    return (
        ops.patch_if(NodeLabel.RUN, run, expect, {name: owner, f"{name}Until": until}) is not None
    )


def release_lease(ops: WriteOps, run: str, name: str, owner: str) -> None:
    """Release a run's lease, unless another process holds it."""
    ops.patch_if(NodeLabel.RUN, run, {name: owner}, {name: None, f"{name}Until": None})
