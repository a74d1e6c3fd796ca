"""Capture of the user's directory as a commit when a run starts; it changes nothing there.

Git works on an index of the engine, which starts with the entries of the user's index.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from mimir.domain.value_class import value_class
from mimir.errors import WorkspaceError
from mimir.workspace.aio import gather_both
from mimir.workspace.atomic_write import write_atomically
from mimir.workspace.git import user_refs
from mimir.workspace.git.commits import commit, newest, tree_of
from mimir.workspace.git.discovery import UserRepository
from mimir.workspace.git.filtered_files import encode, parse_filtered
from mimir.workspace.git.git_command import GitResult, failure
from mimir.workspace.git.hidden_files import find_hidden, remember_rules
from mimir.workspace.git.hidden_repository import HiddenRepository
from mimir.workspace.git.ignore_rules import pin_user_rules
from mimir.workspace.git.trees import SUBMODULE, TreeEntry, put_entries
from mimir.workspace.git.user_ignores import lift_rules_to_root

MESSAGE = "The project as it was when the run started\n"
_MAX_NAMES = 10


@value_class
class BaseCommit:
    """The commit that a run starts from."""

    commit: str
    tree: str
    head: str | None
    """The user's commit that it continues. None: there is none."""
    branch: str | None
    """The user's branch. None: detached, or no repository."""
    warnings: tuple[str, ...]


@value_class
class _TrackedFiles:
    entries: tuple[TreeEntry, ...] = ()
    absent: frozenset[str] = frozenset()
    """Left out of the work tree on purpose (sparse checkout)."""
    unmerged: frozenset[str] = frozenset()


async def base(
    hidden: HiddenRepository, run: str, *, left_out: Sequence[str], when: int | None
) -> BaseCommit:
    """Record the project as it is, without top-level names of `left_out`, and pin the commit."""
    # Independent questions run side by side: most of their time is the start of git.
    recorded = tree_of_project(hidden, left_out, pin_user_rules(hidden))
    (head, branch), (tree, warnings) = await gather_both(_head_and_branch(hidden), recorded)
    whole = head if hidden.user and not hidden.user.prefix else None
    if whole is not None and await tree_of(hidden, whole) == tree:
        base_commit = whole
    else:
        time = await newest(hidden, [head] if head else []) if when is None else when
        base_commit = await commit(hidden, tree, [whole] if whole else [], MESSAGE, when=time)
    await remember_base(hidden, base_commit, head, left_out)
    await remember_rules(hidden, tree)
    await user_refs.pin_commit(
        hidden, f"refs/mimir/base/{user_refs.ref_part(run)}", base_commit, head=head
    )
    return BaseCommit(
        commit=base_commit, tree=tree, head=head, branch=branch, warnings=tuple(warnings)
    )


async def _head_and_branch(hidden: HiddenRepository) -> tuple[str | None, str | None]:
    if hidden.user is None:
        return None, None
    head, branch, tree = await hidden.user.checked_out_commit()
    if head and tree:
        hidden.trees[head] = tree
    return head, branch


async def remember_base(
    hidden: HiddenRepository, made: str, head: str | None, left_out: Sequence[str]
) -> None:
    """Store the state that must be restored when the result goes to the user's repository."""
    text = json.dumps({"head": head, "left_out": list(left_out)})
    await asyncio.to_thread(
        write_atomically, hidden.engine_dir / "bases" / f"{made}.json", text.encode()
    )


async def tree_of_project(
    hidden: HiddenRepository, left_out: Sequence[str], rules: Awaitable[Sequence[str]]
) -> tuple[str, list[str]]:
    """Record the project's directory as a tree; also return warnings."""
    user = hidden.user
    top = user.top if user else hidden.project
    prefix = f"{user.prefix}/" if user and user.prefix else ""
    skip = tuple(f"{prefix}{name}" for name in (*left_out, ".mimir"))
    with hidden.index() as index:
        listed = gather_both(_read_tracked_files(user, skip), _link_saved_index(hidden, index))
        found, (tracked, before) = await gather_both(rules, listed)
        outside = lift_rules_to_root(found, prefix.rstrip("/"))
        if edits := _edits(before, tracked.entries):
            await put_entries(hidden, index, edits, tree=top)
        filtered, (nested, refused, earlier) = await gather_both(
            _find_filtered_files(user, tracked),
            _add_all(hidden, top, index, outside, prefix, skip),
        )
        kept = await asyncio.to_thread(_entries_of_git, top, tracked, filtered)
        if kept:
            await put_entries(hidden, index, {one.path: one for one in kept}, tree=top)
        tree = await _write_project_tree(hidden, index, prefix)
        await asyncio.to_thread(_save_index, hidden, index)
    return tree, _warnings(top, prefix, tracked, filtered, nested, refused, earlier)


def _saved_index(hidden: HiddenRepository) -> Path:
    return hidden.engine_dir / "base.index"


def _save_index(hidden: HiddenRepository, index: Path) -> None:
    # Only the time that the next base takes depends on the saved index.
    with contextlib.suppress(OSError):
        index.replace(_saved_index(hidden))


async def _link_saved_index(hidden: HiddenRepository, index: Path) -> Mapping[str, TreeEntry]:
    """Return the entries of the saved index, linked to a path; none if it cannot be read."""
    # A link, not a copy: by the age of the file git knows which entries are too young to trust.
    # Git replaces index files and never writes into one.
    try:
        await asyncio.to_thread(os.link, _saved_index(hidden), index)
        ended = await hidden.git.run("ls-files", "-z", "-s", "-t", index=index)
    except (OSError, WorkspaceError):
        await asyncio.to_thread(index.unlink, missing_ok=True)
        return {}
    return {entry.path: entry for _, stage, entry in _parse_index_lines(ended) if stage == "0"}


def _edits(
    before: Mapping[str, TreeEntry], tracked: Sequence[TreeEntry]
) -> Mapping[str, TreeEntry | None]:
    # Entries that stay equal keep the file times that git has for them.
    wanted = {one.path: one for one in tracked}
    gone = dict.fromkeys(path for path in before if path not in wanted)
    return gone | {path: one for path, one in wanted.items() if before.get(path) != one}


async def _read_tracked_files(user: UserRepository | None, skip: Sequence[str]) -> _TrackedFiles:
    if user is None:
        return _TrackedFiles()
    ended = await user.git.run(
        *("ls-files", "-z", "-s", "-t", "--", user.prefix or "."), tree=user.top, literal=True
    )
    entries: list[TreeEntry] = []
    absent: set[str] = set()
    unmerged: set[str] = set()
    for tag, stage, entry in _parse_index_lines(ended):
        if _is_below(entry.path, skip):
            continue
        if stage != "0":
            unmerged.add(entry.path)
            continue
        if tag == "S":
            absent.add(entry.path)
        entries.append(entry)
    return _TrackedFiles(
        entries=tuple(entries), absent=frozenset(absent), unmerged=frozenset(unmerged)
    )


def _parse_index_lines(ended: GitResult) -> Iterator[tuple[str, str, TreeEntry]]:
    """Yield tag, stage and entry of each line of `ls-files -z -s -t`."""
    for line in ended.names:
        facts, path = line.split("\t", 1)
        tag, mode, blob, stage = facts.split(" ")
        yield tag, stage, TreeEntry(mode=mode, blob=blob, path=path)


async def _add_all(
    hidden: HiddenRepository,
    top: Path,
    index: Path,
    rules: Sequence[str],
    prefix: str,
    skip: Sequence[str],
) -> tuple[list[str], list[str], list[str]]:
    """Add all files; return nested repositories, unreadable files, and files hidden earlier."""
    exclude = hidden.scratch("exclude")
    await asyncio.to_thread(write_atomically, exclude, os.fsencode("\n".join(rules) + "\n"))
    # A file named here has the lowest rank, so the user's own rules win.
    git = partial(hidden.git.run, "-c", f"core.excludesFile={exclude}", tree=top, index=index)
    try:
        listed = await git(
            *("ls-files", "-z", "-o", "--exclude-standard", "--", prefix or "."), literal=True
        )
        # Git lists a repository that is no submodule as a directory, and cannot add it.
        nested = [name.rstrip("/") for name in listed.names if name.endswith("/")]
        new = [name.removeprefix(prefix) for name in listed.names if not name.endswith("/")]
        earlier = [f"{prefix}{name}" for name in await find_hidden(hidden, new)]
        arguments = [
            *("add", "-A", "--ignore-errors", "--"),
            f":(top,literal){prefix}" if prefix else ":(top)",
            *(f":(top,exclude,literal){name}" for name in (*skip, *nested, *earlier)),
        ]
        added = await git(*arguments, ok=None)
    finally:
        await asyncio.to_thread(exclude.unlink)
    if added.code not in (0, 1):
        raise failure(arguments, added)
    mark = 'error: open("'
    errors = [line for line in added.err.splitlines() if line.startswith(mark)]
    return nested, [line[len(mark) :].partition('")')[0] for line in errors], earlier


async def _find_filtered_files(
    user: UserRepository | None, tracked: _TrackedFiles
) -> frozenset[str]:
    # The bytes of these files on the disk differ from the stored ones of git (LFS and the like).
    if user is None or not tracked.entries:
        return frozenset()
    ended = await user.git.run(
        *("check-attr", "-z", "--stdin", "filter"),
        tree=user.top,
        stdin=encode(one.path for one in tracked.entries),
    )
    return frozenset(parse_filtered(ended))


def _entries_of_git(top: Path, tracked: _TrackedFiles, filtered: Iterable[str]) -> list[TreeEntry]:
    # Not from the disk: filtered files that are there, and absent ones.
    chosen = frozenset(filtered)
    return [
        one
        for one in tracked.entries
        if one.path in tracked.absent
        or (one.path in chosen and one.mode != SUBMODULE and os.path.lexists(top / one.path))
    ]


async def _write_project_tree(hidden: HiddenRepository, index: Path, prefix: str) -> str:
    if not prefix:
        return await hidden.git.word("write-tree", index=index)
    below = await hidden.git.run("write-tree", f"--prefix={prefix}", index=index, ok=(0, 128))
    if below.code == 0:
        return below.word
    # Git knows no empty directory: without files there is no such prefix.
    return (await hidden.git.run("mktree", stdin=b"")).word


def _warnings(
    top: Path,
    prefix: str,
    tracked: _TrackedFiles,
    filtered: Collection[str],
    nested: Collection[str],
    refused: Collection[str],
    earlier: Collection[str],
) -> list[str]:
    submodules = [one.path for one in tracked.entries if one.mode == SUBMODULE]
    empty = [path for path in submodules if _is_empty(top / path)]
    groups = (
        (
            "Submodules stay unchanged; commands see the files of your checkout",
            [path for path in submodules if path not in empty],
        ),
        (
            "Submodules are empty (fill them with `git submodule update --init`, or name their folders in sandbox.share)",
            empty,
        ),
        ("Files that git stores by a filter (such as LFS) stay as git has them", filtered),
        ("Repositories inside the project are not part of the run", nested),
        (
            "Files that git ignored in an earlier run are not part of the run (to include them, `git add` them)",
            earlier,
        ),
        ("Files that cannot be read are not part of the run", refused),
        ("Files with an unfinished merge are taken as they are on the disk", tracked.unmerged),
    )
    return [f"{text}: {_format_names(names, prefix)}." for text, names in groups if names]


def _is_empty(directory: Path) -> bool:
    try:
        return all(path.name == ".git" for path in directory.iterdir())
    except OSError:
        return True


def _format_names(names: Iterable[str], prefix: str) -> str:
    found = sorted(name.removeprefix(prefix) for name in names)
    shown = [name if name.isprintable() else ascii(name) for name in found[:_MAX_NAMES]]
    more = f" and {len(found) - _MAX_NAMES} more" if len(found) > _MAX_NAMES else ""
    return ", ".join(shown) + more


def _is_below(path: str, tops: Iterable[str]) -> bool:
    return any(path == top or path.startswith(f"{top}/") for top in tops)
