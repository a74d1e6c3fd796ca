"""The verbs `export` and `migrate`: a run or a whole store as text, or in another store; never while somebody works on it."""

import tempfile
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import IO, Literal, cast

from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.errors import BusyError, UsageError
from mimir.reporting.render import mermaid
from mimir.scheduling.lifecycle import COORDINATOR
from mimir.store import row_fields
from mimir.store.neo4j import cypher_export
from mimir.store.neo4j.address import DEFAULT_STORE
from mimir.store.operations import leases, runs
from mimir.store.protocol import GraphStore, ReadOps, Row
from mimir.store.schema import NodeLabel
from mimir.store.transfer import spool
from mimir.store.transfer.spool import StoreSpool
from mimir.store.transfer.store_copy import CopyResult, copy

Form = Literal["cypher", "jsonl", "mermaid"]
FORMS: tuple[Form, ...] = ("cypher", "jsonl", "mermaid")


async def export(
    store: GraphStore, run: str, form: Form, write: Callable[[str], object], *, room: Path
) -> None:
    """Write a run, or the whole store, as text, line by line; in bounded memory.

    Args:
        store: What is told.
        run: Empty: all of it.
        form: `jsonl` and `cypher` lose nothing; `mermaid` is a picture of one run's tasks.
        write: Gets each line, without its end.
        room: Where the one view is kept meanwhile.

    Raises:
        UsageError: There is no such run.
    """
    if form == "mermaid":
        for line in await store.read(partial(_diagram, run=run)):
            write(line)
        return
    with _temporary(room) as file:
        kept = StoreSpool(file)
        await store.read(partial(_fill, kept=kept, run=run, dead=None))
        if form == "jsonl":
            write(spool.header(run))
            for line in kept.lines():
                write(line)
        else:
            _script(kept, write)


async def migrate(
    source: GraphStore, target: GraphStore, run: str, *, dead: Collection[str], room: Path
) -> CopyResult:
    """Copy a run, or the whole store, into another store, and compare what came through; the source stays as it is.

    Args:
        source: Where it is.
        target: Where to; what it holds already is never changed.
        run: Empty: all of it.
        dead: Processes of this host that are known to be gone: their leases keep nothing from being copied.
        room: Where the one view is kept meanwhile.

    Raises:
        BusyError: Somebody works on it.
        StoreError: The target holds something else under one of the ids; nothing was changed.
        UsageError: There is no such run, or nothing at all.
    """
    with _temporary(room) as file:
        kept = StoreSpool(file)
        await source.read(partial(_fill, kept=kept, run=run, dead=frozenset(dead)))
        if next(kept.lines(), None) is None:
            raise UsageError(
                f"The store {source.uri} holds nothing.",
                next_step="Name the one that has the runs.",
            )
        return await copy(kept, target)


def _temporary(room: Path) -> IO[str]:
    """Open a file that has no name and is gone with this process."""
    room.mkdir(mode=0o700, parents=True, exist_ok=True)
    return cast("IO[str]", tempfile.TemporaryFile("w+", encoding="utf-8", newline="", dir=room))


def _fill(reads: ReadOps, kept: StoreSpool, run: str, dead: Collection[str] | None) -> None:
    """Keep one view; it is refused in the same view if somebody works on it. `dead` None: that does not matter."""
    id = _find_run_id(reads, run) if run else ""
    if dead is not None:
        _require_idle(reads, id, dead)
    kept.fill(spool.of_run(reads, id) if id else reads.dump())


def _find_run_id(reads: ReadOps, run: str) -> str:
    """Return the id of a run of any project, named whole or by its beginning.

    Raises:
        UsageError: There is none, or there are several.
    """
    if reads.get(NodeLabel.RUN, run) is not None:
        return run
    near = [
        str(row["id"]) for row in reads.find(NodeLabel.RUN, {}) if str(row["id"]).startswith(run)
    ]
    if len(near) > 1:
        raise UsageError(
            f"{len(near)} runs begin with {run!r}.", next_step=f"Name one: {', '.join(near[:5])}"
        )
    return near[0] if near else str(runs.node(reads, run)["id"])  # raises, and names the nearest


def _require_idle(reads: ReadOps, run: str, dead: Collection[str]) -> None:
    """Refuse to copy what somebody works on: both stores would go on with it.

    Raises:
        BusyError: Somebody does.
    """
    rows = [runs.node(reads, run)] if run else reads.find(NodeLabel.RUN, {})
    for row in rows:
        holder = _holder(reads, row, dead)
        if holder:
            raise BusyError(
                f"Run {row['id']} is being worked on ({holder}).",
                next_step="Let it end, or pause it with Ctrl-C; then migrate.",
            )


def _holder(reads: ReadOps, row: Row, dead: Collection[str]) -> str:
    if row_fields.text_field(row, "status") != RunStatus.RUNNING.value:
        return ""
    holder = leases.holder(reads, row, COORDINATOR, dead)
    if holder:
        return holder
    held = reads.find(NodeLabel.TASK, {"runId": row["id"], "claimState": "held"})
    for task in held:
        owner = row_fields.text_field(task, "lockedBy")
        if owner not in dead and row_fields.text_field(task, "expiresAt") > reads.now():
            return owner
    return ""


def _script(kept: StoreSpool, write: Callable[[str], object]) -> None:
    for line in cypher_export.script_header(DEFAULT_STORE):
        write(line)
    for label, rows in kept.nodes():
        for line in cypher_export.nodes(label, rows, DEFAULT_STORE):
            write(line)
    for kind, pairs in kept.edges():
        for line in cypher_export.edges(kind, pairs, DEFAULT_STORE):
            write(line)


def _diagram(reads: ReadOps, run: str) -> list[str]:
    row = runs.node(reads, run)
    tasks = [_node(task) for task in runs.tasks(reads, run)]
    if not tasks:
        raise UsageError(
            f"Run {run} has no tasks.", next_step="Name a run of a plan: mimir status RUN"
        )
    return mermaid.diagram(row_fields.text_field(row, "name"), tasks)


def _node(row: Row) -> mermaid.DiagramNode:
    return mermaid.DiagramNode(
        id=row_fields.text_field(row, "taskId"),
        title=row_fields.text_field(row, "title"),
        status=TaskStatus(row_fields.text_field(row, "status")),
        dependencies=tuple(row_fields.text_list_field(row, "dependencies")),
    )
