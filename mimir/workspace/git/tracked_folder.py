"""A folder of the engine that git tracks; no event loop is needed to find it."""

import subprocess
from pathlib import Path

from mimir.errors import PlanError, WorkspaceError
from mimir.workspace.git.git_environment import ENVIRONMENT


def refuse_tracked(project: Path, folder: str, program: str = "git") -> None:
    """Refuse a folder of the engine that git tracks: a clone would bring another user's runs.

    Raises:
        PlanError: Git tracks a file in it.
        WorkspaceError: Git cannot be started.
    """
    if not (project / folder).exists():
        return
    ask = (program, "-C", str(project), "ls-files", "-z", "--", f":(icase){folder}")
    nothing = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            ask, env=ENVIRONMENT, cwd="/", stdin=nothing, stdout=subprocess.PIPE, stderr=nothing
        )
    except OSError as error:
        raise WorkspaceError(f"git cannot be started: {error.strerror}.") from error
    with process:
        # One byte is enough: a long list is not awaited.
        is_tracked = bool(process.stdout and process.stdout.read(1))
        process.kill()
    if is_tracked:
        raise PlanError(
            f"Git tracks {folder}: its runs and settings may come from another user.",
            next_step=f"Move it away, and remove it from the repository: git rm -r --cached {folder}",
        )
