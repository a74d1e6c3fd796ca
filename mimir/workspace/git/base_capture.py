"""The person's directory as it is when a run starts, as a commit; nothing of theirs is moved, stashed or staged.

The rules: an index of our own, seeded with what the person's index tracks (a tracked file stays, ignored or not);
files that a git filter stands for (LFS and the like) and submodules stay what git stores; what is left out is named.
What git has found out about files on the disk is kept for the next run: which files have not changed since, it need not read again.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mimir.errors import WorkspaceError
from mimir.workspace.aio import gather_both
from mimir.workspace.atomic_write import write_atomically
from mimir.workspace.git import user_refs
from mimir.workspace.git.commits import commit, newest, tree_of
from mimir.workspace.git.discovery import UserRepository
from mimir.workspace.git.git_command import GitResult, failure
from mimir.workspace.git.hidden_repository import HiddenRepository
from mimir.workspace.git.ignore_rules import pin_persons_rules
from mimir.workspace.git.trees import SUBMODULE, TreeEntry, put_entries
from mimir.workspace.git.user_ignores import lift_rules_to_root

MESSAGE = "The project as it was when the run started\n"
_NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseCommit:
    """What a run starts from."""

    commit: str
    tree: str
    head: str | None
    """The person's commit that it continues. None: there is none."""
    branch: str | None
    """The person's branch. None: detached, or no repository."""
    warnings: tuple[str, ...]
    """What a person should know of it, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TrackedFiles:
    """What the person's index says."""

    entries: tuple[TreeEntry, ...] = ()
    absent: frozenset[str] = frozenset()
    """Not in the work tree on purpose (sparse checkout)."""
    unmerged: frozenset[str] = frozenset()


async def base(
    hidden: HiddenRepository, run: str, *, left_out: Sequence[str], when: int | None
) -> BaseCommit:
    """Record the project as it is, and keep the person's garbage collection from what the run needs.

    Args:
        hidden: The repository.
        run: Id of the run; names the ref that pins the base.
        left_out: Names at the project's top that are no part of it.
        when: Time of the commit. None: that of the person's commit.

    Raises:
        WorkspaceError: Git refused.
        Paused: The disk is full.
    """
    recorded = tree_of_project(hidden, left_out, pin_persons_rules(hidden))
    (head, branch), (tree, warnings) = await gather_both(_standing(hidden), recorded)
    whole = head if hidden.person and not hidden.person.prefix else None
    if whole is not None and await tree_of(hidden, whole) == tree:
        made = whole
    else:
        time = await newest(hidden, [head] if head else []) if when is None else when
        made = await commit(hidden, tree, [whole] if whole else [], MESSAGE, when=time)
    await remember_base(hidden, made, head, left_out)
    await user_refs.pin(hidden, f"refs/mimir/base/{user_refs.ref_part(run)}", made, head=head)
    return BaseCommit(commit=made, tree=tree, head=head, branch=branch, warnings=tuple(warnings))


async def _standing(hidden: HiddenRepository) -> tuple[str | None, str | None]:
    """Return the person's commit, whose tree is known from here on, and the branch."""
    if hidden.person is None:
        return None, None
    head, branch, tree = await hidden.person.checked_out_commit()
    if head and tree:
        hidden.trees[head] = tree
    return head, branch


async def remember_base(
    hidden: HiddenRepository, made: str, head: str | None, left_out: Sequence[str]
) -> None:
    """Write down what has to be put back when the result goes into the person's repository."""
    text = json.dumps({"head": head, "left_out": list(left_out)})
    await asyncio.to_thread(write_atomically, hidden.room / "bases" / f"{made}.json", text.encode())


async def tree_of_project(
    hidden: HiddenRepository, left_out: Sequence[str], rules: Awaitable[Sequence[str]]
) -> tuple[str, list[str]]:
    """Record the project's directory as a tree; also return warnings.

    What does not follow from each other is asked side by side: most of it is git's starting.
    """
    person = hidden.person
    top = person.top if person else hidden.project
    prefix = f"{person.prefix}/" if person and person.prefix else ""
    skip = tuple(f"{prefix}{name}" for name in (*left_out, ".mimir"))
    with hidden.index() as index:
        listed = gather_both(_tracked(person, skip), _last_time(hidden, index))
        found, (tracked, before) = await gather_both(rules, listed)
        outside = lift_rules_to_root(found, prefix.rstrip("/"))
        if edits := _edits(before, tracked.entries):
            await put_entries(hidden, index, edits, tree=top)
        filtered, (nested, refused) = await gather_both(
            _filtered(person, tracked), _add_all(hidden, top, index, outside, prefix, skip)
        )
        kept = await asyncio.to_thread(_as_git_has_them, top, tracked, filtered)
        if kept:
            await put_entries(hidden, index, {one.path: one for one in kept}, tree=top)
        tree = await _written(hidden, index, prefix)
        await asyncio.to_thread(_keep, hidden, index)
    return tree, _warnings(prefix, tracked, filtered, nested, refused)


def _kept(hidden: HiddenRepository) -> Path:
    """Return where the index of the last base is."""
    return hidden.room / "base.index"


def _keep(hidden: HiddenRepository, index: Path) -> None:
    """Keep an index for the next base; nothing rests on it but how long that takes."""
    with contextlib.suppress(OSError):
        index.replace(_kept(hidden))


async def _last_time(hidden: HiddenRepository, index: Path) -> Mapping[str, TreeEntry]:
    """Make an index the one of the last base, and return what is in it; nothing where there is none that can be read.

    It is linked, not copied: by the file's age git knows which entries are too young to be trusted. Git never writes into an index file.
    """
    try:
        await asyncio.to_thread(os.link, _kept(hidden), index)
        ended = await hidden.git.run("ls-files", "-z", "-s", "-t", index=index)
    except (OSError, WorkspaceError):
        await asyncio.to_thread(index.unlink, missing_ok=True)
        return {}
    return {entry.path: entry for _, stage, entry in _lines(ended) if stage == "0"}


def _edits(
    before: Mapping[str, TreeEntry], tracked: Sequence[TreeEntry]
) -> Mapping[str, TreeEntry | None]:
    """Say what makes an index one of these entries; those that were there to the letter keep what git knows of their files."""
    wanted = {one.path: one for one in tracked}
    gone = dict.fromkeys(path for path in before if path not in wanted)
    return gone | {path: one for path, one in wanted.items() if before.get(path) != one}


async def _tracked(person: UserRepository | None, skip: Sequence[str]) -> _TrackedFiles:
    """Read the person's index without touching it."""
    if person is None:
        return _TrackedFiles()
    ended = await person.git.run(
        *("ls-files", "-z", "-s", "-t", "--", person.prefix or "."), tree=person.top, literal=True
    )
    entries: list[TreeEntry] = []
    absent: set[str] = set()
    unmerged: set[str] = set()
    for tag, stage, entry in _lines(ended):
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


def _lines(ended: GitResult) -> Iterator[tuple[str, str, TreeEntry]]:
    """Read what `ls-files -z -s -t` said: tag, stage, entry."""
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
) -> tuple[tuple[str, ...], list[str]]:
    """Bring the index up to what is on the disk; return repositories inside, and what could not be read."""
    exclude = hidden.scratch("exclude")
    await asyncio.to_thread(write_atomically, exclude, os.fsencode("\n".join(rules) + "\n"))
    try:
        nested = await _nested(hidden, top, index, exclude, prefix)
        return nested, await _add(hidden, top, index, exclude, prefix, (*skip, *nested))
    finally:
        await asyncio.to_thread(exclude.unlink)


async def _nested(
    hidden: HiddenRepository, top: Path, index: Path, exclude: Path, prefix: str
) -> tuple[str, ...]:
    """Name repositories inside the project that are no submodules; git cannot take them in."""
    ended = await hidden.git.run(
        *_excluding(exclude),
        *("ls-files", "-z", "-o", "--exclude-standard", "--", prefix or "."),
        tree=top,
        index=index,
        literal=True,
    )
    return tuple(name.rstrip("/") for name in ended.names if name.endswith("/"))


async def _add(
    hidden: HiddenRepository,
    top: Path,
    index: Path,
    exclude: Path,
    prefix: str,
    skip: Iterable[str],
) -> list[str]:
    """Add what is on the disk, and take out what is not; return what could not be read."""
    arguments = [
        *_excluding(exclude),
        *("add", "-A", "--ignore-errors", "--"),
        f":(top,literal){prefix}" if prefix else ":(top)",
        *(f":(top,exclude,literal){name}" for name in skip),
    ]
    ended = await hidden.git.run(*arguments, tree=top, index=index, ok=None)
    if ended.code not in (0, 1):
        raise failure(arguments, ended)
    return _refused(ended)


def _refused(ended: GitResult) -> list[str]:
    """Read which files git could not open from what it said."""
    mark = 'error: open("'
    return [
        line[len(mark) :].partition('")')[0]
        for line in ended.err.splitlines()
        if line.startswith(mark)
    ]


async def _filtered(person: UserRepository | None, tracked: _TrackedFiles) -> frozenset[str]:
    """Name tracked files that a filter changes on their way to the disk: their bytes there are not what git stores."""
    if person is None or not tracked.entries:
        return frozenset()
    ended = await person.git.run(
        *("check-attr", "-z", "--stdin", "filter"),
        tree=person.top,
        stdin=b"".join(os.fsencode(one.path) + b"\0" for one in tracked.entries),
    )
    words = ended.out.split(b"\0")
    return frozenset(
        os.fsdecode(path)
        for path, value in zip(words[0::3], words[2::3], strict=False)
        if value not in (b"unspecified", b"unset")
    )


def _as_git_has_them(top: Path, tracked: _TrackedFiles, filtered: Iterable[str]) -> list[TreeEntry]:
    """Return the entries that are not to be taken from the disk: filtered files that are there, and absent ones."""
    chosen = frozenset(filtered)
    return [
        one
        for one in tracked.entries
        if one.path in tracked.absent
        or (one.path in chosen and one.mode != SUBMODULE and os.path.lexists(top / one.path))
    ]


async def _written(hidden: HiddenRepository, index: Path, prefix: str) -> str:
    if not prefix:
        return await hidden.git.word("write-tree", index=index)
    below = await hidden.git.run("write-tree", f"--prefix={prefix}", index=index, ok=(0, 128))
    # Git knows no empty directory, so there is no such prefix then.
    return below.word if below.code == 0 else await _empty(hidden)


async def _empty(hidden: HiddenRepository) -> str:
    return (await hidden.git.run("mktree", stdin=b"")).word


def _warnings(
    prefix: str,
    tracked: _TrackedFiles,
    filtered: Iterable[str],
    nested: Iterable[str],
    refused: Iterable[str],
) -> list[str]:
    submodules = [one.path for one in tracked.entries if one.mode == SUBMODULE]
    said = (
        ("Submodules stay as they are, and are empty in workspaces", submodules),
        ("Files that git stores by a filter (such as LFS) stay as git has them", filtered),
        ("Repositories inside the project are no part of the run", nested),
        ("Files that cannot be read are no part of the run", refused),
        ("Files with an unfinished merge are taken as they are on the disk", tracked.unmerged),
    )
    return [f"{text}: {_named(names, prefix)}." for text, names in said if any(True for _ in names)]


def _named(names: Iterable[str], prefix: str) -> str:
    found = sorted(name.removeprefix(prefix) for name in names)
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return (
        ", ".join(ascii(name) if not name.isprintable() else name for name in found[:_NAMED]) + more
    )


def _is_below(path: str, tops: Iterable[str]) -> bool:
    return any(path == top or path.startswith(f"{top}/") for top in tops)


def _excluding(file: Path) -> tuple[str, str]:
    """Name an ignore file of the lowest rank, so that a person's own rules beat it."""
    return "-c", f"core.excludesFile={file}"
