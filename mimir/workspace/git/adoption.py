"""Adoption of a run that another directory started: proof of one project, pinned base."""

import asyncio
import hashlib
import os
from pathlib import Path

from mimir.workspace.atomic_write import write_atomically
from mimir.workspace.git import base_capture, user_refs
from mimir.workspace.git.commits import tree_of
from mimir.workspace.git.hidden_repository import HiddenRepository
from mimir.workspace.git.ignore_rules import pin_rules, user_rules


async def lineage(hidden: HiddenRepository) -> str:
    """Return a hash that all clones of a project share; empty if it cannot be known."""
    user = hidden.user
    if user is None or user.shallow() is not None or await user.head() is None:
        return ""
    roots = await user.git.run("rev-list", "--max-parents=0", "HEAD")
    text = "\n".join([*sorted(roots.word.split()), user.prefix])
    return hashlib.sha256(os.fsencode(text)).hexdigest()


async def is_pinned(hidden: HiddenRepository, run: str, commit: str) -> bool:
    """Return whether this directory started or adopted a run with this base."""
    if hidden.pins.get(_pin(run)) == commit:
        return True
    ended = await hidden.git.run("rev-parse", "-q", "--verify", _pin(run), ok=None)
    return ended.code == 0 and ended.word == commit


async def is_related(hidden: HiddenRepository, commit: str, left_out: tuple[str, ...]) -> bool:
    """Return whether this directory is of the project of an available base.

    That is so if the two share a commit or, without commits, have equal files.
    """
    head = await hidden.user.head() if hidden.user else None
    if head is not None:
        common = await hidden.git.run("merge-base", head, commit, ok=None)
        if common.code == 0:
            return True
    rules = user_rules(hidden)
    tree, _ = await base_capture.tree_of_project(hidden, left_out, rules)
    return tree == await tree_of(hidden, commit)


async def adopt(
    hidden: HiddenRepository,
    run: str,
    commit: str,
    *,
    head: str | None,
    left_out: tuple[str, ...],
    rules: str,
) -> None:
    """Pin a base that is already here, with the ignore rules and head of the other directory."""
    await base_capture.remember_base(hidden, commit, head, left_out)
    await pin_rules(hidden, rules)
    await asyncio.to_thread(write_atomically, _mark(hidden, run), b"")
    await user_refs.pin_commit(hidden, _pin(run), commit)


def is_away(hidden: HiddenRepository, run: str) -> bool:
    """Return whether another directory started the run."""
    return _mark(hidden, run).exists()


def _mark(hidden: HiddenRepository, run: str) -> Path:
    return hidden.engine_dir / "bases" / f"{user_refs.ref_part(run)}.away"


def _pin(run: str) -> str:
    return f"refs/mimir/base/{user_refs.ref_part(run)}"
