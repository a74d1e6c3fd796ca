"""Checkout of a tree into a directory that may be new, changed or damaged."""

import asyncio
import contextlib
import os
from pathlib import Path

from mimir.errors import WorkspaceError
from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.atomic_write import write_atomically
from mimir.workspace.git.commits import tree_of
from mimir.workspace.git.git_command import GitCommand
from mimir.workspace.git.hidden_repository import (
    ATTRIBUTES,
    DEFAULT_TIME,
    HiddenRepository,
    IgnoredPaths,
)
from mimir.workspace.git.ignore_rules import ignored_paths
from mimir.workspace.safe_walk import workspace_error
from mimir.workspace.tree_removal import give_all, remove_empty_directories, remove_tree


async def fill_directory(
    hidden: HiddenRepository, source: str, where: Path, index: Path, base: str
) -> None:
    """Make `where` hold exactly the tree of `source`; paths that `base` ignores survive."""
    tree = await tree_of(hidden, source)
    passed_over = await ignored_paths(hidden, base)
    is_new = await to_thread_shielded(_prepare, where, index)
    try:
        await hidden.git.run("read-tree", "--reset", "-u", tree, tree=where, index=index)
    except WorkspaceError:  # The index is unusable: start without one.
        await asyncio.to_thread(index.unlink, missing_ok=True)
        await hidden.git.run("read-tree", tree, index=index)
        await hidden.git.run("checkout-index", "-a", "-f", "-q", "-u", tree=where, index=index)
    if not is_new:
        await _clean(hidden, where, index, passed_over)
    if hidden.owner is not None:
        await to_thread_shielded(_give, where, index, hidden.owner)


async def refresh(hidden: HiddenRepository, where: Path, index: Path) -> None:
    """Refresh the index after a change of owner, at the first snapshot of a workspace."""
    # Git compares owners, so it would read every file each time. Many attempts never change a
    # file, so this waits for the first snapshot.
    note = _ownership_note(index)
    if await asyncio.to_thread(note.exists):
        await hidden.git.run("update-index", "-q", "--refresh", tree=where, index=index, ok=(0, 1))
        await asyncio.to_thread(note.unlink, missing_ok=True)


def _give(where: Path, index: Path, owner: tuple[int, int]) -> None:
    _ownership_note(index).touch()
    give_all(where, owner)


def _ownership_note(index: Path) -> Path:
    return index.with_name(f"{index.name}.given")


async def checkout(hidden: HiddenRepository, source: str, where: Path) -> None:
    """Create a clean directory that holds exactly the tree of `source`."""
    await to_thread_shielded(remove_tree, where)
    with hidden.index() as index:
        await to_thread_shielded(_prepare, where, index)
        tree = await tree_of(hidden, source)
        await hidden.git.run("read-tree", "--reset", "-u", tree, tree=where, index=index)
    if hidden.owner is not None:
        await to_thread_shielded(give_all, where, hidden.owner)


async def make_repository(hidden: HiddenRepository, where: Path) -> None:
    """Make a directory a git repository of its own; its one commit holds every file."""
    own = GitCommand(directory=where / ".git", program=hidden.git.program)
    await own.run("init", "--quiet")
    await to_thread_shielded(_write_attributes, where / ".git" / "info")
    await own.run("add", "--all", "--force", tree=where)
    date = f"@{DEFAULT_TIME} +0000"
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    await own.run("commit", "--quiet", "--allow-empty", "--message=Files", tree=where, extra=dates)
    if hidden.owner is not None:
        await to_thread_shielded(give_all, where / ".git", hidden.owner)


def _write_attributes(info: Path) -> None:
    # The files were checked out without conversion: git must compare them without it.
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text(ATTRIBUTES)


async def _clean(
    hidden: HiddenRepository, where: Path, index: Path, passed_over: IgnoredPaths
) -> None:
    # `git clean` would obey the `.gitignore` files of the workspace. A nested repository is listed
    # as a directory, and is removed as a whole.
    untracked = await hidden.git.run(
        *("ls-files", "-z", "-o", f"--exclude-from={passed_over.file}"), tree=where, index=index
    )
    await to_thread_shielded(_clear, where, untracked.names, passed_over.submodules)


def _clear(where: Path, names: list[str], submodules: frozenset[str]) -> None:
    for name in names:
        remove_tree(where / name.rstrip("/"))
    for name in submodules:
        remove_tree(where / name)
    remove_empty_directories(where)
    for name in submodules:
        with contextlib.suppress(OSError):
            (where / name).mkdir(parents=True)


def _prepare(where: Path, index: Path) -> bool:
    """Create the directory; return whether it is empty."""
    # A killed git leaves its lock; by the lease no other process works here.
    index.with_name(f"{index.name}.lock").unlink(missing_ok=True)
    if where.is_symlink() or (where.exists() and not where.is_dir()):
        remove_tree(where)
    where.mkdir(parents=True, exist_ok=True, mode=0o700)
    index.parent.mkdir(parents=True, exist_ok=True)
    planted = where / ".git"
    if planted.is_symlink() or planted.exists():
        remove_tree(planted)
    with os.scandir(where) as entries:
        is_empty = next(entries, None) is None
    if is_empty:
        index.unlink(missing_ok=True)
    return is_empty


async def rules_of(
    hidden: HiddenRepository, index: Path, base: str | None, *, first: str | None = None
) -> str:
    """Return the tree whose ignore rules apply: of `base`, else as stored, else of `first`."""
    note = index.with_name(f"{index.name}.base")
    if base is None:
        with contextlib.suppress(FileNotFoundError):
            return await asyncio.to_thread(note.read_text)
    chosen = base or first
    if chosen is None:
        raise workspace_error(f"The workspace of {index.name} is missing.")
    tree = await tree_of(hidden, chosen)
    await asyncio.to_thread(index.parent.mkdir, parents=True, exist_ok=True)
    await asyncio.to_thread(write_atomically, note, tree.encode())
    return tree
