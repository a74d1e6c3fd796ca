"""Application of a run's result to the user's directory, all or nothing.

The steps are journaled in the store before the first file changes. A process that resumes the run completes or undoes them.
"""

from collections.abc import Callable, Sequence
from functools import partial

from mimir.domain.event import EventKind
from mimir.domain.run import Apply, RunResult
from mimir.domain.task_states import RunStatus
from mimir.domain.value_class import value_class
from mimir.errors import UsageError
from mimir.orchestrator.services import ProjectServices
from mimir.qc.evidence import seal
from mimir.scheduling.completion.run_outcome import RunOutcome
from mimir.store.operations import runs
from mimir.store.operations.record_loading import load_run, save_change
from mimir.store.protocol import WriteOps
from mimir.store.records.record_codec import ABSENT, PackedJson
from mimir.store.records.run_changes import RunApplicationChange, RunAppliedChange
from mimir.store.records.run_records import RunRecord
from mimir.store.sealing.run_record import change_ended_run
from mimir.workspace.user_tree import apply as user_tree
from mimir.workspace.user_tree.user_file import FileChange, UserFileConflict
from mimir.workspace.user_tree.user_merge import merge_user_files

MOST_SHOWN = 5


@value_class
class ApplyResult:
    """Effect of an application on the user's directory."""

    paths: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    """Files that the user has changed, with the reason; then nothing was applied."""
    marked: tuple[str, ...] = ()
    """Applied files that hold conflict markers."""
    shown: tuple[str, ...] = ()
    """Existing files that git would no longer ignore; then nothing was applied."""
    commit: str = ""
    """Commit on the user's branch; empty: none was made."""


def require_applicable(services: ProjectServices, apply: object) -> None:
    """Refuse, before any work, an application that cannot succeed.

    Raises:
        UsageError: A commit is requested, and the project has no git repository.
    """
    if apply == "commit" and not services.history.is_repository:
        raise UsageError(
            "The project is in no git repository, so there is no branch to commit on.",
            next_step="Run `git init`, or use --apply auto.",
        )


async def apply_at_end(
    services: ProjectServices, run: str, end: RunOutcome, apply: Apply
) -> ApplyResult:
    """Apply a run's result at its end, if every criterion is proven.

    Raises:
        Paused: The disk is full; all changes are undone.
    """
    if apply == "never" or end.outcome is not RunStatus.COMPLETED or not end.commit:
        return ApplyResult()
    # In another directory than that of the run, the files may belong to another user.
    if services.history.is_away:
        message = f"The run ended in another directory; apply its result where it was started: mimir apply {run}"
        warn = partial(
            runs.append_event, run=run, kind=EventKind.WARNING, data={"message": message}
        )
        await services.store.write(warn)
        return ApplyResult()
    record = await services.store.read(partial(load_run, run=run))
    applied = await _apply(services, record, commit=apply == "commit")
    if applied.shown:
        message = f"{describe_shown(applied.shown)} Nothing was applied."
        warn = partial(
            runs.append_event, run=run, kind=EventKind.WARNING, data={"message": message}
        )
        await services.store.write(warn)
    return applied


async def apply_result(
    services: ProjectServices,
    run: str,
    *,
    commit: bool,
    completed: bool,
    markers: bool,
    is_confirmed: bool,
) -> RunResult:
    """Apply a run's result because the user asks for it.

    Args:
        services: The open project.
        run: Id of the run.
        commit: Also commit it on the user's branch.
        completed: Also apply the completed tasks of a cancelled run.
        markers: Write conflict markers where the user changed the same lines.
        is_confirmed: Also apply changes after which git no longer ignores existing files.

    Raises:
        UsageError: The run has no result, or has not ended.
    """
    require_applicable(services, "commit" if commit else "auto")
    if commit and markers:
        raise UsageError("--commit and --markers exclude each other: markers are not committed.")
    record = await services.store.read(partial(load_run, run=run))
    result = _applicable_commit(record, completed=completed)
    # The commits may be in another clone: fetch them before the branch is named.
    await services.history.serve(run, record.base_commit)
    # The branch of a run that ended in another directory is not here yet.
    branch = await services.history.branch(run, result)
    applied = await _apply(
        services, record, commit=commit, markers=markers, is_confirmed=is_confirmed
    )
    is_refused = bool(applied.conflicts)
    if applied.shown:
        return RunResult(
            run=run,
            outcome=record.status,
            exit_code=1,
            message=f"Nothing was applied: {describe_shown(applied.shown)}",
            next_step=describe_confirmation(run, commit=commit),
            shown=applied.shown,
        )
    return RunResult(
        run=run,
        outcome=record.status,
        exit_code=1 if is_refused or applied.marked else 0,
        message="Nothing was applied: you changed files that the run changed."
        if is_refused
        else "",
        next_step=describe_refusal(run, branch, commit=commit) if is_refused else "",
        commit=applied.commit,
        applied=applied.paths,
        conflicts=applied.conflicts,
        marked=applied.marked,
    )


def describe_refusal(run: str, branch: str, *, commit: bool = False) -> str:
    """Return the next step after an application that was refused."""
    first = "Commit your changes, then merge: git merge" if commit else ""
    apply = f"{first} {branch}" if commit else f"mimir apply {run} --markers"
    return f"{apply}  (the result is on the branch {branch})"


def describe_shown(paths: Sequence[str]) -> str:
    """Return the finding about existing files that git would no longer ignore."""
    more = f" and {len(paths) - MOST_SHOWN} more" if len(paths) > MOST_SHOWN else ""
    named = ", ".join(map(repr, paths[:MOST_SHOWN]))
    return f"With the result, git no longer ignores existing files: {named}{more}."


def describe_confirmation(run: str, *, commit: bool) -> str:
    """Return the command that applies a result although it shows ignored files."""
    return f"Apply it as it is: mimir apply {run}{' --commit' if commit else ''} --yes"


def _applicable_commit(record: RunRecord, *, completed: bool) -> str:
    run = record.id
    if record.status in (RunStatus.RUNNING, RunStatus.PAUSED):
        raise UsageError(
            f"Run {run} has no result to apply: it is {record.status.value}.",
            next_step=f"Continue it: mimir resume {run}. Or end it: mimir cancel {run}, then mimir apply {run} --completed",
        )
    if not record.has_merged:
        raise UsageError(
            f"Run {run} has no result to apply: no completed task changed a file.",
            next_step=f"Show its status: mimir status {run}",
        )
    # The final gate did not run on the head of a cancelled run.
    if not record.final_commit and not completed:
        raise UsageError(
            f"Run {run} has no result to apply: it is {record.status.value}.",
            next_step=f"Apply its completed tasks: mimir apply {run} --completed",
        )
    return record.final_commit or record.head


async def _apply(
    services: ProjectServices,
    run: RunRecord,
    *,
    commit: bool,
    markers: bool = False,
    is_confirmed: bool = False,
) -> ApplyResult:
    history, project, store = services.history, services.project, services.store
    steps = run.apply.decode(tuple[FileChange, ...]) if run.apply else ()
    # A repeated call after a crash between apply and report must not apply twice.
    if run.applied_at:
        return ApplyResult(paths=tuple(step.path for step in steps))
    marked: tuple[str, ...] = ()
    if steps:  # a process died during the application
        conflicts = await user_tree.finish(history, steps, project)
        if conflicts:
            await user_tree.undo(history, steps, project)
    else:
        if shown := await history.unignored(run.base_tree, run.head_tree):
            if not is_confirmed:
                return ApplyResult(shown=shown)
            await history.show_files(shown)
        steps, conflicts, marked = await _start(services, run, markers=markers)
    if conflicts:
        described = tuple(f"{conflict.path}: {conflict.why}" for conflict in conflicts)
        # Without the journal a later call plans again, with the user's files of that time.
        await store.write(partial(_save_steps, run=run.id, steps=ABSENT))
        await store.write(_seal_change(run.id, partial(_log, data={"conflicts": list(described)})))
        return ApplyResult(conflicts=described)
    commit_id = await user_tree.commit(history, steps, _message(run)) if commit and steps else ""
    change = RunAppliedChange(
        applied_at=services.clock.now().isoformat(), applied_commit=commit_id or None
    )
    paths = tuple(step.path for step in steps)

    def end(ops: WriteOps, run: str) -> None:
        save_change(ops, run, change)
        _log(ops, run, {"paths": list(paths), "commit": commit_id})

    await store.write(_seal_change(run.id, end))
    return ApplyResult(paths=paths, commit=commit_id, marked=marked)


async def _start(
    services: ProjectServices, run: RunRecord, *, markers: bool
) -> tuple[tuple[FileChange, ...], tuple[UserFileConflict, ...], tuple[str, ...]]:
    """Plan and apply; the steps are stored before the first file changes."""
    history, project = services.history, services.project
    merged = await merge_user_files(history, run.base_tree, run.head_tree, project, markers=markers)
    if merged.conflicts:
        return (), merged.conflicts, ()
    planned = await user_tree.plan(merged.changes, project)

    async def journal(steps: Sequence[FileChange]) -> None:
        packed = PackedJson.pack(tuple(steps))
        await services.store.write(partial(_save_steps, run=run.id, steps=packed))

    conflicts = await user_tree.apply(history, planned, project, journal=journal)
    return planned.steps, conflicts, merged.marked


def _save_steps(ops: WriteOps, run: str, steps: PackedJson) -> None:
    def save(ops: WriteOps, run: str) -> None:
        save_change(ops, run, RunApplicationChange(steps=steps))

    _seal_change(run, save)(ops)


def _seal_change(
    run: str, change: Callable[[WriteOps, str], object]
) -> Callable[[WriteOps], object]:
    """Return a change of a run that is sealed if the run has ended."""
    return lambda ops: change_ended_run(
        ops, run, "apply", lambda ops: change(ops, run), seal.append
    )


def _log(ops: WriteOps, run: str, data: dict[str, object]) -> None:
    runs.append_event(ops, run, EventKind.APPLIED, data=data)


def _message(run: RunRecord) -> str:
    return f"{run.display_title}\n\nMimir-Run: {run.id}\nMimir-Seal: {run.seal}\n"
