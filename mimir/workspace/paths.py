"""Access of agents to a directory: relative paths, regular files, nothing outside.

`safe_walk` opens each path part by part. Each refusal is a `ToolError` that a model can act on.
"""

import contextlib
import itertools
import os
import stat
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

from mimir.domain.globs import has_wildcard, is_outside, matches
from mimir.errors import ToolError
from mimir.workspace.safe_walk import (
    describe_os_error,
    open_regular,
    opened_directory,
    opened_root,
    parts_of,
    quote_path,
    replace_file,
    require_regular,
    status_at,
)

Kind = Literal["file", "directory", "symlink", "other"]

# Limit of one read.
MAX_READ_BYTES = 10_000_000
# Limit of one write.
MAX_WRITE_BYTES = 32_000_000
# Directory entries that one walk visits.
MAX_ENTRIES = 200_000
# Depth of a walk: each level costs one open for every directory below it.
MAX_DEPTH = 100

_numbers = itertools.count()


class DirectoryTree:
    """One directory and its contents; blocking calls that leave no descriptor open."""

    def __init__(self, root: Path, *, hidden: Sequence[str] = ()) -> None:
        """Give access to an existing directory without the top-level names in `hidden`."""
        self._given = root
        self._hidden = frozenset(hidden)

    @cached_property
    def root(self) -> Path:
        """The real path of the directory."""
        return Path(os.path.realpath(self._given))

    def read(self, path: str, /, *, offset: int = 0, max_bytes: int | None = None) -> bytes:
        """Return bytes of a regular file from the 0-based `offset`; none past the end.

        Without `max_bytes` the rest is returned, refused if it exceeds `MAX_READ_BYTES`.
        """
        if offset < 0 or (max_bytes is not None and max_bytes < 0):
            raise ToolError("offset and limit must not be negative.")
        with self._parent(path) as (_, parent, name):
            file = open_regular(parent, name, path)
        try:
            rest = max(os.fstat(file).st_size - offset, 0)
            if max_bytes is None and rest > MAX_READ_BYTES:
                raise ToolError(
                    f"{quote_path(path)} has {rest:,} bytes; files over {MAX_READ_BYTES:,} are not read.",
                    next_step="Use a command that shows a part of it, such as head, tail or sed.",
                )
            wanted = MAX_READ_BYTES if max_bytes is None else min(max_bytes, MAX_READ_BYTES)
            with describe_os_error(path):
                return _read_at(file, offset, wanted)
        finally:
            os.close(file)

    def size(self, path: str) -> int:
        """Return the size of a regular file in bytes."""
        with self._parent(path) as (_, parent, name):
            file = open_regular(parent, name, path)
        try:
            return os.fstat(file).st_size
        finally:
            os.close(file)

    def write(self, path: str, data: bytes | bytearray, /) -> None:
        """Write a file in one step; missing directories are created, modes are kept."""
        _require_room(path, data)
        with self._parent(path, make=True) as (top, parent, name):
            _write_file(top, parent, name, path, data)

    def write_many(self, directory: str, files: Iterable[tuple[str, bytes]], /) -> None:
        """Write files (name, data) of one directory, each as `write` does."""
        with (
            opened_root(self.root) as top,
            opened_directory(top, self._visible_parts(directory), make=True) as parent,
        ):
            for name, data in files:
                path = f"{directory}/{name}"
                if parts_of(name) != (name,):
                    raise ToolError(f"{quote_path(path)} is not a file of {quote_path(directory)}.")
                _require_room(path, data)
                _write_file(top, parent, name, path, data)

    def delete(self, path: str, /) -> None:
        """Remove one regular file, or a link (never its target)."""
        with self._parent(path) as (_, parent, name), describe_os_error(path):
            status = status_at(parent, name)
            if status is not None and not stat.S_ISLNK(status.st_mode):
                require_regular(status, path)
            os.unlink(name, dir_fd=parent)

    def kind(self, path: str) -> Kind | None:
        """Return the kind of the entry at `path`; None: there is none."""
        try:
            with self._parent(path) as (_, parent, name):
                status = status_at(parent, name)
        except ToolError as error:
            if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                return None
            raise
        return None if status is None else _kind_of(status)

    def exists(self, path: str) -> bool:
        """Return whether there is an entry at `path`."""
        return self.kind(path) is not None

    def walk(self, glob: str = "**", *, limit: int | None = None) -> tuple[str, ...]:
        """List the regular files that `glob` matches, sorted, without `.git` and links."""
        if is_outside(glob):
            raise ToolError(
                f"The glob {quote_path(glob)} points out of the workspace. Give one relative to its top, such as 'src/**/*.py'."
            )
        # Below the literal start of the glob is everything that it can match.
        parts = [part for part in glob.split("/") if part not in ("", ".")]
        start = tuple(itertools.takewhile(lambda part: not has_wildcard(part), parts[:-1]))
        with opened_root(self.root) as top:
            found = sorted(path for path in self._files(top, start) if matches(path, (glob,)))
        return tuple(found if limit is None else found[:limit])

    def _visible_parts(self, path: str) -> tuple[str, ...]:
        parts = parts_of(path)
        if parts[0] in self._hidden:
            raise ToolError(f"{quote_path(path)} is not part of the workspace. Work without it.")
        return parts

    @contextlib.contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Generator[tuple[int, int, str]]:
        """Open the directory of `path`: descriptors of the top and of it, and the last name."""
        parts = self._visible_parts(path)
        with opened_root(self.root) as top, opened_directory(top, parts[:-1], make=make) as parent:
            yield top, parent, parts[-1]

    def _files(self, top: int, start: tuple[str, ...]) -> Iterator[str]:
        looked_at = 0
        waiting = [start]
        while waiting:
            parts = waiting.pop()
            for name, kind in _entries(top, parts):
                looked_at += 1
                if looked_at > MAX_ENTRIES:
                    raise ToolError(
                        f"There are more than {MAX_ENTRIES} entries. Use `run` with a narrower search instead."
                    )
                # The engine owns `.git`, also if a worker created it.
                if name == ".git" or (not parts and name in self._hidden):
                    continue
                if kind == "directory" and len(parts) < MAX_DEPTH:
                    waiting.append((*parts, name))
                elif kind == "file":
                    yield "/".join((*parts, name))


def make_directories(root: Path, path: str) -> None:
    """Create the directory `path` below `root`; raise ToolError at a link or file."""
    with opened_root(root) as top, opened_directory(top, parts_of(path), make=True):
        pass


def _require_room(path: str, data: bytes | bytearray) -> None:
    if len(data) > MAX_WRITE_BYTES:
        raise ToolError(
            f"The text for {quote_path(path)} has {len(data)} bytes; at most {MAX_WRITE_BYTES} can be written. Split it."
        )


def _write_file(top: int, parent: int, name: str, path: str, data: bytes | bytearray) -> None:
    with describe_os_error(path):
        mode = _writable_mode(parent, name, path)
        status = os.fstat(top)
        # As root, a new file gets the owner of the workspace.
        owner = (status.st_uid, status.st_gid) if os.geteuid() == 0 else None
        # A killed engine may have left a file of this name: use the next one.
        for number in itertools.islice(_numbers, 100):
            temporary = f".mimir-{os.getpid()}-{number}.tmp"
            with contextlib.suppress(FileExistsError):
                replace_file(parent, name, data, temporary=temporary, mode=mode, owner=owner)
                return


def _read_at(file: int, offset: int, wanted: int) -> bytes:
    pieces: list[bytes] = []
    while wanted > 0:
        piece = os.pread(file, min(wanted, 1 << 20), offset)
        if not piece:
            break
        pieces.append(piece)
        offset += len(piece)
        wanted -= len(piece)
    return b"".join(pieces)


def _writable_mode(parent: int, name: str, path: str) -> int | None:
    """Return the permission bits to keep; None: the file is new."""
    status = status_at(parent, name)
    if status is None:
        return None
    require_regular(status, path)
    if status.st_nlink > 1:
        raise ToolError(
            f"{quote_path(path)} has further names (hard links), so writing it could change another file. "
            "Delete it first, then write it again."
        )
    return stat.S_IMODE(status.st_mode)


def _kind_of(status: os.stat_result) -> Kind:
    if stat.S_ISREG(status.st_mode):
        return "file"
    if stat.S_ISDIR(status.st_mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(status.st_mode) else "other"


def _entries(top: int, parts: tuple[str, ...]) -> list[tuple[str, Kind]]:
    # A directory that vanished or became a link has no entries.
    try:
        with opened_directory(top, parts) as here, os.scandir(here) as entries:
            return [(entry.name, _kind_of_entry(entry)) for entry in entries]
    except (ToolError, OSError):
        return []


def _kind_of_entry(entry: os.DirEntry[str]) -> Kind:
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else "other"
