"""The remains of a process that dies at a point: two points with the same state are the same death.

The state is every file below the run's directory, and how many calls with an effect have begun and have ended.
While a commit is under way, only the server knows whether it has it: each of these points counts as a state of its own.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

OWN = ("out-", "err-", "trace")
"""Files of the trial itself, beside the project."""
MEMORY = "-shm"
"""SQLite's shared memory: a reader changes it too, and SQLite makes it again after a death."""


class DurableState:
    """State of a run at each of its points; used under the lock of the `Fuse`."""

    def __init__(self, root: Path) -> None:
        """Watch a directory."""
        self._root = str(root)
        self._open: Counter[tuple[str, str]] = Counter()
        self._ended = 0
        self._looks = 0

    def before(self, kind: str, label: str) -> str:
        """Return the state before a call with an effect."""
        state = self.look()
        self._open[kind, label] += 1
        return state

    def after(self, kind: str, label: str) -> str:
        """Return the state after a call with an effect."""
        self._open[kind, label] -= 1
        self._ended += 1
        return self.look()

    def look(self) -> str:
        """Return the state as it is."""
        self._looks += 1
        uncertain = self._looks if self._open["store", "commit"] else 0
        calls = sorted((+self._open).items())
        text = repr((calls, self._ended, uncertain, sorted(_files(self._root))))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _files(folder: str, depth: int = 0) -> Iterator[tuple[object, ...]]:
    """Yield each file and directory with the values that change when it is written."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:  # another thread removed it
        return
    for entry in entries:
        if (depth == 0 and entry.name.startswith(OWN)) or entry.name.endswith(MEMORY):
            continue
        try:
            found = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        yield entry.path, found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path, depth + 1)
