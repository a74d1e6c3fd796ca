"""Removal of directories that a worker made unreadable, deep or full of links. Blocking.

Nothing is followed. A nested directory is first moved next to the top and emptied there, so two
descriptors are enough for any depth.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from mimir.errors import WorkspaceError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Deeper directories are neither visited nor given to a user; removal reaches all.
MAX_DEPTH = 100
_MOVED = ".mimir-removed-"


def remove_tree(path: Path) -> None:
    """Remove a file, link or directory, if it exists; raise WorkspaceError if it resists."""
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        remove_at(parent, path.name)
    except OSError as error:
        raise WorkspaceError(
            f"{path} cannot be removed: {error.strerror}.",
            next_step="Remove it by hand, then resume the run.",
        ) from error
    finally:
        os.close(parent)


def remove_at(parent: int, name: str) -> None:
    """Remove an entry of an open directory; raise OSError if it resists."""
    if not _is_directory(parent, name):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)
        return
    waiting = [name]
    moved = 0
    while waiting:
        directory = waiting[-1]
        here = _open(parent, directory)
        try:
            for entry in os.listdir(here):  # noqa: PTH208  a descriptor, not a path
                if not _is_directory(here, entry):
                    os.unlink(entry, dir_fd=here)
                    continue
                target = f"{_MOVED}{name[:100]}-{moved}"
                moved += 1
                _allow(here, entry)
                os.rename(entry, target, src_dir_fd=here, dst_dir_fd=parent)
                waiting.insert(0, target)
        finally:
            os.close(here)
        os.rmdir(directory, dir_fd=parent)
        waiting.pop()


def remove_empty_directories(root: Path) -> None:
    """Remove every directory below `root` that holds no file."""
    for directory in reversed(list(directories(root))):
        if directory != root:
            with contextlib.suppress(OSError):
                directory.rmdir()


def directories(root: Path) -> Iterator[Path]:
    """Yield `root` and the directories below, parents first, without links and too deep ones."""
    # Paths are joined as text: no other process may work there.
    waiting = [(root, 0)]
    while waiting:
        directory, depth = waiting.pop()
        try:
            with os.scandir(directory) as entries:
                below = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        yield directory
        if depth < MAX_DEPTH:
            waiting += [(directory / name, depth + 1) for name in below]


def give_all(root: Path, owner: tuple[int, int]) -> None:
    """Give a directory and all below it to a user, following no link; only root can."""
    if os.geteuid() != 0:
        return
    user, group = owner
    for directory in directories(root):
        names = [directory, *directory.iterdir()]
        for path in names:
            with contextlib.suppress(FileNotFoundError):
                if path.lstat().st_uid != user:
                    os.chown(path, user, group, follow_symlinks=False)


def _is_directory(parent: int, name: str) -> bool:
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(status.st_mode)


def _open(parent: int, name: str) -> int:
    # Without permissions its owner gets them back first.
    with contextlib.suppress(PermissionError):
        here = os.open(name, _DIRECTORY, dir_fd=parent)
        if os.geteuid() == 0 or os.fstat(here).st_mode & 0o300 == 0o300:
            return here
        os.fchmod(here, 0o700)
        return here
    _allow(parent, name)
    return os.open(name, _DIRECTORY, dir_fd=parent)


def _allow(parent: int, name: str) -> None:
    # A directory needs these rights also to be moved to another parent.
    if os.geteuid() != 0:
        os.chmod(name, 0o700, dir_fd=parent)
