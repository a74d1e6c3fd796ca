"""Projects, histories and workspaces for the tests of this room."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mimir.workspace.git.base_capture import BaseCommit
from mimir.workspace.git.history import GitHistory
from mimir.workspace.sandbox.commands import Recipe
from mimir.workspace.sandbox.sandbox import CommandResult, Sandbox, SandboxConfig
from tests.support.projects import make_project, write_files

OpenHistory = Callable[[Path], Awaitable[GitHistory]]


@pytest.fixture
def open_history(tmp_path: Path) -> OpenHistory:
    """Open the history of a project, by custom below its `.mimir`, with an empty home."""
    home = tmp_path / "home"
    home.mkdir()

    async def opened(project: Path) -> GitHistory:
        return await GitHistory.open(project, project / ".mimir/work/history.git", home=home)

    return opened


@dataclass(frozen=True)
class Place:
    """A workspace with its index, to be filled from a base."""

    history: GitHistory
    base: BaseCommit
    where: Path

    @property
    def index(self) -> Path:
        return self.where.with_name(f"{self.where.name}.index")

    async def fill(self, source: str | None = None) -> None:
        await self.history.fill(source or self.base.commit, self.where, self.index)

    def files(self) -> set[str]:
        return {
            str(path.relative_to(self.where))
            for path in self.where.rglob("*")
            if not path.is_dir() or path.is_symlink()
        }


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> tuple[GitHistory, BaseCommit]:
    """A project's history with a base; shared, so no test may change the project."""
    room = tmp_path_factory.mktemp("started")
    project = make_project(room / "project")
    write_files(
        project,
        {
            "run.sh": "#!/bin/sh\n",
            "sub/deep/file": "x",
            "sub/file": "x",
            "old": "x",
            ".gitignore": "*.o\ndist/\n.mimir/\n",
        },
    )
    (project / "run.sh").chmod(0o755)
    (project / "link").symlink_to("sub/deep/file")

    async def start() -> tuple[GitHistory, BaseCommit]:
        history = await GitHistory.open(project, project / ".mimir/work/history.git", home=room)
        return history, await history.base("r1")

    return asyncio.run(start())


@pytest.fixture
def empty_place(started: tuple[GitHistory, BaseCommit], tmp_path: Path) -> Place:
    """A workspace that is yet to be filled."""
    history, base = started
    return Place(history, base, tmp_path / "work" / "1.1")


@pytest.fixture
async def place(empty_place: Place) -> Place:
    """A workspace filled from the base."""
    await empty_place.fill()
    return empty_place


class RealClock:
    """A clock that runs, for durations of real commands."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


MakeSandbox = Callable[..., Sandbox]


@pytest.fixture
def make_sandbox(tmp_path: Path) -> MakeSandbox:
    """Make a sandbox with these settings."""

    def made(programs: Sequence[Path] | None = None, **settings: object) -> Sandbox:
        config = SandboxConfig(**settings)  # type: ignore[arg-type]
        return Sandbox(config, scratch=tmp_path / "scratch", clock=RealClock(), programs=programs)

    return made


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A sandbox as it is by default; its probe is made once."""
    return Sandbox(SandboxConfig(), scratch=tmp_path_factory.mktemp("scratch"), clock=RealClock())


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace."""
    where = tmp_path / "room" / "workspace"
    where.mkdir(parents=True, mode=0o700)
    return where


def is_running(mark: str) -> bool:
    """Say whether any process of this machine has `mark` among its arguments."""
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                if mark.encode() in (process / "cmdline").read_bytes():
                    return True
            except OSError:
                continue
    return False


async def sh(sandbox: Sandbox, workspace: Path, text: str, seconds: float = 20) -> CommandResult:
    return await sandbox.run(["bash", "-c", text], workspace=workspace, seconds=seconds)


RECIPES = ["user", "root"] if os.geteuid() == 0 else ["user"]
"""Ways to a sandbox that this user has."""


async def made_by(recipe: Recipe, make_sandbox: MakeSandbox) -> Sandbox:
    """Return a sandbox that is built this way, whichever the probe would choose."""
    sandbox = make_sandbox()
    await sandbox.probe()
    assert sandbox._way is not None
    sandbox._way = sandbox._way[0], recipe
    return sandbox


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())
