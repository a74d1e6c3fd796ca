"""Merge of two changes to one base, in the object store alone.

The merged tree depends only on the three trees: git sorts them, each file is merged alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mimir.domain.value_class import value_class
from mimir.errors import WorkspaceError
from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.git.commits import tree_of
from mimir.workspace.git.hidden_repository import HiddenRepository
from mimir.workspace.git.trees import LINK, SUBMODULE, TreeEntry, blobs, put_blob, put_entries
from mimir.workspace.tree_removal import remove_tree

OURS = "head"
THEIRS = "attempt"


@value_class
class TreeMerge:
    """A merged tree and its conflicts."""

    tree: str
    """Has conflict markers where there are conflicts."""
    conflicts: tuple[str, ...]
    """Sorted paths on which the sides disagree; empty: a clean merge."""


# Stages of an unmerged path in git's index, and its entries by stage.
_BASE, _OURS, _THEIRS = "1", "2", "3"
_Stages = Mapping[str, TreeEntry]
# Base, ours and theirs of a file that both sides have.
_Sides = tuple[TreeEntry | None, TreeEntry, TreeEntry]


@dataclass(slots=True)
class _FileMerge:
    edits: dict[str, TreeEntry | None] = field(default_factory=dict[str, TreeEntry | None])
    conflicts: set[str] = field(default_factory=set[str])


async def merge(
    hidden: HiddenRepository,
    ours: str,
    theirs: str,
    *,
    base: str | None,
    labels: tuple[str, str] = (OURS, THEIRS),
) -> TreeMerge:
    """Merge two commits, or two trees or commits over a base; `labels` name the sides."""
    our_tree, their_tree = await tree_of(hidden, ours), await tree_of(hidden, theirs)
    root = await tree_of(hidden, base) if base else await _merge_base_tree(hidden, ours, theirs)
    if our_tree == their_tree or their_tree == root:
        return TreeMerge(tree=our_tree, conflicts=())
    if our_tree == root:
        return TreeMerge(tree=their_tree, conflicts=())
    # `git merge-tree` would guess renames and write the names of the sides into files.
    with hidden.index() as index:
        await hidden.git.run(
            *("read-tree", "-i", "-m", "--aggressive", root, our_tree, their_tree), index=index
        )
        unmerged = await _list_unmerged(hidden, index)
        result = _FileMerge()
        if unmerged:
            result = await _merge_paths(hidden, unmerged, labels)
            await _rename_colliding_files(hidden, index, unmerged, result, labels)
            await put_entries(hidden, index, result.edits)
        tree = hidden.remember_tree(await hidden.git.word("write-tree", index=index))
    return TreeMerge(tree=tree, conflicts=tuple(sorted(result.conflicts)))


async def _merge_base_tree(hidden: HiddenRepository, ours: str, theirs: str) -> str:
    known = _merge_base_on_run_branch(hidden, ours, theirs)
    if known:
        return await tree_of(hidden, known)
    found = await hidden.git.run("merge-base", ours, theirs, ok=(0, 1))
    if found.code == 0:
        return await tree_of(hidden, found.word)
    return (await hidden.git.run("mktree", stdin=b"")).word


def _merge_base_on_run_branch(hidden: HiddenRepository, ours: str, theirs: str) -> str:
    """Return the merge base of an attempt and the run branch, if both were made here; else ""."""
    # Only along first parents, as the run branch grows. The result may be the attempt itself.
    base = hidden.parents.get(theirs, ())
    while len(base) == 1 and ours not in (theirs, base[0]):
        parents = hidden.parents.get(ours, ())
        if not parents:
            return ""
        ours = theirs if theirs in parents else parents[0]
    return ours if len(base) == 1 else ""


async def _list_unmerged(hidden: HiddenRepository, index: Path) -> dict[str, dict[str, TreeEntry]]:
    listed = await hidden.git.run("ls-files", "-z", "-u", index=index)
    found: dict[str, dict[str, TreeEntry]] = {}
    for line in listed.names:
        facts, path = line.split("\t", 1)
        mode, blob, stage = facts.split(" ")
        found.setdefault(path, {})[stage] = TreeEntry(mode=mode, blob=blob, path=path)
    return found


async def _merge_paths(
    hidden: HiddenRepository, unmerged: Mapping[str, _Stages], labels: tuple[str, str]
) -> _FileMerge:
    result = _FileMerge()
    for path, stages in unmerged.items():
        base, ours, theirs = (stages.get(stage) for stage in (_BASE, _OURS, _THEIRS))
        if ours is None or theirs is None:
            # Changed here and removed there, or added where a directory is: the file stays.
            result.edits[path] = ours or theirs
            if base is not None and (ours or theirs) is not None:
                result.conflicts.add(path)
            continue
        entry, is_clean = await _merge_file(hidden, (base, ours, theirs), labels)
        result.edits[path] = entry
        if not is_clean:
            result.conflicts.add(path)
    return result


async def _merge_file(
    hidden: HiddenRepository, sides: _Sides, labels: tuple[str, str]
) -> tuple[TreeEntry, bool]:
    # Links and submodules are never merged: ours stays, in conflict.
    base, ours, theirs = sides
    mode, is_same_mode = _choose_mode(base, ours, theirs)
    if {ours.mode, theirs.mode} & {LINK, SUBMODULE}:
        return ours, False
    if ours.blob == theirs.blob:
        return TreeEntry(mode=mode, blob=ours.blob, path=ours.path), is_same_mode
    blob, is_clean = await _merge_text(hidden, sides, labels)
    return TreeEntry(mode=mode, blob=blob, path=ours.path), is_clean and is_same_mode


def _choose_mode(base: TreeEntry | None, ours: TreeEntry, theirs: TreeEntry) -> tuple[str, bool]:
    # The side that changed the mode wins; if both did, they disagree.
    if ours.mode == theirs.mode or (base is not None and theirs.mode == base.mode):
        return ours.mode, True
    if base is not None and ours.mode == base.mode:
        return theirs.mode, True
    return ours.mode, False


async def _merge_text(
    hidden: HiddenRepository, sides: _Sides, labels: tuple[str, str]
) -> tuple[str, bool]:
    # A binary file stays ours, in conflict.
    base, ours, theirs = sides
    contents = await blobs(hidden, (one.blob for one in (base, ours, theirs) if one is not None))
    room = hidden.scratch("merge")
    try:
        await to_thread_shielded(
            _lay_out,
            room,
            ours=contents[ours.blob],
            base=contents[base.blob] if base and base.mode != LINK else b"",
            theirs=contents[theirs.blob],
        )
        ended = await hidden.git.run(
            *("merge-file", "-p", "-q", "-L", labels[0], "-L", "base", "-L", labels[1]),
            *(str(room / name) for name in ("ours", "base", "theirs")),
            ok=None,
        )
    except KeyError as error:
        raise WorkspaceError(f"The history lost the object {error.args[0]}.") from error
    finally:
        await to_thread_shielded(remove_tree, room)
    if ended.code >= 128:
        return ours.blob, False
    return await put_blob(hidden, ended.out), ended.code == 0


def _lay_out(room: Path, **contents: bytes) -> None:
    room.mkdir(mode=0o700)
    for name, content in contents.items():
        (room / name).write_bytes(content)


async def _rename_colliding_files(
    hidden: HiddenRepository,
    index: Path,
    unmerged: Mapping[str, _Stages],
    result: _FileMerge,
    labels: tuple[str, str],
) -> None:
    # A file cannot be where the other side has a directory: it gets another name, in conflict.
    listed = await hidden.git.run("ls-files", "-z", "-c", index=index)
    present = {path for path in listed.names if result.edits.get(path, path) is not None}
    above = {
        "/".join(path.split("/")[:n]) for path in present for n in range(1, path.count("/") + 1)
    }
    for path in sorted(present & above):
        entry = result.edits.get(path)
        if path not in unmerged or entry is None:
            raise WorkspaceError(f"The merge has both a file and a directory {path!r}.")
        label = labels[0] if _OURS in unmerged[path] else labels[1]
        aside = f"{path}~{label}"
        result.edits[path] = None
        result.edits[aside] = TreeEntry(mode=entry.mode, blob=entry.blob, path=aside)
        result.conflicts.discard(path)
        result.conflicts.add(aside)
