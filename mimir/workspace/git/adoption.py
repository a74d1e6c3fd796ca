"""How a directory comes to serve a run that another directory began: it fetches the run's base, and proves that it is the same project.

The proof: the two have a commit in common; or, where one of them has no commits, the very same files.
"""

import asyncio
import hashlib
import os
from pathlib import Path

from mimir.workspace.atomic_write import write_atomically
from mimir.workspace.git import base_capture, user_refs
from mimir.workspace.git.commits import tree_of
from mimir.workspace.git.hidden_repository import HiddenRepository
from mimir.workspace.git.ignore_rules import persons_rules, pin_rules


async def lineage(hidden: HiddenRepository) -> str:
    """Return what all clones of a project's repository have in common, and no other repository: its first commits, and where the project lies.

    Empty: there is no commit, or the first ones are not here (a shallow clone).
    """
    person = hidden.person
    if person is None or person.shallow() is not None or await person.head() is None:
        return ""
    roots = await person.git.run("rev-list", "--max-parents=0", "HEAD")
    text = "\n".join([*sorted(roots.word.split()), person.prefix])
    return hashlib.sha256(os.fsencode(text)).hexdigest()


async def is_pinned(hidden: HiddenRepository, run: str, commit: str) -> bool:
    """Say whether this directory began a run with this base, or was admitted to it."""
    if hidden.pins.get(_pin(run)) == commit:
        return True
    ended = await hidden.git.run("rev-parse", "-q", "--verify", _pin(run), ok=None)
    return ended.code == 0 and ended.word == commit


async def is_related(hidden: HiddenRepository, commit: str, left_out: tuple[str, ...]) -> bool:
    """Say whether the directory is of the project that a base, which is here, was taken from."""
    head = await hidden.person.head() if hidden.person else None
    if head is not None:
        common = await hidden.git.run("merge-base", head, commit, ok=None)
        if common.code == 0:
            return True
    return await _tree_now(hidden, left_out) == await tree_of(hidden, commit)


async def adopt(
    hidden: HiddenRepository,
    run: str,
    commit: str,
    *,
    head: str | None,
    left_out: tuple[str, ...],
    rules: str,
) -> None:
    """Make the directory ready to serve a run whose base is here.

    Args:
        hidden: Its repository.
        run: Id.
        commit: The base.
        head: The person's commit where the run was begun.
        left_out: What the base left out.
        rules: What is ignored beside the tree's own rules, as it was where the run was begun.
    """
    await base_capture.remember_base(hidden, commit, head, left_out)
    await pin_rules(hidden, rules)
    await asyncio.to_thread(write_atomically, _mark(hidden, run), b"")
    await user_refs.pin(hidden, _pin(run), commit)


def is_away(hidden: HiddenRepository, run: str) -> bool:
    """Say whether this directory serves a run that another one began."""
    return _mark(hidden, run).exists()


def _mark(hidden: HiddenRepository, run: str) -> Path:
    return hidden.room / "bases" / f"{user_refs.ref_part(run)}.away"


def _pin(run: str) -> str:
    return f"refs/mimir/base/{user_refs.ref_part(run)}"


async def _tree_now(hidden: HiddenRepository, left_out: tuple[str, ...]) -> str:
    tree, _ = await base_capture.tree_of_project(hidden, left_out, persons_rules(hidden))
    return tree
