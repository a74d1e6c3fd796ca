"""The served project: its store, and commands that outlive the server."""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from mimir.bootstrap import local_store
from mimir.bootstrap.clock import SystemClock
from mimir.bootstrap.stored_project import ProjectPlace, StoredProject, open_stored_project
from mimir.domain.value_class import value_class
from mimir.errors import PlanError
from mimir.settings.layers import LoadedSettings, load
from mimir.settings.principal import environment_for
from mimir.store.protocol import ReadOps
from mimir.workspace.state_dir import ROOM, prepare

T = TypeVar("T")

JOIN_SECONDS = 60.0
"""Longest time in which the result of an ended command is still given to an equal call."""
LOGS = "log"
"""Folder of the state directory with the output of started commands."""
KEPT_LOGS = 100
DAY_SECONDS = 24 * 3600


@value_class
class StartedCommand:
    """A command of mimir in a process group of its own, which outlives the server."""

    process: "subprocess.Popen[bytes]"
    log: Path
    """Its standard output and error."""
    inputs: tuple[Path, ...] = ()
    """Files with its texts, which are removed when the run exists."""

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended; it is reaped by the question."""
        return self.process.poll() is not None

    @property
    def age_seconds(self) -> float:
        """Time since its last output."""
        written = datetime.fromtimestamp(self.log.stat().st_mtime, UTC)
        return (SystemClock().now() - written).total_seconds()

    def forget_inputs(self) -> None:
        """Remove the files with texts: the store has them now."""
        for path in self.inputs:
            path.unlink(missing_ok=True)

    def lines(self) -> list[str]:
        """Return the complete lines that it has printed so far."""
        # The last line may be half written.
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return text[: text.rfind("\n") + 1].splitlines()


class ProjectAccess:
    """One project whose store is opened for each question, so that a lost store may return."""

    def __init__(
        self, directory: Path, *, store: str = "", say: Callable[[str], None] = lambda _: None
    ) -> None:
        self.directory = directory
        self._store = store
        self._say = say
        self._started: list[StartedCommand] = []
        self._joined: dict[tuple[str, ...], StartedCommand] = {}
        """Commands that a repeated call joins, by principal and words."""

    def load(self) -> LoadedSettings:
        """Load the settings that hold now."""
        return load(self.directory, {"store": self._store} if self._store else {})

    async def read(self, work: Callable[[ReadOps, ProjectPlace], T]) -> T:
        """Run `work` on one view of the store; nothing is created.

        Raises:
            MimirError: There is no store, or it cannot be read.
        """
        # A file is read in a thread: another call may wait for a run at the same time.
        uri = local_store.find_uri(self._store)
        if uri is not None:
            return await asyncio.to_thread(
                local_store.look, self.directory, uri, work, say=self._say
            )
        return await self.use_store(lambda opened: opened.store.read(lambda r: work(r, opened)))

    async def use_store(self, work: Callable[[StoredProject], Awaitable[T]]) -> T:
        """Run `work` with the open store of the project; the project must exist."""
        prepare(self.directory, create=False)
        opening = open_stored_project(self.directory, self.load(), self._say)
        async with opening as opened:
            return await work(opened)

    def start(
        self, words: Sequence[str], principal: str, *inputs: Path, session: str = ""
    ) -> StartedCommand:
        """Start a command of mimir that outlives this process; its runs are of the principal."""
        # The question reaps the ended ones, so that none stays a zombie.
        self._started = [one for one in self._started if not one.has_ended]
        handle, path = self._make_file(".log")
        store = ["--store", self._store] if self._store else []
        # -P: a file of the project must not take the place of a module of mimir.
        command = [sys.executable, "-P", "-m", "mimir", *store, *words]
        with open(handle, "wb") as log:  # noqa: PTH123  a descriptor
            process = subprocess.Popen(
                command,
                cwd=self.directory,
                env=environment_for(principal, session),
                # Standard input is the wire of the client.
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # A client may kill the process group of the server.
                start_new_session=True,
            )
        started = StartedCommand(process=process, log=path, inputs=inputs)
        self._started.append(started)
        return started

    # A validation is no run: without this, a client that stopped waiting would start it twice.
    def start_or_join(self, words: Sequence[str], principal: str) -> StartedCommand:
        """Start a command, or return the equal one that still works or has just ended."""
        key = (principal, *words)
        known = self._joined.get(key)
        # An older result may not hold for the files of now.
        if known is None or (known.has_ended and known.age_seconds > JOIN_SECONDS):
            known = self._joined[key] = self.start(words, principal)
        return known

    def forget(self, started: StartedCommand) -> None:
        """Let the next equal call start the command again."""
        self._joined = {key: one for key, one in self._joined.items() if one is not started}

    def write_text(self, text: str) -> Path:
        """Write a text for a command to a new file of the state directory; return its path."""
        handle, path = self._make_file(".txt")
        with open(handle, "wb") as file:  # noqa: PTH123  a descriptor
            file.write(text.encode("utf-8"))
        return path

    def _make_file(self, suffix: str) -> tuple[int, Path]:
        logs = prepare(self.directory, create=True) / LOGS
        # As in the state directory itself: a link of a repository is not followed.
        if logs.is_symlink():
            raise PlanError(f"{ROOM}/{LOGS} is a link: mimir follows no link of a repository.")
        logs.mkdir(mode=0o700, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=logs, prefix="mcp-", suffix=suffix)
        _remove_old(logs)
        return handle, Path(name)


def _remove_old(logs: Path) -> None:
    """Remove the output of earlier commands, but the newest files and those of the last day."""
    ages: dict[Path, float] = {}
    for path in logs.glob("mcp-*"):
        # Another process may have removed it.
        with suppress(FileNotFoundError):
            ages[path] = path.lstat().st_mtime
    ranked = sorted(ages, key=lambda path: ages[path], reverse=True)
    # A command that works may be silent for long; a day is over its limit.
    for path in ranked[KEPT_LOGS:]:
        if ages[path] < ages[ranked[0]] - DAY_SECONDS:
            path.unlink(missing_ok=True)


def hide_paths(text: str, project: Path) -> str:
    """Return a text without the local paths of project and home."""
    return text.replace(f"{project}/", "").replace(str(project), ".").replace(str(Path.home()), "~")
