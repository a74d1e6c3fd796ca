"""Files below `.mimir/work` that no run needs any more: `mimir clean`."""

from collections.abc import Sequence
from pathlib import Path

from mimir.domain.task_states import RUN_ENDED
from mimir.store.protocol import ReadOps
from mimir.store.run_reading import load_run_overviews
from mimir.workspace.stale_cleanup import find_stale_files


def find_removable(reads: ReadOps, project_id: str, work: Path) -> Sequence[Path]:
    """Return the paths that can be removed while no process works: no open run needs them.

    These are leftovers of killed processes, workspaces of ended runs, and, if every run has ended,
    the lock files of dead processes.
    """
    runs = load_run_overviews(reads, project_id)
    found = find_stale_files(work)
    found += [path for run in runs if run.status in RUN_ENDED and (path := work / run.id).is_dir()]
    # The lock file of a dead process frees the tasks that it held in an open run.
    if all(run.status in RUN_ENDED for run in runs):
        found += (work / "owners").glob("*")
    return sorted(set(found))


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files below a directory; links count as files."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    return sum(size_of(child) for child in path.iterdir())
