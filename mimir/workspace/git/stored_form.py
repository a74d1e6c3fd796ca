"""Files in the form that the user's git stores: line ends, encoding and `$Id$`.

The engine keeps the bytes of the user's directory. Git stores other bytes for files with attributes such as `text`, `ident` and
`working-tree-encoding`, or with `core.autocrlf`. A commit in the user's repository has the stored form; otherwise it changes whole files.
"""

import asyncio
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from mimir.workspace.git.discovery import UserRepository, read_setting
from mimir.workspace.git.filtered_files import encode
from mimir.workspace.git.git_command import GitCommand
from mimir.workspace.git.hidden_repository import HiddenRepository
from mimir.workspace.git.trees import TreeEntry, blobs, put_entries
from mimir.workspace.tree_removal import remove_tree

_ATTRIBUTES = ("text", "eol", "crlf", "ident", "working-tree-encoding")
_SETTINGS = ("core.autocrlf", "core.eol")
_FILE_MODES = frozenset(("100644", "100755"))
_ATTRIBUTES_FILE = ".gitattributes"


async def convert_to_stored(
    hidden: HiddenRepository,
    user: UserRepository,
    head: str | None,
    files: Sequence[TreeEntry],
    known: Sequence[TreeEntry],
) -> list[TreeEntry]:
    """Return `files` as the user's git would store them; paths are those of its repository.

    `known` are the entries of `head`: a file with one of them needs no conversion. A file that git cannot convert keeps its bytes.
    """
    files = await _keep_modes(hidden, user, files, known)
    same = {(one.path, one.blob) for one in known}
    candidates = [
        one for one in files if one.mode in _FILE_MODES and (one.path, one.blob) not in same
    ]
    # Those outside of the project apply too.
    both = {one.path: one for one in (*known, *files)}
    rules = [one for path, one in both.items() if path.rpartition("/")[2] == _ATTRIBUTES_FILE]
    settings = await _conversion_settings(hidden, user) if candidates else {}
    has_rules = rules or (user.common / "info/attributes").exists()
    if not candidates or not (has_rules or settings):
        return list(files)
    git = replace(user.git, alternates=(hidden.directory / "objects",))
    where = hidden.scratch("stored")
    with hidden.index() as index:
        await put_entries(hidden, index, {one.path: one for one in rules})
        candidates = await _select_ruled(git, index, candidates, every=bool(settings))
        if not candidates:
            return list(files)
        wanted = {one.path: one for one in (*rules, *candidates)}
        try:
            content = await blobs(hidden, (one.blob for one in wanted.values()))
            await asyncio.to_thread(_write_files, where, wanted.values(), content)
            # A file whose stored form has CRLF keeps it under `core.autocrlf`: git looks at the index.
            await git.run("read-tree", head or "--empty", index=index)
            added = await git.run(
                *("add", "--force", "--ignore-errors", "--pathspec-from-file=-"),
                "--pathspec-file-nul",
                tree=where,
                index=index,
                stdin=encode(one.path for one in candidates),
                literal=True,
                ok=None,
                extra=git.with_settings(settings),
            )
            listed = await git.run("ls-files", "--stage", "-z", index=index)
        finally:
            await asyncio.to_thread(remove_tree, where)
    stored = dict(_parse_entry(line) for line in listed.out.split(b"\0") if line)
    # A file that git could not add still has its entry of `head` there, which is not the work.
    converted = {
        path: id
        for path in (one.path for one in candidates)
        if (id := stored.get(path)) and (added.code == 0 or (path, id) not in same)
    }
    return [replace(one, blob=converted.get(one.path, one.blob)) for one in files]


async def _keep_modes(
    hidden: HiddenRepository,
    user: UserRepository,
    files: Sequence[TreeEntry],
    known: Sequence[TreeEntry],
) -> Sequence[TreeEntry]:
    """Return `files` with the modes of `known`, if the file system of the user holds none."""
    if await read_setting(user.git, hidden.home, "core.fileMode") != "false":
        return files
    modes = {one.path: one.mode for one in known if one.mode in _FILE_MODES}
    return [
        replace(one, mode=modes.get(one.path, "100644")) if one.mode in _FILE_MODES else one
        for one in files
    ]


async def _select_ruled(
    git: GitCommand, index: Path, files: Sequence[TreeEntry], *, every: bool
) -> list[TreeEntry]:
    """Return the files with a converting attribute, or every file; none with a filter."""
    asked = ("check-attr", "--cached", "-z", "--stdin", *_ATTRIBUTES, "filter")
    paths = encode(one.path for one in files)
    words = (await git.run(*asked, index=index, stdin=paths)).out.split(b"\0")
    ruled: set[str] = set()
    filtered: set[str] = set()
    for path, name, value in zip(words[0::3], words[1::3], words[2::3], strict=False):
        if value != b"unspecified":
            (filtered if name == b"filter" else ruled).add(os.fsdecode(path))
    # A filter is a program of the user: none is run.
    return [one for one in files if one.path not in filtered and (every or one.path in ruled)]


async def _conversion_settings(hidden: HiddenRepository, user: UserRepository) -> dict[str, str]:
    found = {name: await read_setting(user.git, hidden.home, name) for name in _SETTINGS}
    return {name: value for name, value in found.items() if value not in ("", "false", "native")}


def _write_files(where: Path, files: Iterable[TreeEntry], content: dict[str, bytes]) -> None:
    for one in files:
        if one.blob not in content:  # a partial clone lacks it
            continue
        path = where / one.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content[one.blob])


def _parse_entry(line: bytes) -> tuple[str, str]:
    facts, _, path = line.partition(b"\t")
    return os.fsdecode(path), facts.split(b" ")[1].decode()
