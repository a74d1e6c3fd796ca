"""Ignore rules of a workspace: those of its base tree, never those in the workspace."""

import asyncio
import hashlib
import os

from mimir.workspace.atomic_write import write_atomically
from mimir.workspace.git import user_ignores
from mimir.workspace.git.commits import tree_of
from mimir.workspace.git.discovery import global_rules, read_if_exists
from mimir.workspace.git.hidden_repository import HiddenRepository, IgnoredPaths
from mimir.workspace.git.trees import LINK, SUBMODULE, blobs, entries

_USER_RULES = "user.exclude"
_DEFAULTS = "defaults.exclude"


async def user_rules(hidden: HiddenRepository) -> list[str]:
    """Return the rules from outside the tree: the engine's, the global and the repository's."""
    outside = hidden.user.ignore_rules() if hidden.user else []
    return [*user_ignores.DEFAULTS, *await global_rules(hidden.home, hidden.git.program), *outside]


async def pin_user_rules(hidden: HiddenRepository) -> list[str]:
    """Store and return the rules from outside the tree when a run starts."""
    found = await user_rules(hidden)
    await pin_rules(hidden, "\n".join(found) + "\n")
    return found


async def pin_rules(hidden: HiddenRepository, text: str) -> None:
    """Store rules from outside the tree, one a line."""
    await asyncio.to_thread(
        write_atomically, hidden.engine_dir / "rules" / _USER_RULES, os.fsencode(text)
    )
    hidden.known_rules.clear()


async def pinned_rules(hidden: HiddenRepository) -> str:
    """Return the stored rules; empty: there are none."""
    found = await asyncio.to_thread(read_if_exists, hidden.engine_dir / "rules" / _USER_RULES)
    return os.fsdecode(found or b"")


async def ignored_paths(hidden: HiddenRepository, base: str) -> IgnoredPaths:
    """Return the ignored paths of a workspace on `base`, a commit or tree."""
    known = hidden.known_rules.get(base)
    if known is None:
        known = hidden.known_rules[base] = await _load_ignored_paths(hidden, base)
    return known


async def _load_ignored_paths(hidden: HiddenRepository, base: str) -> IgnoredPaths:
    tree = await tree_of(hidden, base)
    room = hidden.engine_dir / "rules"
    pinned = await asyncio.to_thread(read_if_exists, room / _USER_RULES)
    if pinned is None:
        await pin_user_rules(hidden)
        pinned = await asyncio.to_thread(read_if_exists, room / _USER_RULES)
    persons = pinned or b""
    file = room / f"{tree}-{hashlib.sha256(persons).hexdigest()[:12]}.exclude"
    submodules = file.with_suffix(".submodules")
    known = await asyncio.to_thread(read_if_exists, submodules)
    if known is None or await asyncio.to_thread(read_if_exists, file) is None:
        own, known = await _of_tree(hidden, tree)
        await asyncio.to_thread(write_atomically, file, persons + own)
        await asyncio.to_thread(write_atomically, submodules, known)
    defaults = room / _DEFAULTS
    await asyncio.to_thread(
        write_atomically, defaults, ("\n".join(user_ignores.DEFAULTS) + "\n").encode()
    )
    return IgnoredPaths(
        file=file,
        defaults=defaults,
        submodules=frozenset(os.fsdecode(path) for path in known.split(b"\0") if path),
    )


async def _of_tree(hidden: HiddenRepository, tree: str) -> tuple[bytes, bytes]:
    """Return the rules of a tree's `.gitignore` files, and its submodules separated by NUL."""
    found = await entries(hidden, tree)
    files = [
        one for one in found if one.path.rpartition("/")[2] == ".gitignore" and one.mode != LINK
    ]
    texts = await blobs(hidden, (one.blob for one in files))
    flat = user_ignores.flatten_rules(
        (one.path.rpartition("/")[0], os.fsdecode(texts[one.blob]))
        for one in files
        if one.blob in texts
    )
    submodules = [one.path for one in found if one.mode == SUBMODULE]
    return os.fsencode("\n".join(flat) + "\n"), os.fsencode("\0".join(submodules))
