"""Lookup of a run and its status, from the store alone and without heavy imports."""

from collections.abc import Collection, Mapping
from datetime import datetime
from functools import partial

from mimir.orchestrator.runs.listing import find_id
from mimir.reporting import status as status_shape
from mimir.store.protocol import GraphStore, ReadOps
from mimir.store.run_reading import load_run


async def find_run(
    store: GraphStore, project_id: str, run: str | None, *, resumable: bool = False
) -> str:
    """Return a run's id, as `find_id`, with the same error."""
    return await store.read(partial(find_id, project_id=project_id, run=run, resumable=resumable))


async def status(
    store: GraphStore, run: str, dead: Collection[str], now: datetime
) -> Mapping[str, object]:
    """Return the status of a run in the shape of `status --json`."""
    return await store.read(partial(read_status, run=run, dead=dead, now=now))


def read_status(
    reads: ReadOps, run: str, dead: Collection[str], now: datetime
) -> Mapping[str, object]:
    """Read the status of a run in the shape of `status --json`."""
    shown = load_run(reads, run).shown_status(reads.now(), dead)
    return status_shape.shape(reads, run, shown, now)
