"""Status of a run from the store alone; opening a whole project takes ten times as long."""

from collections.abc import Callable, Mapping
from pathlib import Path

from mimir.bootstrap import stores
from mimir.bootstrap.clock import SystemClock
from mimir.bootstrap.git_program import find_git
from mimir.orchestrator import project_identity
from mimir.orchestrator.runs import lookup
from mimir.settings import LoadedSettings
from mimir.workspace.git.discovery import refuse_tracked
from mimir.workspace.process_locks import ProcessLocks
from mimir.workspace.state_dir import ROOM


async def status(
    project: Path, loaded: LoadedSettings, run: str | None, say: Callable[[str], None]
) -> Mapping[str, object]:
    """Return the status of a run in the shape of `status --json`; creates nothing.

    Raises:
        UsageError: There is no store, or no such run.
        UnavailableError: The store cannot be reached.
    """
    state_dir = project / ROOM
    await refuse_tracked(project, ROOM, find_git())
    async with stores.opened_store(loaded.settings, state_dir, say=say, create=False) as store:
        project_id = project_identity.find_project_id(project, state_dir)
        id = await lookup.find_run(store, project_id, run)
        dead = ProcessLocks(state_dir / "work" / "owners").find_dead()
        return await lookup.status(store, id, dead, SystemClock().now())
