"""Which project a directory is, and whether it may serve a run that another directory began. Why so: docs/decisions/0007-which-project-a-directory-is.md."""

import asyncio
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from mimir.attempts.deliverable import HIDDEN
from mimir.errors import UnavailableError, WorkspaceError
from mimir.store import row_fields
from mimir.store.protocol import GraphStore, Row
from mimir.store.schema import NodeLabel
from mimir.workspace.atomic_write import write_atomically

if TYPE_CHECKING:  # `find_project_id` is asked where nothing heavy is imported
    from mimir.orchestrator.services import ProjectServices
    from mimir.workspace.git.history import GitHistory

FILE = "project"
"""In `.mimir`: the project's id, once it is known, whatever becomes of the directory's place and history."""
DIGITS = 12


async def project_id(project: Path, room: Path, history: "GitHistory", store: GraphStore) -> str:
    """Return the id of a directory's project.

    All clones of a repository are one project: the id is made of its first commits. A directory without commits, or a shallow clone, is
    known by its path; so is one that the store knows by its path from before.
    """
    kept = await asyncio.to_thread(_read, room / FILE)
    if kept:
        return kept
    by_path = _by_path(project)
    lineage = await history.lineage()
    before = await store.read(lambda reads: reads.get(NodeLabel.PROJECT, by_path))
    id = by_path if before or not lineage else f"project-{lineage[:DIGITS]}"
    await asyncio.to_thread(_write, room / FILE, id)
    return id


def find_project_id(project: Path, room: Path) -> str:
    """Return the same for who only looks, and makes nothing."""
    return _read(room / FILE) or _by_path(project)


async def require_same_project(parts: "ProjectServices", row: Row) -> None:
    """Let this directory serve a run, or refuse: it must have begun it, or be of the same project and able to exchange commits.

    Args:
        parts: Services.
        row: The run's.

    Raises:
        UnavailableError: It is another project, or the run's commits cannot be had here.
    """
    run, base = str(row["id"]), row_fields.text_field(row, "baseCommit")
    history, exchanged = parts.history, row_fields.bool_field(row, "isExchanged")
    if exchanged and not history.is_exchanged:
        raise UnavailableError(
            f"The processes of run {run} exchange commits through a git remote, and this one has none.",
            next_step="Name the same one here: MIMIR_HISTORY_REMOTE=URL",
        )
    if await history.serve(run, base):
        return
    if not exchanged:
        raise UnavailableError(
            f"Run {run} was begun in another directory, and its commits stay there.",
            next_step="Start the worker there; or begin runs with MIMIR_HISTORY_REMOTE=URL, which git can push to.",
        )
    if not await _is_of_project(parts, row, base):
        raise UnavailableError(
            f"Run {run} is of another project: this directory has no commit in common with it.",
            next_step="Start the worker in a clone of the run's repository.",
        )
    await history.adopt(
        run,
        base,
        head=row_fields.text_field(row, "userHead") or None,
        hidden=HIDDEN,
        rules=row_fields.text_field(row, "ignoreRules"),
    )


async def _is_of_project(parts: "ProjectServices", row: Row, base: str) -> bool:
    try:
        related = await parts.history.is_related(base, hidden=HIDDEN)
    except WorkspaceError as error:
        raise UnavailableError(str(error), next_step=error.next_step) from error
    return related or (
        row_fields.text_field(row, "projectId") == parts.project_id
        and bool(await parts.history.lineage())
    )


def _by_path(project: Path) -> str:
    return f"project-{hashlib.sha256(os.fsencode(project)).hexdigest()[:DIGITS]}"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def _write(path: Path, id: str) -> None:
    """Keep an id; several may do so at once, and all write the same."""
    write_atomically(path, f"{id}\n".encode())
