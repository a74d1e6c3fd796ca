"""Temporary project for a benchmark: a git repository and a model script for every role."""

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mimir.domain.run import RunBudget
from mimir.errors import UnavailableError
from mimir.orchestrator.api import Mimir
from mimir.settings import layers
from mimir.settings.layers import LoadedSettings
from mimir.workspace.git.git_command import GitCommand
from mimir.workspace.tree_removal import remove_tree

Part = Mapping[str, object]
PREAMBLE = "\n".join(
    f"## {name}\n{'Work with care, look before you write, and say what you saw. ' * 3}"
    for name in ("Expertise", "How to work", "Use of tools", "Output")
)
REST: Sequence[Part] = (
    {"role": "qc", "turns": [{"verdict": {"auto": "pass"}, "repeat": "forever"}]},
    {"role": "agentinator", "turns": [{"text": PREAMBLE, "repeat": "forever"}]},
    {"role": "*_reporter", "turns": [{"text": "It went as planned.", "repeat": "forever"}]},
)
"""Last parts of every model script."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSite:
    """Temporary directory with the project under test."""

    room: Path
    project: Path

    def load_settings(
        self, parts: Sequence[Part], flags: Mapping[str, object] | None = None
    ) -> LoadedSettings:
        """Return settings with one scripted model for all roles; user settings are not read."""
        play = self.room / "play.json"
        play.write_text(json.dumps({"parts": [*parts, *REST]}), encoding="utf-8")
        # JSON is YAML: the script reader takes both, and JSON is parsed faster.
        given = {"llm.model": f"play:{play}", **(flags or {})}
        return layers.load(self.project, given, {"HOME": str(self.room)})


@contextlib.asynccontextmanager
async def site(files: Mapping[str, str]) -> AsyncGenerator[WorkSite]:
    """Create a project of these files; it is removed at the end of the block."""
    room = await asyncio.to_thread(make_room)
    try:
        project = room / "project"
        await create_project(project, files)
        yield WorkSite(room=room, project=project)
    finally:
        await asyncio.to_thread(remove_tree, room)


async def create_project(project: Path, files: Mapping[str, str]) -> None:
    """Create a git repository with one commit of these files."""
    await asyncio.to_thread(write, project, files)
    # The engine's own git command, which ignores the settings of the user.
    git = GitCommand(directory=None)
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "-q", "-m", "Start")):
        await git.run("-C", str(project), *words)


def write(where: Path, files: Mapping[str, str]) -> None:
    """Write files below a directory."""
    for name, text in files.items():
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def make_room() -> Path:
    """Create a temporary directory."""
    # Resolved, because the directory for temporary files may be a symbolic link.
    return Path(tempfile.mkdtemp(prefix="mimir-bench-")).resolve()


async def drive_run(mimir: Mimir, run: str, workers: int) -> None:
    """Execute a run to its end.

    Raises:
        UnavailableError: It did not complete.
    """
    ending = await mimir.drive(
        run, workers=workers, apply="never", limits=RunBudget(), resumed=False
    )
    if ending.exit_code:
        raise UnavailableError(f"A run ended {ending.outcome.value}: {ending.message}")
