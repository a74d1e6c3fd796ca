"""Clearing away what killed processes left below `.mimir/work`: checkouts of checks, scratch files of git, half-made directories."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from mimir.errors import WorkspaceError
from mimir.workspace.tree_removal import remove_tree

LEFT = (
    "checks/*",
    "probe-*",
    ".history.git-*",
    "history.git/mimir/scratch/*",
    # Of a git that was killed too, as when a container is stopped: the next one would refuse to write there.
    "history.git/*.lock",
    "history.git/refs/**/*.lock",
)
"""What a process removes itself when it is done with it, however it ends but by a kill."""


def remove_stale_files(work: Path, alone: Callable[[], bool]) -> int:
    """Remove what is left of processes that are gone, unless another one is at work; how much was found. Blocking.

    Args:
        work: The project's `.mimir/work`.
        alone: Tells whether this process is the only one that lives. It is asked when all has been listed: what is on the list
            and nobody's then stays nobody's, whoever starts meanwhile.
    """
    found = [path for pattern in LEFT for path in work.glob(pattern)]
    if not found or not alone():
        return 0
    for path in found:
        with contextlib.suppress(WorkspaceError):  # what resists stays, and harms nobody
            remove_tree(path)
    return len(found)
