"""One file of the user's directory: its state, and its change in one step. Blocking.

A file that is neither as the run started nor as the run made it belongs to the user, and stays.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mimir.domain.value_class import value_class
from mimir.errors import ToolError
from mimir.workspace.git.trees import (
    EXECUTABLE,
    LINK,
    SUBMODULE,
    TreeChange,
    TreeEntry,
    leads_out,
)
from mimir.workspace.safe_walk import (
    describe_os_error,
    opened_directory,
    opened_root,
    parts_of,
    replace_file,
    status_at,
)

LEFTOVER = ".mimir-apply-"
"""Start of the names of temporary files; such a file counts as a leftover."""
_DIRECTORY = "directory"
# A pipe or the like, or unreadable.
_OTHER = "other"


@value_class
class UserFileConflict:
    """A file that may not be changed."""

    path: str
    why: str


@value_class
class FileChange:
    """State of a file before and after (`<mode>:<blob id>`, None: no file), as journaled."""

    path: str
    old: str | None
    new: str | None


@value_class
class UserFile:
    """A file or link of the user's directory."""

    mode: str
    content: bytes
    """Bytes of the file, or target of the link."""


def steps_of(changes: Iterable[TreeChange]) -> tuple[FileChange, ...]:
    """Return the changes between two trees as steps."""
    return tuple(
        FileChange(path=one.path, old=_encode_state(one.old), new=_encode_state(one.new))
        for one in changes
    )


def _encode_state(entry: TreeEntry | None) -> str | None:
    return None if entry is None else f"{entry.mode}:{entry.blob}"


def read_files(paths: Iterable[str], project: Path) -> dict[str, UserFile | None]:
    """Read files and links (None: there is none), without paths that are something else."""
    found: dict[str, UserFile | None] = {}
    with opened_root(project) as top:
        for path in paths:
            parts = parts_of(path)
            # A directory or link on the way: it is something else.
            with suppress(ToolError), opened_directory(top, parts[:-1]) as parent:
                read = _read_at(parent, parts[-1])
                if not isinstance(read, str):
                    found[path] = read
    return found


def conflicts(moves: Sequence[FileChange], project: Path) -> tuple[UserFileConflict, ...]:
    """Return the conflicts of these changes; a change that is done has none."""
    with opened_root(project) as top:
        scene = _ChangeSet(top, {move.path: move for move in moves})
        found = [(move.path, scene.why_not(move)) for move in moves]
    return tuple(UserFileConflict(path=path, why=why) for path, why in found if why is not None)


def make_change(move: FileChange, project: Path, content: bytes | None) -> UserFileConflict | None:
    """Make one change, if it is not made; return the conflict that prevents it.

    `content` are the bytes of the file or the target of the link; None: it is removed.
    """
    parts = parts_of(move.path)
    with opened_root(project) as top:
        if content is None:
            return _remove(top, parts, move)
        with opened_directory(top, parts[:-1], make=True) as parent:
            _forget_leftover(parent, move.path)
            now = _state_at(parent, parts[-1], move)
            # Done already, for example before a crash.
            if now == move.new:
                return None
            if now == _DIRECTORY and _remove_if_empty(parent, parts[-1]):
                now = None
            if now != move.old:
                return UserFileConflict(path=move.path, why=_change_since(move, now))
            with describe_os_error(move.path):
                _write(top, parent, parts[-1], move, content)
    return None


def _remove(top: int, parts: tuple[str, ...], move: FileChange) -> UserFileConflict | None:
    try:
        with opened_directory(top, parts[:-1]) as parent:
            is_changed = _forget_leftover(parent, move.path)
            now = _state_at(parent, parts[-1], move)
            if now not in (None, _DIRECTORY, move.old):
                return UserFileConflict(path=move.path, why=_change_since(move, now))
            if now == move.old:
                os.unlink(parts[-1], dir_fd=parent)
                is_changed = True
    except ToolError:
        # Without the directory there is no file.
        return None
    if is_changed:
        _prune(top, parts[:-1])
    return None


class _ChangeSet:
    """All changes together: a file of one may replace a directory of another."""

    def __init__(self, top: int, moves: Mapping[str, FileChange]) -> None:
        self._top = top
        self._moves = moves

    def why_not(self, move: FileChange) -> str | None:
        """Return why a change cannot be made; None: it can, or it is made."""
        modes = [stand.partition(":")[0] for stand in (move.old, move.new) if stand is not None]
        if SUBMODULE in modes:
            return "is a submodule, which only its own repository can change"
        try:
            parts = parts_of(move.path)
            above = self._in_the_way_above(parts)
            if above is not None:
                return None if self._is_known(above) else f"{above} is a file or a link now"
            now = self._look(move.path)
            if now == _DIRECTORY and self._holds_only_known(parts):
                now = None
        except ToolError as error:
            return str(error)
        return None if now in (move.old, move.new) else _change_since(move, now)

    def _is_known(self, path: str) -> bool:
        """Return whether a path is in the changes, in its state before or after."""
        move = self._moves.get(path)
        return move is not None and self._look(path) in (move.old, move.new)

    def _look(self, path: str) -> str | None:
        move = self._moves[path]
        parts = parts_of(path)
        try:
            with opened_directory(self._top, parts[:-1]) as parent:
                return _state_at(parent, parts[-1], move)
        except ToolError as error:
            if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                return None
            raise

    def _in_the_way_above(self, parts: tuple[str, ...]) -> str | None:
        for depth in range(1, len(parts)):
            with opened_directory(self._top, parts[: depth - 1]) as parent:
                status = status_at(parent, parts[depth - 1])
            if status is None:
                return None
            if not stat.S_ISDIR(status.st_mode):
                return "/".join(parts[:depth])
        return None

    def _holds_only_known(self, parts: tuple[str, ...]) -> bool:
        waiting = [parts]
        while waiting:
            here = waiting.pop()
            with opened_directory(self._top, here) as directory, os.scandir(directory) as entries:
                found = [(one.name, one.is_dir(follow_symlinks=False)) for one in entries]
            for name, is_directory in found:
                if is_directory:
                    waiting.append((*here, name))
                elif not name.startswith(LEFTOVER) and not self._is_known("/".join((*here, name))):
                    return False
        return True


def _state_at(parent: int, name: str, move: FileChange) -> str | None:
    read = _read_at(parent, name)
    return f"{read.mode}:{_hash(read.content, move)}" if isinstance(read, UserFile) else read


def _read_at(parent: int, name: str) -> UserFile | str | None:
    """Return a file or link, the word for something else, or None."""
    status = status_at(parent, name)
    if status is None:
        return None
    if stat.S_ISLNK(status.st_mode):
        return UserFile(mode=LINK, content=os.fsencode(os.readlink(name, dir_fd=parent)))
    if stat.S_ISDIR(status.st_mode):
        return _DIRECTORY
    if not stat.S_ISREG(status.st_mode):
        return _OTHER
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
    except OSError:
        return _OTHER
    with os.fdopen(file, "rb") as opened:
        content = opened.read()
    mode = EXECUTABLE if status.st_mode & stat.S_IXUSR else "100644"
    return UserFile(mode=mode, content=content)


def _hash(content: bytes, move: FileChange) -> str:
    # The ids in the change show the algorithm.
    known = (move.old or move.new or "").partition(":")[2]
    algorithm = "sha256" if len(known) == 64 else "sha1"
    header = f"blob {len(content)}\0".encode()
    return hashlib.new(algorithm, header + content, usedforsecurity=False).hexdigest()


def _remove_if_empty(parent: int, name: str) -> bool:
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError:
        return False
    return True


def _write(top: int, parent: int, name: str, move: FileChange, content: bytes) -> None:
    mode = (move.new or "").partition(":")[0]
    if mode == LINK:
        if leads_out(move.path, content):
            raise ToolError("the link leads out of the project")
        _put_link(top, parent, name, move.path, content)
        return
    status = status_at(parent, name)
    is_file = status is not None and stat.S_ISREG(status.st_mode)
    owner = status if status is not None and is_file else os.fstat(top)
    replace_file(
        parent,
        name,
        content,
        temporary=_temporary(move.path),
        mode=_permissions(status.st_mode if status is not None and is_file else None, mode),
        owner=(owner.st_uid, owner.st_gid) if os.geteuid() == 0 else None,
        durable=True,
    )


def _permissions(before: int | None, mode: str) -> int:
    # The user's permissions stay; only executability follows the result.
    if before is not None:
        known = stat.S_IMODE(before)
    else:
        # The umask can only be read by setting it.
        umask = os.umask(0o077)
        os.umask(umask)
        known = 0o666 & ~umask
    return known | (known & 0o444) >> 2 if mode == EXECUTABLE else known & ~0o111


def _put_link(top: int, parent: int, name: str, path: str, target: bytes) -> None:
    temporary = _temporary(path)
    os.symlink(target, temporary, dir_fd=parent)
    if os.geteuid() == 0:
        owner = os.fstat(top)
        os.chown(temporary, owner.st_uid, owner.st_gid, dir_fd=parent, follow_symlinks=False)
    os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)


def _temporary(path: str) -> str:
    # Always the same name, so that the leftover of a crash is found.
    return f"{LEFTOVER}{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}"


def _forget_leftover(parent: int, path: str) -> bool:
    try:
        os.unlink(_temporary(path), dir_fd=parent)
    except FileNotFoundError:
        return False
    return True


def _prune(top: int, parts: tuple[str, ...]) -> None:
    # Git removes empty directories too.
    while parts:
        try:
            with opened_directory(top, parts[:-1]) as parent:
                os.rmdir(parts[-1], dir_fd=parent)
        except (OSError, ToolError):
            return
        parts = parts[:-1]


def _change_since(move: FileChange, now: str | None) -> str:
    if now is None:
        return "was deleted since the run started"
    if now == _DIRECTORY:
        return "is a directory with other files now"
    if now == _OTHER:
        return "is no regular file now"
    return f"was {'created' if move.old is None else 'changed'} since the run started"
