"""Making a directory hold exactly a tree, whatever a worker or a killed engine left in it."""

import asyncio
import contextlib
import os
from pathlib import Path

from mimir.errors import WorkspaceError
from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.atomic_write import write_atomically
from mimir.workspace.git.commits import tree_of
from mimir.workspace.git.hidden_repository import HiddenRepository, IgnoredPaths
from mimir.workspace.git.ignore_rules import ignored_paths
from mimir.workspace.tree_removal import give_all, remove_empty_directories, remove_tree


async def fill_directory(
    hidden: HiddenRepository, source: str, where: Path, index: Path, base: str
) -> None:
    """Make `where` hold exactly the tree of `source`; what `base` ignores survives.

    Args:
        hidden: The repository.
        source: Commit or tree.
        where: Made if it is missing; also an unfinished or damaged one is made whole.
        index: The workspace's own index file, outside of it.
        base: Commit or tree whose ignore rules hold.
    """
    tree = await tree_of(hidden, source)
    passed_over = await ignored_paths(hidden, base)
    is_new = await to_thread_shielded(_prepare, where, index)
    if not await _reset(hidden, tree, where, index):
        await _fill_anew(hidden, tree, where, index)
    if not is_new:
        await _clean(hidden, where, index, passed_over)
    if hidden.owner is not None:
        await to_thread_shielded(_give, where, index, hidden.owner)


async def refresh(hidden: HiddenRepository, where: Path, index: Path) -> None:
    """Have the index know its files again after they were given away: git looks at owners, and would read each file every time.

    Done with the first look at the workspace, since many attempts never change a file.
    """
    note = _given(index)
    if await asyncio.to_thread(note.exists):
        await hidden.git.run("update-index", "-q", "--refresh", tree=where, index=index, ok=(0, 1))
        await asyncio.to_thread(note.unlink, missing_ok=True)


def _give(where: Path, index: Path, owner: tuple[int, int]) -> None:
    _given(index).touch()
    give_all(where, owner)


def _given(index: Path) -> Path:
    return index.with_name(f"{index.name}.given")


async def checkout(hidden: HiddenRepository, source: str, where: Path) -> None:
    """Make a clean directory that holds exactly the tree of `source`, and nothing that was there before."""
    await to_thread_shielded(remove_tree, where)
    with hidden.index() as index:
        await to_thread_shielded(_prepare, where, index)
        tree = await tree_of(hidden, source)
        await hidden.git.run("read-tree", "--reset", "-u", tree, tree=where, index=index)
    if hidden.owner is not None:
        await to_thread_shielded(give_all, where, hidden.owner)


async def _reset(hidden: HiddenRepository, tree: str, where: Path, index: Path) -> bool:
    """Bring a workspace back to a tree by its index; False: the index is no use."""
    try:
        await hidden.git.run("read-tree", "--reset", "-u", tree, tree=where, index=index)
    except WorkspaceError:
        await asyncio.to_thread(index.unlink, missing_ok=True)
        return False
    return True


async def _fill_anew(hidden: HiddenRepository, tree: str, where: Path, index: Path) -> None:
    await hidden.git.run("read-tree", tree, index=index)
    await hidden.git.run("checkout-index", "-a", "-f", "-q", "-u", tree=where, index=index)


async def _clean(
    hidden: HiddenRepository, where: Path, index: Path, passed_over: IgnoredPaths
) -> None:
    """Remove what is neither of the tree nor ignored.

    `git clean` would ask the workspace's own `.gitignore` files, so it is done by hand. A nested repository is listed
    as a directory and goes whole.
    """
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
    """Make the directory; say whether it has to be filled from nothing."""
    # A killed git leaves its lock; the lease says that nobody else works here.
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
    """Return the tree whose ignore rules hold for a workspace; it is written down beside the index.

    Args:
        hidden: The repository.
        index: The workspace's index.
        base: Commit or tree. None: what was written down.
        first: Commit or tree to take if nothing was written down yet.

    Raises:
        WorkspaceError: Nothing is known; the workspace was never filled.
    """
    note = index.with_name(f"{index.name}.base")
    if base is None:
        with contextlib.suppress(FileNotFoundError):
            return await asyncio.to_thread(note.read_text)
    chosen = base or first
    if chosen is None:
        raise WorkspaceError(
            f"The workspace of {index.name} is gone.",
            next_step="Resume the run: a new workspace is made from the recorded tree.",
        )
    tree = await tree_of(hidden, chosen)
    await asyncio.to_thread(index.parent.mkdir, parents=True, exist_ok=True)
    await asyncio.to_thread(write_atomically, note, tree.encode())
    return tree
