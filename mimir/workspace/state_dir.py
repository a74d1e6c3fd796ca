"""The state directory: created if missing, never reached through a link.

A repository can contain a link: its author would decide the target of each write through it.
"""

import contextlib
from collections.abc import Generator, Iterable
from pathlib import Path, PurePosixPath

from mimir.errors import PlanError, ToolError, UsageError
from mimir.workspace.paths import DirectoryTree

ROOM = ".mimir"
FOLDERS = (ROOM, "chains", "generated-agents", f"{ROOM}/work", f"{ROOM}/mimir.db")


def prepare(project: Path, *, create: bool) -> Path:
    """Return the state directory of a project; create it for the user alone if `create`."""
    room = project / ROOM
    for name in FOLDERS:
        if (project / name).is_symlink():
            raise PlanError(
                f"{name} is a link: mimir writes there and follows no link of a repository.",
                next_step=f"Remove it or put a directory in its place: rm {name}",
            )
    if not create and not room.is_dir():
        raise UsageError(
            "mimir was not used in this directory yet: there is no .mimir here.",
            next_step='Start with: mimir chain "REQUEST"',
        )
    if room.exists() and not room.is_dir():
        raise PlanError(
            f"{ROOM} is not a directory, but mimir stores its files there.",
            next_step=f"Move {ROOM} away, then try again.",
        )
    room.mkdir(mode=0o700, exist_ok=True)
    (room / "work").mkdir(mode=0o700, exist_ok=True)
    # Git ignores the whole directory, independent of the project's rules.
    ignore = room / ".gitignore"
    if not ignore.is_symlink() and not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    return room


def write_state_file(project: Path, path: str, data: bytes | bytearray) -> None:
    """Write a file below a project, following no link, or outside of it if a flag said so."""
    if _leads_out(path):
        target = project / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        return
    with _as_plan_error(path):
        DirectoryTree(project).write(path, data)


def put_all(project: Path, folder: str, files: Iterable[tuple[str, bytes]]) -> None:
    """Write files (name, data) into a folder, each as `write_state_file` does."""
    if _leads_out(folder):
        for name, data in files:
            write_state_file(project, f"{folder}/{name}", data)
        return
    with _as_plan_error(folder):
        DirectoryTree(project).write_many(folder, files)


def _leads_out(path: str) -> bool:
    place = PurePosixPath(path)
    return place.is_absolute() or ".." in place.parts


@contextlib.contextmanager
def _as_plan_error(path: str) -> Generator[None]:
    try:
        yield
    except ToolError as error:
        raise PlanError(
            f"{path} cannot be written: {error}",
            next_step="Move the present file away, then: mimir report",
        ) from None
