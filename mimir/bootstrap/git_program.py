"""Git as a program of this machine."""

import os
import shutil
from pathlib import Path

from mimir.errors import UnavailableError


def find_git() -> str:
    """Return the path of the git program.

    Raises:
        UnavailableError: There is none.
    """
    # A relative entry of PATH would let a project supply its own git.
    path = os.pathsep.join(entry for entry in os.get_exec_path() if Path(entry).is_absolute())
    found = shutil.which("git", path=path)
    if found is None:
        raise UnavailableError(
            "git is missing: no directory of PATH holds it.",
            next_step="Install git, 2.38 or newer.",
        )
    return found
