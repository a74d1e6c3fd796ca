"""Merge of a result with files that the user changed during the run, by hunks.

The user's files enter the hidden repository only; the directory is not touched.
"""

import asyncio
import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

from mimir.domain.value_class import value_class
from mimir.workspace.git.history import GitHistory
from mimir.workspace.git.trees import LINK, TreeChange, TreeEntry
from mimir.workspace.user_tree import user_file
from mimir.workspace.user_tree.user_file import UserFile, UserFileConflict

SIDES = ("yours", "mimir")
"""Labels of the two sides in markers."""
BESIDE = ".mimir"
"""Ending of the result's version next to a file without lines that the user changed too."""
MOST_LINES = 5_000
"""A longer file is named without the numbers of its lines."""


@value_class
class UserMerge:
    """Changes of the user's directory, with their files merged."""

    changes: tuple[TreeChange, ...]
    """From the user's files to the merged ones."""
    conflicts: tuple[UserFileConflict, ...]
    """Files that cannot be merged."""
    marked: tuple[str, ...] = ()
    """Files of `changes` that hold conflict markers."""


async def merge_user_files(
    history: GitHistory, base: str, result: str, project: Path, *, markers: bool
) -> UserMerge:
    """Merge the changes from `base` to `result` (trees) into the user's files.

    Overlapping hunks are conflicts; with `markers` they are marked in the merged file instead.
    """
    changes = await history.diff_trees(base, result)
    found = await asyncio.to_thread(user_file.conflicts, user_file.steps_of(changes), project)
    if not found:
        return UserMerge(changes=changes, conflicts=())
    mine = await asyncio.to_thread(user_file.read_files, [one.path for one in found], project)
    fixed = tuple(one for one in found if one.path not in mine)
    if fixed:  # a directory, a submodule and the like cannot be merged
        return UserMerge(changes=changes, conflicts=fixed)
    ours = await history.edit_files(base, {path: _content(one) for path, one in mine.items()})
    merge = await history.merge(ours, result, base, labels=SIDES)
    merged = await history.diff_trees(ours, merge.tree)
    marked = {
        one.path
        for one in merged
        if one.path in merge.conflicts and _is_text(one.old) and _is_text(one.new)
    }
    if merge.conflicts and not markers:
        trees = (base, ours, result)
        conflicts = [await _describe(history, trees, path) for path in merge.conflicts]
        return UserMerge(changes=(), conflicts=tuple(conflicts))
    # A file without lines stays as the user has it; the other version gets a name of its own.
    beside: dict[str, tuple[str, bytes] | None] = {
        f"{one.path}{BESIDE}": (one.mode, await history.blob(one.blob))
        for one in await history.entries(result)
        if one.path in merge.conflicts and one.path not in marked
    }
    tree = await history.edit_files(merge.tree, beside)
    return UserMerge(
        changes=await history.diff_trees(ours, tree),
        conflicts=(),
        marked=tuple(sorted((*marked, *beside))),
    )


def _content(file: UserFile | None) -> tuple[str, bytes] | None:
    return None if file is None else (file.mode, file.content)


def _is_text(entry: TreeEntry | None) -> bool:
    # The merge leaves a file without lines as it was, so it is no change.
    return entry is not None and entry.mode != LINK


async def _describe(
    history: GitHistory, trees: tuple[str, str, str], path: str
) -> UserFileConflict:
    contents = [await history.file(tree, path) for tree in trees]
    if None in contents or any(b"\0" in (one or b"") for one in contents):
        return UserFileConflict(path=path, why="was changed since the run started")
    base, mine, result = ((one or b"").decode("utf-8", "replace").splitlines() for one in contents)
    lines = find_overlaps(base, mine, result)
    where = (
        f"line{'s' if len(lines) > 1 or '-' in lines[0] else ''} {', '.join(lines)}"
        if lines
        else ""
    )
    return UserFileConflict(
        path=path, why=f"you changed the same lines{f' ({where})' if where else ''}"
    )


def find_overlaps(base: Sequence[str], mine: Sequence[str], result: Sequence[str]) -> list[str]:
    """Return the lines of `mine` that both sides changed, such as `3` and `5-7`."""
    if max(len(base), len(mine), len(result)) > MOST_LINES:
        return []
    theirs = [(start, end) for start, end, _, _ in _hunks(base, result)]
    return [
        str(first + 1) if last - first < 2 else f"{first + 1}-{last}"
        for start, end, first, last in _hunks(base, mine)
        # Hunks that touch cannot be merged either.
        if any(start <= until and since <= end for since, until in theirs)
    ]


def _hunks(a: Sequence[str], b: Sequence[str]) -> Iterable[tuple[int, int, int, int]]:
    codes = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return [(i1, i2, j1, j2) for tag, i1, i2, j1, j2 in codes if tag != "equal"]
