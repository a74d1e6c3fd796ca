"""Verbs `export` and `migrate`: a run or a whole store as text, or in another store."""

import tempfile
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import IO, Literal, cast

from mimir.domain.task_states import RunStatus
from mimir.errors import BusyError, UsageError
from mimir.orchestrator.runs.listing import match_id
from mimir.reporting.render import mermaid
from mimir.scheduling.lifecycle import COORDINATOR
from mimir.store.neo4j import cypher_export
from mimir.store.neo4j.address import DEFAULT_STORE
from mimir.store.operations.record_loading import (
    find_held_tasks,
    find_runs,
    lease_holder,
    load_run,
    load_tasks,
)
from mimir.store.protocol import GraphStore, ReadOps
from mimir.store.records.run_records import RunRecord
from mimir.store.records.task_records import TaskStatusRecord
from mimir.store.transfer import spool
from mimir.store.transfer.spool import StoreSpool
from mimir.store.transfer.store_copy import CopyResult, copy

Form = Literal["cypher", "jsonl", "mermaid"]
FORMS: tuple[Form, ...] = ("cypher", "jsonl", "mermaid")


async def export(
    store: GraphStore, run: str, form: Form, write: Callable[[str], object], *, room: Path
) -> None:
    """Write a run, or the whole store (empty `run`), as text, line by line, in bounded memory.

    Raises:
        UsageError: There is no such run.
    """
    if form == "mermaid":
        for line in await store.read(partial(_draw_tasks, run=run)):
            write(line)
        return
    # One transaction fills the file: lines written during it would keep the store locked.
    with _open_temporary(room) as file:
        lines = StoreSpool(file)
        await store.read(partial(_fill, target=lines, run=run, dead=None))
        if form == "jsonl":
            write(spool.header(run))
            for line in lines.lines():
                write(line)
        else:
            _write_script(lines, write)


async def migrate(
    source: GraphStore, target: GraphStore, run: str, *, dead: Collection[str], room: Path
) -> CopyResult:
    """Copy a run, or the whole store, into another store, and compare the copy.

    Leases of the processes `dead` do not count. Records that the target has already never change.

    Raises:
        BusyError: A process works on a run.
        StoreError: The target holds something else under one of the ids; it is unchanged.
        UsageError: There is no such run, or no run at all.
    """
    with _open_temporary(room) as file:
        lines = StoreSpool(file)
        await source.read(partial(_fill, target=lines, run=run, dead=frozenset(dead)))
        if next(lines.lines(), None) is None:
            raise UsageError(
                f"The store {source.uri} holds nothing.",
                next_step="Name the store that has the runs.",
            )
        return await copy(lines, target)


def _open_temporary(directory: Path) -> IO[str]:
    """Open a file without a name, which ends with this process."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = tempfile.TemporaryFile("w+", encoding="utf-8", newline="", dir=directory)  # noqa: SIM115  the caller closes it
    return cast("IO[str]", file)


def _fill(reads: ReadOps, target: StoreSpool, run: str, dead: Collection[str] | None) -> None:
    """Copy one view; refuse it if a process works on a run (`dead` None: allowed)."""
    id = _find_run_id(reads, run) if run else ""
    # An export may run beside a live run; a migration would create two stores of it.
    if dead is not None:
        _require_idle(reads, id, dead)
    target.fill(spool.of_run(reads, id) if id else reads.dump())


def _find_run_id(reads: ReadOps, run: str) -> str:
    """Return the id of a run of any project: exact, or by a unique prefix."""
    # The last step raises, and names the nearest ids.
    titles = {one.id: one.display_title for one in find_runs(reads)}
    return match_id(run, titles, "runs") or load_run(reads, run).id


def _require_idle(reads: ReadOps, run: str, dead: Collection[str]) -> None:
    """Require that no process works on the copied runs: both stores would continue them."""
    for one in [load_run(reads, run)] if run else find_runs(reads):
        holder = _find_holder(reads, one, dead)
        if holder:
            raise BusyError(
                f"Run {one.id} is being worked on ({holder}).",
                next_step="Wait for its end, or pause it with Ctrl-C; then migrate.",
            )


def _find_holder(reads: ReadOps, run: RunRecord, dead: Collection[str]) -> str:
    """Return a live process that works on a run; empty: there is none."""
    if run.status is not RunStatus.RUNNING:
        return ""
    now = reads.now()
    holders = (
        task.locked_by
        for task in find_held_tasks(reads, run.id)
        if task.locked_by not in dead and task.expires_at > now
    )
    return lease_holder(run, COORDINATOR, now, dead) or next(holders, "")


def _write_script(lines: StoreSpool, write: Callable[[str], object]) -> None:
    for line in cypher_export.script_header(DEFAULT_STORE):
        write(line)
    for label, rows in lines.nodes():
        for line in cypher_export.nodes(label, rows, DEFAULT_STORE):
            write(line)
    for kind, pairs in lines.edges():
        for line in cypher_export.edges(kind, pairs, DEFAULT_STORE):
            write(line)


def _draw_tasks(reads: ReadOps, run: str) -> list[str]:
    record = load_run(reads, run)
    nodes = [
        mermaid.DiagramNode(
            id=task.task_id, title=task.title, status=task.status, dependencies=task.dependencies
        )
        for task in load_tasks(reads, run, TaskStatusRecord)
    ]
    if not nodes:
        raise UsageError(
            f"Run {run} has no tasks.", next_step="Name a run of a plan: mimir status RUN"
        )
    return mermaid.diagram(record.name, nodes)
