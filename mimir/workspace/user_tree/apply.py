"""Application of a result to the user's directory: all of it, or nothing.

A file that the user changed since the plan was made stops everything before the first change. The
steps are journaled first, so that the next command can finish or undo them.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from mimir.domain.value_class import value_class
from mimir.errors import MimirError, ToolError
from mimir.workspace.git.history import GitHistory
from mimir.workspace.git.trees import TreeChange, TreeEntry
from mimir.workspace.user_tree import user_file
from mimir.workspace.user_tree.user_file import FileChange, UserFileConflict


@value_class
class ApplyPlan:
    """The steps of an application."""

    steps: tuple[FileChange, ...]
    conflicts: tuple[UserFileConflict, ...]
    """Reason of its refusal; empty: it is permitted."""


# Stores the steps for the next process; called once, before the first change.
Journal = Callable[[Sequence[FileChange]], Awaitable[None]]


async def plan(changes: Iterable[TreeChange], project: Path) -> ApplyPlan:
    """Compare the user's directory with the base, given the changes from base to result."""
    steps = user_file.steps_of(changes)
    return ApplyPlan(
        steps=steps, conflicts=await asyncio.to_thread(user_file.conflicts, steps, project)
    )


async def apply(
    history: GitHistory, planned: ApplyPlan, project: Path, *, journal: Journal
) -> tuple[UserFileConflict, ...]:
    """Carry out a plan and return the conflicts; with any, the files stay unchanged.

    After a crash `finish` or `undo` with the journaled steps repairs it. A missing object is an
    error before the first change. On a full disk (Paused) the changes are undone.
    """
    # Checked again: the user may have changed files since the plan.
    conflicts = planned.conflicts or await asyncio.to_thread(
        user_file.conflicts, planned.steps, project
    )
    if conflicts:
        return conflicts
    contents = await _contents(history, planned.steps)
    await journal(planned.steps)
    try:
        conflicts = await _apply_steps(planned.steps, project, contents)
    except BaseException:
        # If this fails too, the next command has the journal.
        with contextlib.suppress(MimirError, OSError):
            await asyncio.shield(undo(history, planned.steps, project))
        raise
    if conflicts:
        await undo(history, planned.steps, project)
    return conflicts


async def finish(
    history: GitHistory, steps: Sequence[FileChange], project: Path
) -> tuple[UserFileConflict, ...]:
    """Do the rest of journaled steps, repeatably; with conflicts nothing is done."""
    conflicts = await asyncio.to_thread(user_file.conflicts, steps, project)
    if conflicts:
        return conflicts
    return await _apply_steps(steps, project, await _contents(history, steps))


async def undo(
    history: GitHistory, steps: Sequence[FileChange], project: Path
) -> tuple[UserFileConflict, ...]:
    """Undo journaled steps, repeatably; files that the user changed are left and returned."""
    back = [FileChange(path=one.path, old=one.new, new=one.old) for one in steps]
    conflicts = await asyncio.to_thread(user_file.conflicts, back, project)
    in_the_way = {one.path for one in conflicts}
    rest = [one for one in back if one.path not in in_the_way]
    return (*conflicts, *await _apply_steps(rest, project, await _contents(history, rest)))


async def commit(
    history: GitHistory, steps: Sequence[FileChange], message: str, *, when: int | None = None
) -> str:
    """Commit exactly these files on the user's branch; return the commit."""
    entries = {one.path: _tree_entry(one.path, one.new) for one in steps}
    return await history.commit_for_person(entries, message, when=when)


async def _contents(history: GitHistory, steps: Iterable[FileChange]) -> dict[str, bytes]:
    # All of them before the first change: a missing object must stop everything.
    blobs = {one.new.partition(":")[2] for one in steps if one.new is not None}
    return {blob: await history.blob(blob) for blob in sorted(blobs)}


async def _apply_steps(
    steps: Sequence[FileChange], project: Path, contents: dict[str, bytes]
) -> tuple[UserFileConflict, ...]:
    # Removals first: a file may replace a directory, and the reverse.
    ordered = sorted(steps, key=lambda one: (one.new is not None, one.path))
    for step in ordered:
        content = contents[step.new.partition(":")[2]] if step.new is not None else None
        try:
            conflict = await asyncio.to_thread(user_file.make_change, step, project, content)
        except ToolError as error:
            conflict = UserFileConflict(path=step.path, why=str(error))
        if conflict is not None:
            return (conflict,)
    return ()


def _tree_entry(path: str, stand: str | None) -> TreeEntry | None:
    if stand is None:
        return None
    mode, _, blob = stand.partition(":")
    return TreeEntry(mode=mode, blob=blob, path=path)
