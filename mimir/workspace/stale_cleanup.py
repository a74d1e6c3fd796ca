"""Removal of files that killed processes left below `.mimir/work`."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from mimir.errors import WorkspaceError
from mimir.workspace.tree_removal import remove_tree

# Files that a process removes itself unless it is killed.
LEFT = (
    "checks/*",
    "probe-*",
    ".history.git-*",
    "history.git/mimir/scratch/*",
    # Of a killed git, as when a container stops: the next git would refuse to write there.
    "history.git/*.lock",
    "history.git/refs/**/*.lock",
)


def find_stale_files(work: Path) -> list[Path]:
    """Return the files that killed processes left, if no process lives."""
    return [path for pattern in LEFT for path in work.glob(pattern)]


def remove_stale_files(work: Path, alone: Callable[[], bool]) -> int:
    """Remove files of dead processes and return their number, unless another process lives."""
    # Listed before the question: files of a process that starts later are not on the list.
    found = find_stale_files(work)
    if not found or not alone():
        return 0
    for path in found:
        with contextlib.suppress(WorkspaceError):  # it does no harm if it stays
            remove_tree(path)
    return len(found)
