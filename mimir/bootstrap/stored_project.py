"""A project whose store alone is opened; opening a whole project takes ten times as long."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mimir.bootstrap import stores
from mimir.bootstrap.clock import SystemClock
from mimir.bootstrap.git_program import find_git
from mimir.domain.value_class import value_class
from mimir.orchestrator.project_ids import find_project_id
from mimir.store.protocol import GraphStore, ReadOps
from mimir.workspace.git.tracked_folder import refuse_tracked
from mimir.workspace.process_locks import ProcessLocks
from mimir.workspace.state_dir import ROOM

if TYPE_CHECKING:
    from mimir.orchestrator.patterns.ledger import Ledger
    from mimir.orchestrator.runs.report_files import ReportFiles
    from mimir.reporting.render.sections import Link
    from mimir.settings.layers import LoadedSettings


@value_class
class ProjectPlace:
    """Directory of a project, and the facts that its status needs."""

    directory: Path
    id: str

    @property
    def now(self) -> datetime:
        """Time of day."""
        return SystemClock().now()

    @property
    def work(self) -> Path:
        """Directory of workspaces and locks."""
        return self.directory / ROOM / "work"

    def read_status(self, reads: ReadOps, run: str | None) -> Mapping[str, object]:
        """Return the status of a run in the shape of `status --json`.

        Raises:
            UsageError: There is no such run.
        """
        # Imported here: `mimir runs` needs no status.
        from mimir.orchestrator.runs import listing
        from mimir.reporting.status import read_status

        id = listing.find_id(reads, self.id, run, planning=True)
        return read_status(reads, id, self.find_dead(), self.now)

    def read_handoff(self, reads: ReadOps, run: str) -> str:
        """Return the hand-off of a run in one line."""
        from mimir.orchestrator.patterns import ledger_state

        return ledger_state.read_handoff(reads, self.id, run, self.find_dead(), self.now)

    def find_dead(self) -> frozenset[str]:
        """Return the owners in leases whose process is dead."""
        return ProcessLocks(self.work / "owners").find_dead()

    def has_live_process(self) -> bool:
        """Return whether a process of mimir works in this directory."""
        locks = ProcessLocks(self.work / "owners")
        return (self.work / "owners").is_dir() and not locks.is_alone()

    async def diff(self, before: str, after: str) -> str:
        """Return the patch between two trees of the history; empty: there is no history here."""
        # Imported here: only this question needs git.
        from mimir.workspace.git.history import GitHistory

        repository = self.work / "history.git"
        if not repository.is_dir():
            return ""
        history = await GitHistory.open(self.directory, repository, program=find_git())
        return await history.diff(before, after)


@value_class
class StoredProject(ProjectPlace):
    """A project and its open store."""

    store: GraphStore
    link: "Link | None"
    """Makes links to the store's nodes; None: the store has no page for them."""

    async def find_run(self, run: str | None) -> str:
        """Return a run's id: exact, by a unique prefix, or the newest one.

        Raises:
            UsageError: There is no such run.
        """
        from mimir.orchestrator.runs.listing import find_id

        return await self.store.read(lambda reads: find_id(reads, self.id, run))

    async def read_ledger(self, run: str | None) -> "Ledger":
        """Return the ledger of a run, as `find_run` names it."""
        from mimir.orchestrator.patterns import ledger_state

        id, dead, now = await self.find_run(run), self.find_dead(), self.now
        return await self.store.read(
            lambda reads: ledger_state.read_ledger(reads, self.id, id, dead, now)
        )

    def report_files(self) -> "ReportFiles":
        """Return the report files of the project."""
        from mimir.orchestrator.runs.report_files import ReportFiles

        return ReportFiles(project=self.directory, store=self.store, link=self.link)


def find_place(project: Path) -> ProjectPlace:
    """Return the place of a project that has a state directory; nothing is created.

    Raises:
        PlanError: Git tracks the state directory.
    """
    # Only a repository can track it; a search for one needs no program.
    if any((folder / ".git").exists() for folder in (project, *project.parents)):
        refuse_tracked(project, ROOM, find_git())
    return ProjectPlace(directory=project, id=find_project_id(project, project / ROOM))


@asynccontextmanager
async def open_stored_project(
    project: Path, loaded: "LoadedSettings", say: Callable[[str], None]
) -> AsyncGenerator[StoredProject]:
    """Open the store of a project; nothing is created.

    Raises:
        UsageError: There is no store.
        UnavailableError: The store cannot be reached.
        PlanError: Git tracks the state directory.
    """
    place = find_place(project)
    async with stores.opened_store(loaded.settings, project / ROOM, say=say, create=False) as store:
        link = stores.node_links(loaded.settings)
        yield StoredProject(directory=project, id=place.id, store=store, link=link)
