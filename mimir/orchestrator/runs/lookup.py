"""Which run is meant, and where it stands: what is asked most often, of the store alone, so that nothing heavy is imported for it."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial

from mimir.domain.task_states import RUN_ENDED
from mimir.errors import UsageError
from mimir.reporting import status as shapes
from mimir.scheduling import lifecycle
from mimir.store import row_fields
from mimir.store.operations import runs
from mimir.store.operations.record_loading import load_run
from mimir.store.protocol import GraphStore, ReadOps, Row
from mimir.store.schema import NodeLabel


async def find_run(
    store: GraphStore, project_id: str, run: str | None, *, resumable: bool = False
) -> str:
    """Return a run's id: exact, by a unique prefix, or the newest (that can be resumed).

    Raises:
        UsageError: There is none, or several begin like that.
    """

    def look(reads: ReadOps) -> list[Row]:
        return reads.find(NodeLabel.RUN, {"projectId": project_id}, order=("-createdAt", "-seq"))

    rows = await store.read(look)
    if run is None:
        return _newest(rows, resumable=resumable)
    ids = [str(row["id"]) for row in rows]
    if run in ids:
        return run
    near = [id for id in ids if id.startswith(run)]
    if len(near) == 1:
        return near[0]
    if near:
        raise UsageError(
            f"{len(near)} runs begin with {run!r}.", next_step=f"Name one: {', '.join(near[:5])}"
        )
    await store.read(partial(runs.node, run=run))  # names the nearest
    return run


async def status(
    store: GraphStore, run: str, dead: Collection[str], now: datetime
) -> Mapping[str, object]:
    """Return where a run stands: the shape of `status --json`.

    Raises:
        UsageError: There is no such run.
    """

    def look(reads: ReadOps) -> Mapping[str, object]:
        shown = lifecycle.shown_status(reads, load_run(reads, run), dead)
        return shapes.shape(reads, run, shown, now)

    return await store.read(look)


def _newest(rows: Sequence[Row], *, resumable: bool) -> str:
    """Return the newest run; of those that can be resumed if there is one, else the one that ended last."""
    ended = [status.value for status in RUN_ENDED]
    runs_of_plans = [r for r in rows if r.get("kind") == "execute"]
    still_open = [r for r in rows if row_fields.text_field(r, "status") not in ended]
    wanted = still_open if resumable and still_open else runs_of_plans
    if wanted:
        return str(wanted[0]["id"])
    raise UsageError(
        "No run was made here yet.", next_step='Start one: mimir execute "what you want"'
    )
