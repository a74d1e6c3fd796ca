"""Identity of a project: its id, and the directories that may serve its runs.

Reasons: docs/decisions/0007-which-project-a-directory-is.md.
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from mimir.attempts.deliverable import HIDDEN
from mimir.errors import UnavailableError, WorkspaceError
from mimir.orchestrator.project_ids import DIGITS, FILE, load_id, path_id
from mimir.store.protocol import GraphStore
from mimir.store.schema import NodeLabel
from mimir.workspace.atomic_write import write_atomically

if TYPE_CHECKING:
    from mimir.orchestrator.services import ProjectServices
    from mimir.store.records.run_records import RunRecord
    from mimir.workspace.git.history import GitHistory


async def project_id(project: Path, room: Path, history: "GitHistory", store: GraphStore) -> str:
    """Return the id of a directory's project, and save it in `room`.

    All clones of a repository are one project: the id is derived from its first commits. A directory without commits, a shallow clone,
    and a project that the store knows by its path are identified by the path.
    """
    saved = await asyncio.to_thread(load_id, room / FILE)
    if saved:
        return saved
    # A project that started without commits keeps the id by path after its first commit.
    by_path = path_id(project)
    lineage = await history.lineage()
    known = await store.read(lambda reads: reads.get(NodeLabel.PROJECT, by_path))
    id = by_path if known or not lineage else f"project-{lineage[:DIGITS]}"
    # Several processes may write the file at once; all write the same.
    await asyncio.to_thread(write_atomically, room / FILE, f"{id}\n".encode())
    return id


async def require_same_project(services: "ProjectServices", run: "RunRecord") -> None:
    """Require that this directory started a run, or can exchange commits of its project.

    Raises:
        UnavailableError: It is another project, or the run's commits cannot be fetched here.
    """
    history = services.history
    if run.is_exchanged and not history.is_exchanged:
        raise UnavailableError(
            f"The processes of run {run.id} exchange commits through a git remote, and this one has none.",
            next_step="Name the same remote here: MIMIR_HISTORY_REMOTE=URL",
        )
    if await history.serve(run.id, run.base_commit):
        return
    if not run.is_exchanged:
        raise UnavailableError(
            f"Run {run.id} was started in another directory, and its commits are only there.",
            next_step="Start the worker there, or start runs with MIMIR_HISTORY_REMOTE=URL, a remote that git can push to.",
        )
    if not await _is_related(services, run):
        raise UnavailableError(
            f"Run {run.id} belongs to another project: this directory shares no commit with it.",
            next_step="Start the worker in a clone of the run's repository.",
        )
    await history.adopt(
        run.id, run.base_commit, head=run.user_head or None, hidden=HIDDEN, rules=run.ignore_rules
    )


async def _is_related(services: "ProjectServices", run: "RunRecord") -> bool:
    try:
        related = await services.history.is_related(run.base_commit, hidden=HIDDEN)
    except WorkspaceError as error:
        raise UnavailableError(str(error), next_step=error.next_step) from error
    # A shallow clone shares no first commit, but may have the id of the project.
    is_same_project = run.project_id == services.project_id
    return related or (is_same_project and bool(await services.history.lineage()))
