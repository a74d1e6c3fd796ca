"""Locks of todos: claims under a lease and a fence, which completion needs."""

from datetime import timedelta

from mimir.domain.clock import moment
from mimir.domain.event import EventKind
from mimir.domain.task_states import TaskStatus, TransitionActor
from mimir.errors import ToolError
from mimir.orchestrator.todos.lists import TodoList, describe_todo, require_list
from mimir.store.operations import claims
from mimir.store.operations.record_loading import find_task, load_tasks
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.records.task_changes import WorkAnsweredChange
from mimir.store.records.task_records import TaskRecord

MARKED = "a client marked it as done; nothing was checked"
_AGAIN = "Call lock_todo again."
_MACHINE, _SCHEDULING = TransitionActor.MACHINE, TransitionActor.SCHEDULING
# The way of an answer that nothing decides: the table of moves has no shorter one.
_WAY = (
    (TaskStatus.WORKER_COMPLETED, EventKind.WORK_ANSWERED, _MACHINE),
    (TaskStatus.QC_EXECUTING, EventKind.JUDGING_STARTED, _MACHINE),
    (TaskStatus.QC_PASSED, EventKind.VERDICT_GIVEN, _MACHINE),
    (TaskStatus.COMPLETED, EventKind.TASK_COMPLETED, _SCHEDULING),
)


def lock_todo(
    ops: WriteOps, wanted: TodoList, *, todo: str, owner: str, minutes: int
) -> dict[str, object]:
    """Lock a todo, or the oldest open one if none is named.

    Raises:
        ToolError: It is done, or another client has locked it; or no todo is open.
    """
    run = require_list(ops, wanted)
    task = find_todo(ops, run, todo) if todo else None
    if task is not None and task.status is TaskStatus.COMPLETED:
        raise ToolError(f"{task.task_id} is done already.", next_step="Call list_todos.")
    seconds = timedelta(minutes=minutes).total_seconds()
    found = claims.claim(ops, run, owner, lease_seconds=seconds, task=todo)
    if not found:
        raise _refuse_lock(ops, run, task)
    return {"list": wanted.name, **_describe(ops, run, found[0].task), "fence": found[0].fence}


def extend_lock(
    ops: WriteOps, wanted: TodoList, *, todo: str, fence: int, owner: str, minutes: int
) -> dict[str, object]:
    """Extend the lock of a todo.

    Raises:
        ToolError: The lock is not the newest one, or another client has it.
    """
    run = require_list(ops, wanted)
    _require_fence(find_todo(ops, run, todo), fence)
    seconds = timedelta(minutes=minutes).total_seconds()
    if claims.heartbeat(ops, run, [(todo, fence)], owner, seconds):
        raise ToolError(f"{todo} is not locked by you.", next_step=_AGAIN)
    return {"list": wanted.name, **_describe(ops, run, todo), "fence": fence}


def complete_todo(
    ops: WriteOps, wanted: TodoList, *, todo: str, fence: int, note: str
) -> dict[str, object]:
    """Mark a locked todo as done; a repeated call changes nothing.

    Raises:
        ToolError: The lock has ended, or is not the newest one.
    """
    run = require_list(ops, wanted)
    task = find_todo(ops, run, todo)
    _require_fence(task, fence)
    if task.status is not TaskStatus.COMPLETED:
        _require_lease(task, ops.now())
        held = moment(ops.now()) - moment(task.locked_at)
        answer = WorkAnsweredChange(
            worker_output=note,
            worker_duration=max(0.0, held.total_seconds()),
            worker_tokens=0,
            worker_tool_calls=0,
            worker_message_count=0,
            worker_completed_at=ops.now(),
        )
        for to, kind, mover in _WAY:
            changes = (answer,) if to is TaskStatus.WORKER_COMPLETED else ()
            data = {"reasons": [MARKED]} if kind is EventKind.VERDICT_GIVEN else {}
            claims.move(ops, run, todo, fence, to, mover, changes=changes, kind=kind, data=data)
    return {"list": wanted.name, **_describe(ops, run, todo)}


def release_todo(ops: WriteOps, wanted: TodoList, *, todo: str, fence: int) -> dict[str, object]:
    """End the lock of a todo.

    Raises:
        ToolError: The lock is not the newest one, or has been released.
    """
    run = require_list(ops, wanted)
    _require_fence(find_todo(ops, run, todo), fence)
    if not claims.release_claim(ops, run, todo, fence):
        raise ToolError(f"{todo} is not locked.", next_step="Call list_todos.")
    return {"list": wanted.name, **_describe(ops, run, todo)}


def find_todo(reads: ReadOps, run: str, todo: str) -> TaskRecord:
    """Return a todo of a list.

    Raises:
        ToolError: There is none of this id.
    """
    # The id is a part of the node's id: none may name a node below it.
    task = find_task(reads, run, todo) if todo.isprintable() and "/" not in todo else None
    if task is None:
        raise ToolError(f"The list has no todo {todo[:40]!r}.", next_step="Call list_todos.")
    return task


def _require_fence(task: TaskRecord, fence: int) -> None:
    if fence > task.fence:
        raise ToolError(
            f"{fence} is no fence of {task.task_id}. Nothing changed.", next_step=_AGAIN
        )
    if fence < task.fence:
        held = f" by {task.locked_by} until {task.expires_at}" if task.locked_by else ""
        raise ToolError(
            f"The fence {fence} of {task.task_id} is old: it was locked again{held}. "
            "Nothing changed.",
            next_step=_AGAIN,
        )


def _require_lease(task: TaskRecord, now: str) -> None:
    if not task.is_held_at(now):
        ended = f" ended at {task.expires_at}" if task.expires_at else " was released"
        raise ToolError(f"Your lock of {task.task_id}{ended}. Nothing changed.", next_step=_AGAIN)


def _refuse_lock(reads: ReadOps, run: str, task: TaskRecord | None) -> ToolError:
    if task is not None:
        return ToolError(
            f"{task.task_id} is locked by {task.locked_by} until {task.expires_at}.",
            next_step="Lock another one: call lock_todo without todo.",
        )
    every = load_tasks(reads, run, TaskRecord)
    locked = sum(one.is_held_at(reads.now()) for one in every)
    return ToolError(
        f"No todo is open: {locked} locked, {len(every) - locked} done.",
        next_step="Call create_todo, or try later.",
    )


def _describe(reads: ReadOps, run: str, todo: str) -> dict[str, object]:
    return {"run": run, **describe_todo(find_todo(reads, run, todo), reads.now())}
