"""A glance at where a run stands, for `mimir status`: the store alone is opened. `app` opens all of a project, which takes ten times as long."""

import secrets
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from mimir.bootstrap import stores
from mimir.orchestrator import project_identity
from mimir.orchestrator.runs import lookup
from mimir.settings import LoadedSettings
from mimir.workspace.process_locks import ProcessLocks

ROOM = ".mimir"


class Clock:
    """The machine's time."""

    def now(self) -> datetime:
        """Return the time of day, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()


async def status(
    project: Path, loaded: LoadedSettings, run: str | None, say: Callable[[str], None]
) -> Mapping[str, object]:
    """Return where a run stands: the shape of `status --json`. Makes nothing.

    Args:
        project: Its directory; mimir was used there.
        loaded: Settings in force.
        run: A run, or how its name begins; None: the latest.
        say: Told what a person should know of the store.

    Raises:
        UsageError: There is no store, or no such run.
        UnavailableError: The store is not there.
    """
    room, clock = project / ROOM, Clock()
    door = secrets.token_hex(8)
    store = stores.open_store(loaded.settings, room, clock, door=door, say=say, create=False)
    await store.init()
    try:
        id = await lookup.find_run(store, project_identity.find_project_id(project, room), run)
        dead = ProcessLocks(room / "work" / "owners").find_dead()
        return await lookup.status(store, id, dead, clock.now())
    finally:
        await store.close()
