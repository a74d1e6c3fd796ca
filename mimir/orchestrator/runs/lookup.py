"""Lookup of a run and its status, from the store alone and without heavy imports."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial

from mimir.domain.task_states import RUN_ENDED
from mimir.errors import UsageError
from mimir.reporting import status as status_shape
from mimir.scheduling import lifecycle
from mimir.store.operations.record_loading import find_runs, load_run
from mimir.store.protocol import GraphStore, ReadOps
from mimir.store.records.run_records import RunRecord


async def find_run(
    store: GraphStore, project_id: str, run: str | None, *, resumable: bool = False
) -> str:
    """Return a run's id: exact, by a unique prefix, or the newest (that can be resumed).

    Raises:
        UsageError: There is none, or several ids begin with the prefix.
    """
    runs = await store.read(partial(find_runs, project_id=project_id))
    if run is None:
        return _find_newest(runs, resumable=resumable)
    id = match_id(run, [one.id for one in runs])
    # The last step raises, and names the nearest ids.
    return id or (await store.read(partial(load_run, run=run))).id


def match_id(run: str, ids: Sequence[str]) -> str:
    """Return the id that equals or begins with `run`; empty: there is none.

    Raises:
        UsageError: Several ids begin with it.
    """
    near = [run] if run in ids else [id for id in ids if id.startswith(run)]
    if len(near) > 1:
        raise UsageError(
            f"{len(near)} runs begin with {run!r}.", next_step=f"Name one: {', '.join(near[:5])}"
        )
    return near[0] if near else ""


async def status(
    store: GraphStore, run: str, dead: Collection[str], now: datetime
) -> Mapping[str, object]:
    """Return the status of a run in the shape of `status --json`."""

    def look(reads: ReadOps) -> Mapping[str, object]:
        shown = lifecycle.shown_status(reads, load_run(reads, run), dead)
        return status_shape.shape(reads, run, shown, now)

    return await store.read(look)


def _find_newest(runs: Sequence[RunRecord], *, resumable: bool) -> str:
    """Return the newest run; for a resume, the newest that has not ended if there is one."""
    unfinished = [run for run in runs if run.status not in RUN_ENDED]
    executed = [run for run in runs if run.kind == "execute"]
    # Planning runs count only for `resume`: status and report of a plan are its file.
    wanted = unfinished if resumable and unfinished else executed
    if wanted:
        return wanted[0].id
    raise UsageError("This project has no run yet.", next_step='Start one: mimir execute "REQUEST"')
