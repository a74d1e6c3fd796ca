"""Bringing a run's result into the person's directory: all of it, or nothing.

The rules: a file that the person changed since the run started stops everything before the first change; what will be
done is written to a journal first, so that the next command can finish or undo it; each file changes in one step; every
path is opened part by part, following no link.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mimir.errors import MimirError, ToolError
from mimir.workspace.git.history import GitHistory, TreeChange, TreeEntry
from mimir.workspace.user_tree import user_file as person
from mimir.workspace.user_tree.user_file import UserFileConflict

__all__ = [
    "ApplyPlan",
    "ApplyStep",
    "Journal",
    "UserFileConflict",
    "apply",
    "commit",
    "finish",
    "plan",
    "undo",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyStep:
    """What happens to one file. Flat text, to be kept in a journal."""

    path: str
    old: str | None
    """`<mode>:<blob id>` of what stands there before; None: nothing."""
    new: str | None
    """The same of what stands there after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyPlan:
    """What applying would do."""

    steps: tuple[ApplyStep, ...]
    conflicts: tuple[UserFileConflict, ...]
    """Why it may not be done; empty: it may."""

    @property
    def is_clean(self) -> bool:
        """True if nothing stands in the way."""
        return not self.conflicts


Journal = Callable[[Sequence[ApplyStep]], Awaitable[None]]
"""Keeps the steps where the next process finds them; called once, before the first change."""


async def plan(changes: Iterable[TreeChange], project: Path) -> ApplyPlan:
    """Compare the person's directory with what the run started from. Changes nothing.

    Args:
        changes: From the base's tree to the result's.
        project: The person's directory.
    """
    steps = tuple(
        ApplyStep(path=one.path, old=_stand(one.old), new=_stand(one.new)) for one in changes
    )
    return ApplyPlan(steps=steps, conflicts=await _conflicts(steps, project))


async def apply(
    history: GitHistory, planned: ApplyPlan, project: Path, *, journal: Journal
) -> tuple[UserFileConflict, ...]:
    """Do what was planned, unless something stands in the way.

    If it dies half-way, `finish` or `undo` with the journal's steps mends it.

    Returns:
        What stood in the way: then the directory is as it was. Empty: all is done.

    Raises:
        WorkspaceError: The history lost an object; nothing was changed.
        Paused: The disk is full; what was done is undone as far as it can be.
    """
    conflicts = planned.conflicts or await _conflicts(planned.steps, project)
    if conflicts:
        return conflicts
    contents = await _contents(history, planned.steps)
    await journal(planned.steps)
    try:
        conflicts = await _bring(planned.steps, project, contents)
    except BaseException:
        # If this fails too, the journal is still there for the next command.
        with contextlib.suppress(MimirError, OSError):
            await asyncio.shield(undo(history, planned.steps, project))
        raise
    if conflicts:
        await undo(history, planned.steps, project)
    return conflicts


async def finish(
    history: GitHistory, steps: Sequence[ApplyStep], project: Path
) -> tuple[UserFileConflict, ...]:
    """Do what is left of journaled steps; may be repeated.

    Returns:
        What the person changed meanwhile: then nothing was done. Empty: all is done.
    """
    conflicts = await _conflicts(steps, project)
    if conflicts:
        return conflicts
    return await _bring(steps, project, await _contents(history, steps))


async def undo(
    history: GitHistory, steps: Sequence[ApplyStep], project: Path
) -> tuple[UserFileConflict, ...]:
    """Take journaled steps back as far as they were done; may be repeated.

    Returns:
        Files that the person changed meanwhile; they are left as they are, all others are as before.
    """
    back = [ApplyStep(path=one.path, old=one.new, new=one.old) for one in steps]
    conflicts = await asyncio.to_thread(_standing_in_the_way, back, project)
    in_the_way = {one.path for one in conflicts}
    rest = [one for one in back if one.path not in in_the_way]
    return (*conflicts, *await _bring(rest, project, await _contents(history, rest)))


async def commit(
    history: GitHistory, steps: Sequence[ApplyStep], message: str, *, when: int | None = None
) -> str:
    """Make one commit on the person's branch that holds exactly these files; return its id.

    The person's index is otherwise kept, no hook runs. Where nothing differs, the branch stays where it is.

    Raises:
        WorkspaceError: No repository, a merge or rebase is going on, or git refused.
    """
    entries = {one.path: _entry(one.path, one.new) for one in steps}
    return await history.commit_for_person(entries, message, when=when)


async def _conflicts(steps: Sequence[ApplyStep], project: Path) -> tuple[UserFileConflict, ...]:
    return await asyncio.to_thread(_standing_in_the_way, steps, project)


def _standing_in_the_way(steps: Sequence[ApplyStep], project: Path) -> tuple[UserFileConflict, ...]:
    moves = [person.FileChange(path=one.path, old=one.old, new=one.new) for one in steps]
    return person.conflicts(moves, project)


async def _contents(history: GitHistory, steps: Iterable[ApplyStep]) -> dict[str, bytes]:
    """Fetch everything before the first change: an object that is gone must stop all of it."""
    blobs = {one.new.partition(":")[2] for one in steps if one.new is not None}
    return {blob: await history.blob(blob) for blob in sorted(blobs)}


async def _bring(
    steps: Sequence[ApplyStep], project: Path, contents: dict[str, bytes]
) -> tuple[UserFileConflict, ...]:
    """Remove first, then write: a file may take a directory's place, and the other way round."""
    ordered = sorted(steps, key=lambda one: (one.new is not None, one.path))
    for step in ordered:
        move = person.FileChange(path=step.path, old=step.old, new=step.new)
        content = contents[step.new.partition(":")[2]] if step.new is not None else None
        try:
            conflict = await asyncio.to_thread(person.make_change, move, project, content)
        except ToolError as error:
            conflict = UserFileConflict(path=step.path, why=str(error))
        if conflict is not None:
            return (conflict,)
    return ()


def _stand(entry: TreeEntry | None) -> str | None:
    return None if entry is None else f"{entry.mode}:{entry.blob}"


def _entry(path: str, stand: str | None) -> TreeEntry | None:
    if stand is None:
        return None
    mode, _, blob = stand.partition(":")
    return TreeEntry(mode=mode, blob=blob, path=path)
