"""Status of a run from the store alone."""

from collections.abc import Callable, Mapping
from pathlib import Path

from mimir.bootstrap import stored_project
from mimir.orchestrator.runs import lookup
from mimir.settings.layers import LoadedSettings


async def status(
    project: Path, loaded: LoadedSettings, run: str | None, say: Callable[[str], None]
) -> Mapping[str, object]:
    """Return the status of a run in the shape of `status --json`; creates nothing.

    Raises:
        UsageError: There is no store, or no such run.
        UnavailableError: The store cannot be reached.
    """
    async with stored_project.open_stored_project(project, loaded, say) as opened:
        id = await lookup.find_run(opened.store, opened.id, run, planning=True)
        return await lookup.status(opened.store, id, opened.find_dead(), opened.now)
