"""Setup of the demo: a fresh copy of its project, and settings with scripted models."""

import asyncio
import shutil
import tempfile
from pathlib import Path

from mimir.domain.agent import ROLES
from mimir.domain.run import RunBudget, RunResult
from mimir.errors import UsageError
from mimir.orchestrator.api import Mimir
from mimir.settings.layers import LoadedSettings, load
from mimir.workspace.git.git_command import GitCommand

HERE = Path(__file__).parent
PLAY = HERE / "script.yaml"
WORKERS = 4


async def build(directory: Path | None) -> Path:
    """Copy and commit the project in a new directory (None: a temporary one).

    Raises:
        UsageError: The directory is not empty.
        WorkspaceError: Git is missing.
    """
    project = await asyncio.to_thread(_copy, directory)
    git = GitCommand(directory=None)
    await git.run("-C", str(project), "init", "--quiet")
    await git.run("-C", str(project), "add", "--all")
    await git.run("-C", str(project), "commit", "--quiet", "--message", "tally 0.1")
    return project


def _copy(directory: Path | None) -> Path:
    if directory is None:
        project = Path(tempfile.mkdtemp(prefix="mimir-demo-")).resolve()
    else:
        project = directory.resolve()
        if project.exists() and (not project.is_dir() or any(project.iterdir())):
            raise UsageError(
                f"The demo directory is not empty: {directory}.",
                next_step="Name a new or empty directory: mimir demo --directory DIR",
            )
    # Contents only: the files of an installation may be read-only.
    shutil.copytree(
        HERE / "project",
        project,
        copy_function=shutil.copyfile,
        ignore=shutil.ignore_patterns("__pycache__"),
        dirs_exist_ok=True,
    )
    return project


def settings(project: Path, store: str, play: Path = PLAY) -> LoadedSettings:
    """Load the user's settings with the scripted model for every role.

    An empty `store` means a file in the project, also against the settings of the user.

    Raises:
        ConfigurationError: The settings are invalid.
    """
    # The user's own models must never be called by the demo.
    flags: dict[str, object] = {"llm.model": f"play:{play}", "store": store, "run.workers": WORKERS}
    return load(project, flags | {f"roles.{role}.model": "" for role in ROLES})


async def drive(mimir: Mimir, run: str, *, resumed: bool) -> RunResult:
    """Serve a run of the demo to its end."""
    return await mimir.drive(
        run, workers=WORKERS, apply="auto", limits=RunBudget(), resumed=resumed
    )
