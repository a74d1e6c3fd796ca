"""Descent into a directory by descriptors, so that no link and no race leads out of it.

Each part of a path is opened relative to its directory, with `O_NOFOLLOW`. Opened as one text, a
path could change between check and use: another process can swap a directory for a link.
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

_LINK = "{path} is a symbolic link; links are not followed. Use the path of the real file."
_SPECIAL = "{path} is a pipe, socket or device. Only regular files can be used."
_CLOSED = (
    "{path} may not be opened: its permissions forbid it. Use another file, or chmod it with `run`."
)
_OS_ERRORS = {
    errno.ENOENT: "There is no {path}. list_files shows what exists.",
    errno.ELOOP: _LINK,
    errno.EMLINK: _LINK,
    # Linux reports this for a link too, if a directory was requested.
    errno.ENOTDIR: (
        "{path} is not a directory (links are not followed). Use the path of a real directory."
    ),
    errno.EISDIR: "{path} is a directory. Name a file in it.",
    errno.ENXIO: _SPECIAL,
    errno.ENODEV: _SPECIAL,
    errno.ENAMETOOLONG: "{path} is too long for a file name. Use a shorter one.",
    errno.EACCES: _CLOSED,
    errno.EPERM: _CLOSED,
    errno.ENOTEMPTY: "{path} is a directory that is not empty. Delete its files instead.",
}
_FULL = (errno.ENOSPC, errno.EDQUOT)
_SHOWN_CHARACTERS = 200


def parts_of(path: str) -> tuple[str, ...]:
    """Split a relative path into its parts; raise ToolError if it is not one."""
    if not path:
        raise ToolError(
            "The path is empty. Give a path relative to the workspace, such as 'src/app.py'."
        )
    if "\0" in path:
        raise ToolError("The path holds a NUL character, which no file name can hold. Remove it.")
    if path.startswith("/"):
        raise ToolError(
            f"{quote_path(path)} is an absolute path. "
            "Give it relative to the workspace, such as 'src/app.py'."
        )
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ToolError(
            f"{quote_path(path)} holds '..', which could lead out of the workspace. "
            "Give the plain path from its top."
        )
    if any(part.lower() == ".git" for part in parts):
        raise ToolError(
            f"{quote_path(path)} is inside '.git', which belongs to the engine. "
            "Leave it alone; use `run` with git to look at history."
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
    """Quote a path for a message: control characters escaped, bounded."""
    text = path if len(path) <= _SHOWN_CHARACTERS else path[:_SHOWN_CHARACTERS] + "…"
    return ascii(text) if any(0xD800 <= ord(c) <= 0xDFFF for c in text) else repr(text)


def workspace_error(problem: str) -> WorkspaceError:
    """Return the error of a workspace that is missing or unusable."""
    step = "Resume the run: a new workspace is made from the recorded tree."
    return WorkspaceError(problem, next_step=step)


@contextlib.contextmanager
def opened_root(root: Path) -> Generator[int]:
    """Open the top directory; raise WorkspaceError if it is missing."""
    try:
        top = os.open(root, _DIRECTORY)
    except OSError as error:
        raise workspace_error(f"Directory {root} cannot be opened: {error.strerror}.") from error
    try:
        yield top
    finally:
        os.close(top)


@contextlib.contextmanager
def opened_directory(top: int, parts: tuple[str, ...], *, make: bool = False) -> Generator[int]:
    """Open the directory at `parts` below the descriptor `top`, following no link.

    `make` creates missing parts, with the owner of `top`. ToolError: a part is missing or a link.
    """
    # A copy, so that each level can be closed and `top` stays open.
    here = os.dup(top)
    try:
        for number, part in enumerate(parts):
            path = "/".join(parts[: number + 1])
            if make:
                with contextlib.suppress(FileExistsError), describe_os_error(part):
                    os.mkdir(part, dir_fd=here)
                    _give_entry(here, part, owner_of=top)
            with describe_os_error(path):
                below = os.open(part, _DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def _give_entry(parent: int, name: str, *, owner_of: int) -> None:
    if os.geteuid() == 0:
        owner = os.fstat(owner_of)
        os.chown(name, owner.st_uid, owner.st_gid, dir_fd=parent, follow_symlinks=False)


def open_regular(parent: int, name: str, path: str) -> int:
    """Open a regular file for reading, following no link."""
    with describe_os_error(path):
        file = os.open(name, _FILE, dir_fd=parent)
    try:
        require_regular(os.fstat(file), path)
    except BaseException:
        os.close(file)
        raise
    return file


def require_regular(status: os.stat_result, path: str) -> None:
    """Raise ToolError unless it is a regular file."""
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise _refusal("{path} is a directory. Name a file in it; list_files shows them.", path)
    if stat.S_ISLNK(status.st_mode):
        raise _refusal(_LINK, path)
    raise _refusal(_SPECIAL, path)


def status_at(parent: int, name: str) -> os.stat_result | None:
    """Return the status of an entry, without following it; None: there is none."""
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
    """Replace a file in one step: a reader sees the old bytes or the new ones.

    `temporary` is an unused name in the same directory. `durable` flushes the file before that.
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
    """Write every byte, also after short writes."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


@contextlib.contextmanager
def describe_os_error(path: str) -> Generator[None]:
    """Turn an OSError at `path` into a ToolError for a model, or into Paused."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise explain_os_error(error, path) from error


def disk_full() -> Paused:
    """Return the pause of a run whose disk is full."""
    return Paused(
        "The disk is full.", reason="disk", next_step="Free some space, then resume the run."
    )


def explain_os_error(error: OSError, path: str) -> ToolError | Paused:
    """Return the error for a model; Paused if the disk is full."""
    if error.errno in _FULL:
        return disk_full()
    unknown = f"{{path}} cannot be used: {os.strerror(error.errno or 0)}. Use another path."
    return _refusal(_OS_ERRORS.get(error.errno or 0, unknown), path)


def _refusal(text: str, path: str) -> ToolError:
    return ToolError(text.format(path=quote_path(path)))
