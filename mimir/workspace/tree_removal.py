"""Removing what a worker made, however it was made: unreadable, deep, or full of links.

The rule: nothing is followed, and no depth is too deep. A directory found inside is first moved up next to
the top and emptied there, so that two descriptors are enough for any nesting. Blocking calls.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from mimir.errors import WorkspaceError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_DEPTH = 100
"""Directories deeper than this are neither given nor looked at; removing reaches them all."""
_MOVED = ".mimir-removed-"


def remove_tree(path: Path) -> None:
    """Remove a file, a link or a whole directory; nothing happens if there is none.

    Raises:
        WorkspaceError: Something resisted.
    """
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
    """Remove an entry of an open directory; the parent must not change meanwhile.

    Raises:
        OSError: Something resisted.
    """
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


def remove_empty_directories(root: Path, keep: frozenset[str] = frozenset()) -> None:
    """Remove every directory below `root` that holds nothing but empty directories.

    Args:
        root: Stays, even when empty.
        keep: Relative paths that stay, even when empty.
    """
    for directory in reversed(list(directories(root))):
        relative = str(directory.relative_to(root))
        if relative != "." and relative not in keep:
            with contextlib.suppress(OSError):
                directory.rmdir()


def directories(root: Path) -> Iterator[Path]:
    """Yield `root` and the directories below it, parents first; links and what is too deep are passed over.

    Nobody else may work there meanwhile: paths are joined as text.
    """
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
    """Hand a directory and all below it to a user; links are not followed. Only root can, others do nothing."""
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
    """Open a directory for emptying; one whose permissions forbid that gets them back first."""
    with contextlib.suppress(PermissionError):
        here = os.open(name, _DIRECTORY, dir_fd=parent)
        if os.geteuid() == 0 or os.fstat(here).st_mode & 0o300 == 0o300:
            return here
        os.fchmod(here, 0o700)
        return here
    _allow(parent, name)
    return os.open(name, _DIRECTORY, dir_fd=parent)


def _allow(parent: int, name: str) -> None:
    """Give the owner all rights to a directory; moving it to another parent needs them too."""
    if os.geteuid() != 0:
        os.chmod(name, 0o700, dir_fd=parent)
