"""Bringing a run's result into the person's directory: never half, never over what they changed meanwhile.

The steps are journaled in the store before the first file changes; whoever resumes the run finishes them, or undoes them.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import cast

from mimir.domain.event import EventKind
from mimir.domain.ids import branch
from mimir.domain.run import Apply, RunResult
from mimir.domain.task_states import RunStatus
from mimir.errors import UsageError
from mimir.orchestrator.services import ProjectServices
from mimir.scheduling.completion.run_outcome import RunOutcome
from mimir.store import row_fields
from mimir.store.operations import runs
from mimir.store.protocol import Row, WriteOps
from mimir.store.schema import NodeLabel, pack, unpack
from mimir.workspace.user_tree import apply as workspace
from mimir.workspace.user_tree.user_file import FileChange, UserFileConflict


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyResult:
    """What was brought into the person's directory."""

    paths: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    """Touched files that the person changed meanwhile, with why; then nothing was applied."""
    commit: str = ""
    """On the person's branch; empty: none was made."""


def must_be_possible(parts: ProjectServices, apply: object) -> None:
    """Refuse, before any work, an end that cannot come.

    Raises:
        UsageError: A commit is wanted where there is no repository.
    """
    if apply == "commit" and not parts.history.is_repository:
        raise UsageError(
            "The project is in no git repository, so there is no branch to commit on.",
            next_step="Run `git init`, or use --apply auto.",
        )


async def finish(parts: ProjectServices, run: str, end: RunOutcome, apply: Apply) -> ApplyResult:
    """Apply a run's result at its end, if it may be: only a run whose every criterion is proven.

    Raises:
        Paused: The disk is full; what was done is undone.
    """
    if apply == "never" or end.outcome is not RunStatus.COMPLETED or not end.commit:
        return ApplyResult()
    if parts.history.is_away:  # these are the files of somebody who did not ask for it
        message = f"The run ended in another directory; bring its result where it was begun: mimir apply {run}"
        await parts.store.write(partial(_warn, run=run, message=message))
        return ApplyResult()
    row = await parts.store.read(partial(runs.node, run=run))
    return await _apply(parts, row, commit=apply == "commit")


async def by_hand(parts: ProjectServices, run: str, *, commit: bool) -> RunResult:
    """Apply a run's result because the person says so.

    Raises:
        UsageError: The run has no result, or has not ended.
    """
    must_be_possible(parts, "commit" if commit else "auto")
    row = await parts.store.read(partial(runs.node, run=run))
    status = RunStatus(row_fields.text_field(row, "status"))
    if not row.get("finalCommit") or status in (RunStatus.RUNNING, RunStatus.PAUSED):
        raise UsageError(
            f"Run {run} has no result to apply: it is {status.value}.",
            next_step=f"Look at it: mimir status {run}",
        )
    await parts.history.serve(run, row_fields.text_field(row, "baseCommit"))
    # Of a run that ended in another directory, the branch is not here yet.
    await parts.history.branch(run, row_fields.text_field(row, "finalCommit"))
    applied = await _apply(parts, row, commit=commit)
    return RunResult(
        run=run,
        outcome=status,
        exit_code=1 if applied.conflicts else 0,
        message=_why_not(applied),
        next_step=f"The result is on the branch {branch(run)}." if applied.conflicts else "",
        commit=applied.commit,
        applied=applied.paths,
        conflicts=applied.conflicts,
    )


def _why_not(applied: ApplyResult) -> str:
    if not applied.conflicts:
        return ""
    return "Nothing was applied: you changed files that the run touched."


async def _apply(parts: ProjectServices, row: Row, *, commit: bool) -> ApplyResult:
    run = str(row["id"])
    steps = _read(row_fields.text_field(row, "applyJson"))
    if row.get("appliedAt"):
        return ApplyResult(paths=tuple(step.path for step in steps))
    if steps:  # a process died half-way
        conflicts = await workspace.finish(parts.history, steps, parts.project)
        if conflicts:
            await workspace.undo(parts.history, steps, parts.project)
    else:
        steps, conflicts = await _begin(parts, row)
    if conflicts:
        await parts.store.write(partial(_note, run=run, props={"applyJson": None}))
        named = tuple(f"{c.path}: {c.why}" for c in conflicts)
        await parts.store.write(partial(_tell, run=run, data={"conflicts": list(named)}))
        return ApplyResult(conflicts=named)
    made = await workspace.commit(parts.history, steps, _message(row)) if commit and steps else ""
    props = {"appliedAt": parts.clock.now().isoformat(), "appliedCommit": made or None}
    await parts.store.write(partial(_note, run=run, props=props))
    paths = tuple(step.path for step in steps)
    await parts.store.write(partial(_tell, run=run, data={"paths": list(paths), "commit": made}))
    return ApplyResult(paths=paths, commit=made)


async def _begin(
    parts: ProjectServices, row: Row
) -> tuple[tuple[FileChange, ...], tuple[UserFileConflict, ...]]:
    """Plan and apply; the steps are in the store before the first change."""
    run = str(row["id"])
    base, final = row_fields.text_field(row, "baseTree"), row_fields.text_field(row, "headTree")
    changes = await parts.history.diff_trees(base, final)
    planned = await workspace.plan(changes, parts.project)

    async def journal(steps: Sequence[FileChange]) -> None:
        text = pack([asdict(step) for step in steps])
        await parts.store.write(partial(_note, run=run, props={"applyJson": text}))

    conflicts = await workspace.apply(parts.history, planned, parts.project, journal=journal)
    return planned.steps, conflicts


def _read(text: str) -> tuple[FileChange, ...]:
    rows = cast("list[dict[str, str | None]]", unpack(text)) if text else []
    return tuple(
        FileChange(path=str(row["path"]), old=row.get("old"), new=row.get("new")) for row in rows
    )


def _note(ops: WriteOps, run: str, props: Row) -> None:
    ops.patch(NodeLabel.RUN, run, props)


def _tell(ops: WriteOps, run: str, data: dict[str, object]) -> None:
    runs.append_event(ops, run, EventKind.APPLIED, data=data)


def _warn(ops: WriteOps, run: str, message: str) -> None:
    runs.append_event(ops, run, EventKind.WARNING, data={"message": message})


def _message(row: Row) -> str:
    title = row_fields.text_field(row, "title") or row_fields.text_field(row, "name")
    return f"{title}\n\nMimir-Run: {row['id']}\nMimir-Seal: {row_fields.text_field(row, 'seal')}\n"
