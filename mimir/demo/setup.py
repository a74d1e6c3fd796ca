"""Where the demo plays: a fresh copy of the shipped project in a git repository of its own, and the settings that let the play speak."""

import asyncio
import shutil
import tempfile
from pathlib import Path

from mimir.domain.agent import ROLES
from mimir.domain.run import RunBudget, RunResult
from mimir.errors import UsageError
from mimir.orchestrator.api import Mimir
from mimir.settings import LoadedSettings, load
from mimir.workspace.git.git_command import GitCommand

HERE = Path(__file__).parent
PLAY = HERE / "script.yaml"
WORKERS = 4


async def build(directory: Path | None) -> Path:
    """Copy the project and commit it.

    Args:
        directory: Where to; new or empty. None: a new one among the temporary files.

    Returns:
        Its absolute path.

    Raises:
        UsageError: There is something in the directory.
        WorkspaceError: Git is missing.
    """
    place = await asyncio.to_thread(_copy, directory)
    git = GitCommand(directory=None)
    await git.run("-C", str(place), "init", "--quiet")
    await git.run("-C", str(place), "add", "--all")
    await git.run("-C", str(place), "commit", "--quiet", "--message", "tally 0.1")
    return place


def _copy(directory: Path | None) -> Path:
    if directory is None:
        place = Path(tempfile.mkdtemp(prefix="mimir-demo-")).resolve()
    else:
        place = directory.resolve()
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise UsageError(
                f"The demo wants a directory of its own; there is something in {directory}.",
                next_step="Name one that is new or empty, or none.",
            )
    # The bytes alone are copied: an installation may be read-only.
    shutil.copytree(
        HERE / "project",
        place,
        copy_function=shutil.copyfile,
        ignore=shutil.ignore_patterns("__pycache__"),
        dirs_exist_ok=True,
    )
    return place


def settings(project: Path, store: str) -> LoadedSettings:
    """Read the person's settings; the play speaks for every role.

    Args:
        project: That is worked on.
        store: Where the runs are kept. Empty: in the project's own file, whatever the person has set.

    Raises:
        ConfigurationError: They cannot be used.
    """
    flags: dict[str, object] = {"llm.model": f"play:{PLAY}", "store": store, "run.workers": WORKERS}
    return load(project, flags | {f"roles.{role}.model": "" for role in ROLES})


async def drive(mimir: Mimir, run: str, *, resumed: bool) -> RunResult:
    """Serve a run of the demo to its end."""
    return await mimir.drive(
        run, workers=WORKERS, apply="auto", limits=RunBudget(), resumed=resumed
    )
