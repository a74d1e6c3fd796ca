"""Snapshot of a workspace as a tree, robust against anything a worker leaves there."""

import asyncio
import contextlib
import errno
import filecmp
import os
import re
import stat
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mimir.domain.globs import has_wildcard, is_outside, matches
from mimir.domain.value_class import value_class
from mimir.workspace.git.checkout import refresh
from mimir.workspace.git.git_command import GitResult
from mimir.workspace.git.hidden_repository import HiddenRepository, IgnoredPaths
from mimir.workspace.git.ignore_rules import ignored_paths
from mimir.workspace.git.trees import leads_out
from mimir.workspace.git.user_ignores import TOOL_FOLDERS
from mimir.workspace.safe_walk import workspace_error
from mimir.workspace.tree_removal import remove_tree

MAX_PATH_BYTES = 1024
"""A longer path is left out: not every file system and tool could hold it."""
# The user's git refuses these names in every directory.
_REFUSED_NAME = re.compile(r"(?:\.git|git~1)[ .]*(?:[:\\].*)?", re.IGNORECASE | re.DOTALL)
# Git cuts long warnings.
_UNREADABLE = re.compile(r"^warning: could not open directory '(.*?)(?:/?': .*)?$", re.MULTILINE)
_SHOWN_NAME = 200


_Git = Callable[..., Awaitable[GitResult]]


@value_class
class WorkspaceSnapshot:
    """The content of a workspace."""

    tree: str
    nested: tuple[str, ...] = ()
    """Directories whose `.git` was removed; "." is the workspace itself."""
    refused: tuple[str, ...] = ()
    """Changed links that lead out of the workspace; in the tree, but not deliverable."""
    special: tuple[str, ...] = ()
    """Pipes, sockets and devices; too long paths, names that git refuses; not in the tree."""


@value_class
class _WorkTreeListing:
    tracked: frozenset[str]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    untracked: tuple[str, ...]
    nested: tuple[str, ...]
    unreadable: tuple[str, ...]
    """Directories that git cannot open: too deep, or closed."""


async def snapshot(
    hidden: HiddenRepository, where: Path, index: Path, *, files: Sequence[str], base: str
) -> WorkspaceSnapshot:
    """Record a workspace as a tree; no process may work in it.

    `files` are globs of paths that are recorded even if the rules of `base` ignore them.
    """
    ignored = await ignored_paths(hidden, base)
    await asyncio.to_thread(_require, where, index)
    await refresh(hidden, where, index)
    git = partial(hidden.git.run, tree=where, index=index)
    listing, nested = await _list_without_nested(git, where, files, ignored, hidden.project)
    changed = [
        path
        for path in (*listing.changed, *listing.untracked)
        if not ignored.is_fixed(path) and path not in listing.removed
    ]
    behind = await asyncio.to_thread(_behind_links, where, listing.tracked)
    sorted_out = await asyncio.to_thread(
        _classify_paths, where, (p for p in changed if p not in behind)
    )
    no_files = [p for p in (*sorted_out.special, *sorted_out.replaced) if p in listing.tracked]
    removed = [path for path in (*listing.removed, *behind) if not ignored.is_fixed(path)]
    # Whole, without the user's objects: those may be collected.
    alone = partial(hidden.git.without_alternates().run, index=index)
    if gone := (*removed, *no_files):
        # By force: otherwise git cannot remove a path whose directory is a link now.
        force = ("update-index", "--force-remove", "-z", "--stdin")
        await alone(*force, tree=where, stdin=_encode_paths(gone))
    if good := sorted_out.good:
        add = ("update-index", "--add", "--replace", "-z", "--stdin")
        await alone(*add, tree=where, stdin=_encode_paths(good))
    written = await alone("write-tree", "--missing-ok")
    return WorkspaceSnapshot(
        tree=hidden.remember_tree(written.word),
        nested=nested,
        refused=tuple(sorted_out.refused),
        special=tuple(
            dict.fromkeys(
                (
                    *sorted_out.special,
                    *listing.unreadable,
                    *await asyncio.to_thread(_find_special, where),
                )
            )
        ),
    )


async def _list_without_nested(
    git: _Git, where: Path, files: Sequence[str], ignored: IgnoredPaths, project: Path
) -> tuple[_WorkTreeListing, tuple[str, ...]]:
    opened: list[str] = []
    # Each round removes at least one repository, with all of those below it.
    while True:
        listing, wanted = await asyncio.gather(
            _list(git, ignored), _named_though_ignored(git, where, files, ignored, project)
        )
        planted = await asyncio.to_thread(_find_planted_git, where, listing, wanted)
        if not planted:
            more = (p for p in wanted if p not in listing.tracked)
            untracked = tuple(dict.fromkeys((*listing.untracked, *more)))
            return replace(listing, untracked=untracked), tuple(opened)
        for directory in planted:
            await asyncio.to_thread(_remove_git, where, directory)
        opened += planted


def _remove_git(where: Path, directory: str) -> None:
    """Remove the `.git` of a directory, and of all directories below a nested repository."""
    remove_tree(where / directory / ".git")
    # The top contains the user's folders too, such as installed packages.
    if directory == ".":
        return
    for parent, folders, files in os.walk(where / directory):
        if ".git" in folders or ".git" in files:
            remove_tree(Path(parent) / ".git")
            folders[:] = [name for name in folders if name != ".git"]


async def _list(git: _Git, ignored: IgnoredPaths) -> _WorkTreeListing:
    ended = await git(
        *("ls-files", "-z", "-t", "-c", "-o", "-m", "-d", f"--exclude-from={ignored.file}")
    )
    by_tag: dict[str, list[str]] = {"H": [], "C": [], "R": [], "?": []}
    for line in ended.names:
        by_tag.setdefault(line[0], []).append(line[2:])
    return _WorkTreeListing(
        tracked=frozenset(by_tag["H"]),
        changed=tuple(by_tag["C"]),
        removed=tuple(by_tag["R"]),
        untracked=tuple(path for path in by_tag["?"] if not path.endswith("/")),
        nested=tuple(path.rstrip("/") for path in by_tag["?"] if path.endswith("/")),
        unreadable=tuple(name[:_SHOWN_NAME] for name in _UNREADABLE.findall(ended.err)),
    )


async def _named_though_ignored(
    git: _Git, where: Path, files: Sequence[str], ignored: IgnoredPaths, project: Path
) -> list[str]:
    # Wildcards of `files` do not reach caches and environments: the engine's rules exclude them.
    globs = [glob for glob in files if glob and not is_outside(glob)]
    if not globs:
        return []
    wide = await git(
        *("ls-files", "-z", "-o", f"--exclude-from={ignored.defaults}", "--"),
        *(f":(glob){glob}" for glob in globs),
        *(f":(literal){glob}" for glob in globs),
    )
    exact = [glob.removeprefix("./") for glob in globs if not has_wildcard(glob)]
    named = [path for path in wide.names if matches(path, globs)]
    found = await asyncio.to_thread(_without_shared, named, where, project)
    return found + await asyncio.to_thread(_files_among, where, exact)


def _without_shared(paths: Sequence[str], where: Path, project: Path) -> list[str]:
    """Return the paths that are no unchanged copies of the user's files."""

    def is_copy(path: str) -> bool:
        pair = (where / path, project / path)
        is_regular = all(one.is_file() and not one.is_symlink() for one in pair)
        return is_regular and filecmp.cmp(*pair, shallow=False)

    return [path for path in paths if not is_copy(path)]


def _behind_links(where: Path, tracked: Iterable[str]) -> frozenset[str]:
    # Git looks through a directory that is a link now, so it does not list these as removed.
    links: dict[str, bool] = {"": False}

    def is_behind(directory: str) -> bool:
        known = links.get(directory)
        if known is None:
            above = directory.rpartition("/")[0]
            known = links[directory] = is_behind(above) or (where / directory).is_symlink()
        return known

    return frozenset(path for path in tracked if is_behind(path.rpartition("/")[0]))


def _find_planted_git(where: Path, listing: _WorkTreeListing, wanted: Iterable[str]) -> list[str]:
    found = [*listing.nested, *(path.rstrip("/") for path in wanted if path.endswith("/"))]
    around = {
        path.rpartition("/")[0] for paths in (listing.tracked, listing.untracked) for path in paths
    }
    found += [
        directory
        for directory in around
        if directory and os.path.lexists(where / directory / ".git")
    ]
    if _is_planted_at_top(where / ".git"):
        found.append(".")
    return sorted(set(found))


def _is_planted_at_top(path: Path) -> bool:
    # The engine's own `.git` is an empty file, a mount point.
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(status.st_mode) or status.st_size > 0


@dataclass(slots=True)
class _ClassifiedPaths:
    good: list[str]
    refused: list[str]
    special: list[str]
    replaced: list[str]
    """A directory is there now."""


def _classify_paths(where: Path, paths: Iterable[str]) -> _ClassifiedPaths:
    out = _ClassifiedPaths(good=[], refused=[], special=[], replaced=[])
    for path in dict.fromkeys(paths):
        full = where / path
        try:
            status = full.lstat()
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                out.special.append(path)
            continue
        if _is_refused(path, status.st_mode):
            out.special.append(path)
        elif stat.S_ISLNK(status.st_mode):
            # As bytes: a Path makes `./x` equal to `x`.
            if leads_out(path, os.readlink(os.fsencode(full))):  # noqa: PTH115
                out.refused.append(path)
            out.good.append(path)
        elif stat.S_ISREG(status.st_mode):
            if not status.st_mode & stat.S_IRUSR:
                with contextlib.suppress(OSError):
                    full.chmod(stat.S_IMODE(status.st_mode) | stat.S_IRUSR)
            out.good.append(path)
        elif stat.S_ISDIR(status.st_mode):
            out.replaced.append(path)
        else:
            out.special.append(path)
    return out


def _is_refused(path: str, mode: int) -> bool:
    parts = path.split("/")
    return (
        len(os.fsencode(path)) > MAX_PATH_BYTES
        or any(map(_REFUSED_NAME.fullmatch, parts))
        # Git refuses a link of this name.
        or (stat.S_ISLNK(mode) and parts[-1].lower() == ".gitmodules")
    )


def _find_special(where: Path) -> list[str]:
    """Return pipes, sockets and devices, which git does not list."""
    found: list[str] = []
    waiting = [where]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    # A special file in these folders concerns no deliverable.
                    if entry.name not in TOOL_FOLDERS:
                        waiting.append(Path(entry.path))
                elif not entry.is_symlink() and not entry.is_file(follow_symlinks=False):
                    found.append(os.path.relpath(entry.path, where))
    return sorted(found)


def _encode_paths(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _require(where: Path, index: Path) -> None:
    index.with_name(f"{index.name}.lock").unlink(missing_ok=True)
    if not where.is_dir() or not index.exists():
        raise workspace_error(f"The workspace {where} is missing.")


def _files_among(where: Path, paths: Iterable[str]) -> list[str]:
    # Only in real directories: nothing is followed.
    found: list[str] = []
    for path in paths:
        full = where / path
        around = list(Path(path).parents)[:-1]
        if not any((where / parent).is_symlink() for parent in around) and (
            full.is_symlink() or full.is_file()
        ):
            found.append(path)
    return found
