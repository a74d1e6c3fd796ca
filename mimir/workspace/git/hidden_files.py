"""Hidden files: ignored files of the user's project, also by links and changed rules.

A file that the rules of any earlier base ignored is in no base until the user tracks it or accepts that it is shown.
"""

import asyncio
import hashlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from mimir.workspace.atomic_write import write_atomically
from mimir.workspace.git.discovery import read_if_exists
from mimir.workspace.git.hidden_repository import HiddenRepository, IgnoredPaths
from mimir.workspace.git.ignore_rules import ignored_paths
from mimir.workspace.git.trees import LINK, blobs, entries
from mimir.workspace.git.user_ignores import TOOL_FOLDERS
from mimir.workspace.sandbox.secret_names import may_be_secret

_PREFIX = "base-"
_SHOWN = "shown"
_MOST_STEPS = 40


async def remember_rules(hidden: HiddenRepository, tree: str) -> None:
    """Store the ignore rules of a run's base for all later bases."""
    file = (await ignored_paths(hidden, tree)).file
    await asyncio.to_thread(_store_rules, hidden.engine_dir / "rules", file)


def _store_rules(room: Path, file: Path) -> None:
    rules = file.read_bytes()
    stored = room / f"{_PREFIX}{hashlib.sha256(rules).hexdigest()[:16]}.exclude"
    if not stored.exists():
        write_atomically(stored, rules)


async def find_hidden(hidden: HiddenRepository, paths: Sequence[str]) -> frozenset[str]:
    """Return those of the user's untracked files that an earlier base ignored."""
    room = hidden.engine_dir / "rules"
    earlier = await asyncio.to_thread(lambda: sorted(room.glob(f"{_PREFIX}*.exclude")))
    found: set[str] = set()
    for rules in earlier if paths else ():
        found |= await _match_rules(hidden, rules, paths)
    return frozenset(found - await asyncio.to_thread(_read_shown, room))


async def show_files(hidden: HiddenRepository, paths: Iterable[str]) -> None:
    """Record that the user accepts these files in later bases."""
    room = hidden.engine_dir / "rules"
    shown = await asyncio.to_thread(_read_shown, room) | set(paths)
    text = b"\0".join(os.fsencode(path) for path in sorted(shown))
    await asyncio.to_thread(write_atomically, room / _SHOWN, text)


def _read_shown(room: Path) -> set[str]:
    text = read_if_exists(room / _SHOWN) or b""
    return {os.fsdecode(path) for path in text.split(b"\0") if path}


async def _match_rules(hidden: HiddenRepository, rules: Path, paths: Sequence[str]) -> set[str]:
    """Return the paths that a file of ignore rules ignores, whether they exist or not."""
    # In an empty work tree no `.gitignore` file counts.
    empty = hidden.scratch("empty")
    await asyncio.to_thread(empty.mkdir, parents=True)
    try:
        ended = await hidden.git.run(
            *("-c", f"core.excludesFile={rules}", "check-ignore", "--no-index", "-z", "--stdin"),
            tree=empty,
            stdin=b"".join(os.fsencode(path) + b"\0" for path in paths),
            ok=(0, 1),
        )
    finally:
        await asyncio.to_thread(empty.rmdir)
    return set(ended.names)


async def find_unignored(hidden: HiddenRepository, base: str, tree: str) -> tuple[str, ...]:
    """Return existing files of the user that `base` ignores and `tree` does not.

    A directory that was ignored as a whole ends with `/`.
    """
    before, after = await ignored_paths(hidden, base), await ignored_paths(hidden, tree)
    if await asyncio.to_thread(lambda: before.file.read_bytes() == after.file.read_bytes()):
        return ()
    was = await _list_ignored(hidden, before, base, ".")
    now = await _list_ignored(hidden, after, base, ".")
    still = tuple(path for path in now if path.endswith("/"))
    return tuple(path for path in was if path not in now and not path.startswith(still))


async def _list_ignored(
    hidden: HiddenRepository, ignored: IgnoredPaths, base: str, below: str
) -> dict[str, None]:
    """Return the existing ignored paths of the user's project that `base` does not have."""
    with hidden.index() as index:
        # Git descends only into directories of the index.
        await hidden.git.run("read-tree", base, index=index)
        listed = await hidden.git.run(
            *("ls-files", "-z", "-o", "-i", "--directory", f"--exclude-from={ignored.file}"),
            *("--", below),
            tree=hidden.project,
            index=index,
            literal=True,
        )
    names = (name for name in listed.names if not name.startswith(".mimir/"))
    return dict.fromkeys(names)


async def find_hidden_links(
    hidden: HiddenRepository, base: str, tree: str, among: Sequence[str], tops: Collection[str]
) -> tuple[str, ...]:
    """Return the links (of `among`) that lead to an ignored path, below `tops`, or out.

    A directory counts if an ignored file is in it, other than those of tools and builds.
    """
    listed = await entries(hidden, tree)
    found = [one for one in listed if one.mode == LINK]
    texts = await blobs(hidden, (one.blob for one in found))
    targets = {one.path: os.fsdecode(texts[one.blob]) for one in found}
    ends = {path: resolve_link(path, targets) for path in among if path in targets}
    bad = {path for path, end in ends.items() if end is None or _is_own(end, tops)}
    ignored = await ignored_paths(hidden, base)
    files = {one.path for one in listed}
    folders = {folder for path in files for folder in _parents(path)}
    others = {path: end for path, end in ends.items() if end and path not in bad}
    unknown = sorted({end for end in others.values() if end not in files | folders})
    # A rule such as `build/` names directories only.
    asked = [name for end in unknown for name in (end, f"{end}/x")]
    hit = await _match_rules(hidden, ignored.file, asked) if asked else set[str]()
    for path, end in others.items():
        if end in hit or f"{end}/x" in hit:
            bad.add(path)
        elif end in folders:
            inside = await _list_ignored(hidden, ignored, base, end)
            if any(map(_is_private, inside)):
                bad.add(path)
    return tuple(path for path in among if path in bad)


def resolve_link(path: str, targets: Mapping[str, str]) -> str | None:
    """Return where a link leads, by the links of its tree; None: out, or nowhere."""
    here: list[str] = path.split("/")[:-1]
    waiting = targets[path].split("/")[::-1]
    if targets[path].startswith("/"):
        return None
    steps = 0
    while waiting:
        part = waiting.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if not here:
                return None
            here.pop()
            continue
        here.append(part)
        target = targets.get("/".join(here))
        if target is None:
            continue
        steps += 1
        if target.startswith("/") or steps > _MOST_STEPS:
            return None
        here.pop()
        waiting += target.split("/")[::-1]
    return "/".join(here)


def _is_own(end: str, tops: Collection[str]) -> bool:
    # The top of the project contains the engine's folders too.
    parts = end.split("/")
    return not end or parts[0].casefold() in tops or ".git" in map(str.casefold, parts)


def _is_private(name: str) -> bool:
    """Return whether an ignored file or directory is not one of tools and builds."""
    parts = name.rstrip("/").split("/")
    if any(part in TOOL_FOLDERS for part in parts):
        return False
    return may_be_secret(parts[-1]) or not name.endswith(("/", ".pyc", ".pyo", ".log"))


def _parents(path: str) -> Iterable[str]:
    return (path[:at] for at, sign in enumerate(path) if sign == "/")
