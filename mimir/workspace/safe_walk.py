"""Going down a directory tree by descriptors, so that no link and no race leads out of it.

The rule: every part of a path is opened relative to the directory before it, with `O_NOFOLLOW`. A path is
never joined, resolved and opened as text, because between the check and the use another process can swap a
directory for a link.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Generator
from pathlib import Path

from mimir.errors import Paused, ToolError, WorkspaceError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# O_NONBLOCK: opening a FIFO must not wait for a writer.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_FULL = (errno.ENOSPC, errno.EDQUOT)
_SHOWN_CHARACTERS = 200


def parts_of(path: str) -> tuple[str, ...]:
    """Split a relative path into its parts; `.` parts and doubled slashes are dropped.

    Raises:
        ToolError: The path is empty, absolute, holds `..` or NUL, names `.git`, or cannot be a file name.
    """
    if not path.strip():
        raise ToolError(
            "The path is empty. Give a path relative to the workspace, such as 'src/app.py'."
        )
    if "\0" in path:
        raise ToolError("The path holds a NUL character, which no file name can hold. Remove it.")
    if path.startswith("/"):
        raise ToolError(
            f"{quote_path(path)} is an absolute path. Give it relative to the workspace, such as 'src/app.py'."
        )
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ToolError(
            f"{quote_path(path)} holds '..', which could lead out of the workspace. Give the plain path from its top."
        )
    if any(part.lower() == ".git" for part in parts):
        raise ToolError(
            f"{quote_path(path)} is inside '.git', which belongs to the engine. Leave it alone; use `run` with git to look at history."
        )
    if not parts:
        raise ToolError(f"{quote_path(path)} is the workspace itself. Name a file in it.")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise ToolError(
            "The path holds characters that no file name can hold. Use other ones."
        ) from None
    return parts


def quote_path(path: str) -> str:
    """Write a path for a message: quoted, control characters escaped, bounded."""
    text = path if len(path) <= _SHOWN_CHARACTERS else path[:_SHOWN_CHARACTERS] + "…"
    return ascii(text) if any(0xD800 <= ord(c) <= 0xDFFF for c in text) else repr(text)


@contextlib.contextmanager
def opened_root(root: Path) -> Generator[int]:
    """Open the top directory; the caller gets a descriptor that is closed at the end.

    Raises:
        WorkspaceError: It is gone, or is no directory.
    """
    try:
        top = os.open(root, _DIRECTORY)
    except OSError as error:
        raise WorkspaceError(
            f"The directory {root} cannot be opened: {error.strerror}.",
            next_step="Resume the run: a new workspace is made from the recorded tree.",
        ) from error
    try:
        yield top
    finally:
        os.close(top)


@contextlib.contextmanager
def opened_directory(top: int, parts: tuple[str, ...], *, make: bool = False) -> Generator[int]:
    """Open the directory at `parts` below `top`, part by part, following no link.

    Args:
        top: Descriptor of the directory to start from; stays open.
        parts: Names; none of them: `top` itself.
        make: Create what is missing, with the owner of `top`.

    Raises:
        ToolError: A part is missing, a link, or no directory.
    """
    here = os.dup(top)
    try:
        for number, part in enumerate(parts):
            path = "/".join(parts[: number + 1])
            if make:
                _make_directory(here, part, owner_of=top)
            with describe_os_error(path):
                below = os.open(part, _DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def _make_directory(parent: int, name: str, *, owner_of: int) -> None:
    with contextlib.suppress(FileExistsError), describe_os_error(name):
        os.mkdir(name, dir_fd=parent)
        give(parent, name, owner_of=owner_of)


def give(parent: int, name: str, *, owner_of: int) -> None:
    """Hand a new entry to the owner of a directory; only root can and needs to."""
    if os.geteuid() == 0:
        owner = os.fstat(owner_of)
        os.chown(name, owner.st_uid, owner.st_gid, dir_fd=parent, follow_symlinks=False)


def open_regular(parent: int, name: str, path: str) -> int:
    """Open a regular file for reading, following no link and waiting for nobody.

    Raises:
        ToolError: It is missing, a link, a directory, or something that is no file.
    """
    with describe_os_error(path):
        file = os.open(name, _FILE, dir_fd=parent)
    try:
        require_regular(os.fstat(file), path)
    except BaseException:
        os.close(file)
        raise
    return file


def require_regular(status: os.stat_result, path: str) -> None:
    """Refuse anything but a regular file.

    Raises:
        ToolError: What it is instead, and what to do.
    """
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(
            f"{quote_path(path)} is a directory. Name a file in it; list_files shows them."
        )
    if stat.S_ISLNK(status.st_mode):
        raise _link(path)
    raise ToolError(
        f"{quote_path(path)} is a pipe, socket or device. Only regular files can be used."
    )


def status_at(parent: int, name: str) -> os.stat_result | None:
    """Look at an entry without following it; None: there is none."""
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None


def replace_file(
    parent: int,
    name: str,
    data: bytes | bytearray,
    *,
    temporary: str,
    mode: int | None,
    owner: tuple[int, int] | None,
    durable: bool = False,
) -> None:
    """Put a file in place in one step: a reader sees the old bytes or the new ones, never half.

    Args:
        parent: Descriptor of its directory.
        name: Its name there.
        data: The new content.
        temporary: Name of the intermediate file in the same directory; must not exist.
        mode: Permission bits; None: as the process' umask makes a new file.
        owner: User and group id to give it to; None: as created.
        durable: Have it on the disk before it takes its place.
    """
    file = os.open(temporary, _NEW, 0o666, dir_fd=parent)
    try:
        try:
            write_all(file, data)
            if owner is not None:
                os.fchown(file, *owner)
            if mode is not None:
                os.fchmod(file, mode & 0o777)
            if durable:
                os.fsync(file)
        finally:
            os.close(file)
        os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=parent)
        raise


def write_all(file: int, data: bytes | bytearray) -> None:
    """Write every byte, however the system cuts it."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


@contextlib.contextmanager
def describe_os_error(path: str) -> Generator[None]:
    """Turn what the system says of `path` into words a model can act on.

    Raises:
        ToolError: What, why, what to do; names no path outside the workspace.
        Paused: The disk is full: no model can mend it.
    """
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise explain_os_error(error, path) from error


def explain_os_error(error: OSError, path: str) -> ToolError | Paused:
    """Say what a system error on `path` means for the one who asked."""
    if error.errno in _FULL:
        return Paused(
            "There is no space left on the disk.",
            reason="disk",
            next_step="Free some space, then resume the run.",
        )
    match error.errno:
        case errno.ENOENT:
            text = f"There is no {quote_path(path)}. list_files shows what exists."
        case errno.ELOOP | errno.EMLINK:
            return _link(path)
        case errno.ENOTDIR:
            # Linux says so for a link too when a directory was asked for.
            text = f"{quote_path(path)} is not a directory (links are not followed). Use the path of a real directory."
        case errno.EISDIR:
            text = f"{quote_path(path)} is a directory. Name a file in it."
        case errno.ENXIO | errno.ENODEV:
            text = (
                f"{quote_path(path)} is a pipe, socket or device. Only regular files can be used."
            )
        case errno.ENAMETOOLONG:
            text = f"{quote_path(path)} is too long for a file name. Use a shorter one."
        case errno.EACCES | errno.EPERM:
            text = f"{quote_path(path)} may not be opened: its permissions forbid it. Use another file, or chmod it with `run`."
        case errno.ENOTEMPTY:
            text = f"{quote_path(path)} is a directory that is not empty. Delete its files instead."
        case _:
            text = f"{quote_path(path)} cannot be used: {os.strerror(error.errno or 0)}. Use another path."
    return ToolError(text)


def _link(path: str) -> ToolError:
    return ToolError(
        f"{quote_path(path)} is a symbolic link; links are not followed. Use the path of the real file."
    )
