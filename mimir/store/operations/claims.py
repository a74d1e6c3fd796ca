"""Claims of tasks under leases and fences, and the changes of their status.

A claimable task has `claimState` "free", one under a lease "held", one that waits for an answer "waiting", any other none; so a claim reads no more tasks than it takes. Every
lease increases the fence, and a write under an older one raises `LeaseLost`. Leases are compared with the store's time.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta

from mimir.domain import ids
from mimir.domain.clock import moment, stamp
from mimir.domain.event import EventKind
from mimir.domain.task_states import TERMINAL, Cause, RunStatus, TaskStatus, TransitionActor, guard
from mimir.domain.value_class import value_class
from mimir.errors import LeaseLost, StoreError
from mimir.store.operations import claim_candidates, runs
from mimir.store.protocol import ReadOps, Row, Value, Where, WriteOps
from mimir.store.records.record_codec import StoredRecord, encode
from mimir.store.records.task_changes import (
    REUSED_OF_ATTEMPT,
    REUSED_OF_TASK,
    ReuseChange,
    copied_to_attempt,
    select_present,
)
from mimir.store.records.task_records import TaskRecord
from mimir.store.row_fields import float_field, int_field, text_field
from mimir.store.schema import EdgeType, NodeLabel

_FREE, _HELD, _WAITING = claim_candidates.FREE, claim_candidates.HELD, claim_candidates.WAITING
_NO_LEASE: Row = {"lockedBy": None, "lockedAt": None, "expiresAt": None}
# Properties of a claimed task that its new attempt has too.
_COPIED = ("status", "attemptNumber", "isRetry", "retryReason", "workerStartTime")
_NEW_ATTEMPT = (TaskStatus.PENDING, TaskStatus.PREPARING_RETRY)


@value_class
class Claim:
    """Task that a process may work on until its lease ends."""

    task: str
    """Id in the plan."""
    record: TaskRecord
    """Task after the claim."""
    fence: int
    attempt: int
    fresh: bool
    """True: a new attempt began. False: the attempt resumes at its last status."""
    suspect: bool = False
    """True: the next death of its process ends the task."""
    died: bool = False
    """True: its processes died too often; the caller fails the task with `worker_died`."""


def claim(
    ops: WriteOps,
    run: str,
    owner: str,
    *,
    lease_seconds: float,
    limit: int = 1,
    dead: Collection[str] = (),
    has_suspect: bool = False,
    task: str = "",
) -> list[Claim]:
    """Choose and claim tasks in one transaction: highest priority first, then by id.

    A run that is not running gives no task. A `task` that is named is the only candidate. Leases of `dead` processes count as ended. With `has_suspect`, the process already works on a task
    that one more death would end, and gets no second one.
    """
    # The writer holds the store's lock, so a chosen task is still free when it is claimed.
    known = ops.get(NodeLabel.RUN, run) or {}
    if known.get("status") != RunStatus.RUNNING.value:
        return []
    ended = frozenset(dead)
    chosen = claim_candidates.candidates(ops, run, limit, ended, has_suspect=has_suspect, task=task)
    if not chosen:
        _note_empty(ops, run)
        return []
    until = _lease_end(ops.now(), lease_seconds)
    taken = [_grant_lease(row, owner, ops.now(), until) for row in chosen]
    ops.upsert(NodeLabel.TASK, [grant.changed for grant in taken])
    _make_attempts(ops, run, [grant for grant in taken if grant.claim.fresh])
    runs.emit_all(ops, run, [grant.event for grant in taken], known=known)
    return [grant.claim for grant in taken]


def _note_empty(ops: WriteOps, run: str) -> None:
    """Count a claim for which other processes were faster."""
    # Only a process that saw work tries a claim, so this is rare.
    row = ops.patch_if(NodeLabel.RUN, run, {}, {}) or {}
    ops.patch(NodeLabel.RUN, run, {"claimsEmpty": int_field(row, "claimsEmpty") + 1})


def is_work_there(
    reads: ReadOps, run: str, dead: Collection[str] = (), *, has_suspect: bool = False
) -> bool:
    """Return whether a claim would find a task, without the store's lock."""
    return claim_candidates.is_any(reads, run, frozenset(dead), has_suspect=has_suspect)


def heartbeat(
    ops: WriteOps, run: str, tasks: Sequence[tuple[str, int]], owner: str, lease_seconds: float
) -> list[str]:
    """Renew leases; return the tasks whose lease is lost."""
    # The fence and the owner are compared, so a late heartbeat never takes a lease back.
    until = _lease_end(ops.now(), lease_seconds)
    lost: list[str] = []
    for task, fence in tasks:
        mine = {"fence": fence, "lockedBy": owner}
        if ops.patch_if(NodeLabel.TASK, ids.task_id(run, task), mine, {"expiresAt": until}) is None:
            lost.append(task)
    return lost


def release_claim(ops: WriteOps, run: str, task: str, fence: int) -> bool:
    """End a lease and keep the status; False if the lease was lost. No death is counted."""
    # The task stays at its status: another process resumes the attempt there.
    id, held = ids.task_id(run, task), {"fence": fence, "claimState": _HELD}
    row = ops.patch_if(NodeLabel.TASK, id, held, {})
    if row is None:
        return False
    return ops.patch(NodeLabel.TASK, id, {**_NO_LEASE, **_time_held(ops, row), "claimState": _FREE})


def wait(ops: WriteOps, run: str, task: str, fence: int, question: str) -> None:
    """End a lease until a question is answered; the status stays.

    Raises:
        LeaseLost: Another process has the task.
    """
    id, held = ids.task_id(run, task), {"fence": fence, "claimState": _HELD}
    row = ops.patch_if(NodeLabel.TASK, id, held, {})
    if row is None:
        raise _lease_lost(task, fence)
    # Neither free nor held: no claim, no heartbeat and no release finds it.
    waits = {"claimState": _WAITING, "waitsFor": question}
    ops.patch(NodeLabel.TASK, id, {**_NO_LEASE, **_time_held(ops, row), **waits})


def wake(ops: WriteOps, run: str, task: str, fence: int, question: str) -> bool:
    """Let a waiting task be claimed again; False if it does not wait for this question."""
    # All three are compared: a late answer must not free a task that another process holds.
    expect = {"fence": fence, "claimState": _WAITING, "waitsFor": question}
    free: Row = {"claimState": _FREE, "waitsFor": None}
    return ops.patch_if(NodeLabel.TASK, ids.task_id(run, task), expect, free) is not None


def give_back_all(ops: WriteOps, run: str, owner: str) -> None:
    """End every lease of a process in a run, also those of a claim that was cancelled."""
    # A cancelled claim may have been committed after its caller was gone.
    held: Where = {"runId": run, "lockedBy": owner, "claimState": _HELD}
    for row in ops.find(NodeLabel.TASK, held):
        release_claim(ops, run, text_field(row, "taskId"), int_field(row, "fence"))


def move(
    ops: WriteOps,
    run: str,
    task: str,
    fence: int,
    to: TaskStatus,
    mover: TransitionActor,
    *,
    changes: Sequence[StoredRecord] = (),
    attempt_changes: Sequence[StoredRecord] = (),
    kind: EventKind,
    data: Mapping[str, object] | None = None,
) -> None:
    """Change the status of a task with the values of its phase and its event.

    A terminal status and `preparing_retry` end the lease. The attempt gets a copy of the `changes` that belong to a phase, and its own
    `attempt_changes`.

    Raises:
        LeaseLost: The fence is old.
        IllegalMove: The table has no such move, or not by this mover.
    """
    row = _load_claimed_row(ops, run, task, fence)
    at = TaskStatus(text_field(row, "status"))
    guard(at, to, mover)
    expect = {"fence": fence, "status": at.value}
    values = encode(*changes)
    lease = _lease_after(to)
    held: Row = _time_held(ops, row) if lease else {}
    changed: Row = {**values, **lease, **held, "status": to.value}
    moved = ops.patch_if(NodeLabel.TASK, ids.task_id(run, task), expect, changed)
    if moved is None:
        raise _lease_lost(task, fence)
    number = int_field(moved, "attemptNumber")
    copy = {**copied_to_attempt(values, to), **encode(*attempt_changes), "status": to.value}
    ops.patch(NodeLabel.ATTEMPT, ids.attempt_id(run, task, number), copy)
    event_data = {**(data or {}), "from": at.value, "to": to.value}
    runs.append_event(ops, run, kind, task=task, attempt=number, data=event_data)


def complete_reused_task(
    ops: WriteOps, run: str, task: str, change: ReuseChange, *, commit: str
) -> None:
    """Complete a task with a copy of the accepted attempt of another run.

    Raises:
        LeaseLost: A process claimed the task.
        StoreError: The other run has no such attempt.
    """
    # The copy gets evidence of its own: a chain belongs to its attempt by name.
    source, number = change.taken_from, change.accepted_attempt
    theirs = _load_task_row(ops, source, task)
    attempt = ops.get(NodeLabel.ATTEMPT, ids.attempt_id(source, task, number))
    if attempt is None:
        raise StoreError(f"Run {source!r} has no attempt {number} of task {task!r}.")
    id, name = ids.task_id(run, task), ids.attempt_id(run, task, number)
    copy: dict[str, Value] = {
        **_attempt_row(run, task, number), "attemptNumber": number, "status": TaskStatus.COMPLETED.value, "takenFrom": source,
    }  # fmt: skip
    ops.upsert(NodeLabel.ATTEMPT, [{**copy, **select_present(attempt, REUSED_OF_ATTEMPT)}])
    ops.link(EdgeType.HAS_ATTEMPT, [(id, name)])
    reused = select_present(theirs, REUSED_OF_TASK)
    # Not among the changes of the move, which an attempt keeps too.
    ops.patch(NodeLabel.TASK, id, {"attemptNumber": number, **reused, **encode(change)})
    kind, data = EventKind.TASK_COMPLETED, {"takenFrom": source, "commit": commit}
    by = TransitionActor.SCHEDULING
    move(ops, run, task, 0, TaskStatus.COMPLETED, by, kind=kind, data=data)


def load_claimed_task(reads: ReadOps, run: str, task: str, fence: int) -> TaskRecord:
    """Load a task under its newest fence."""
    return TaskRecord.from_row(_load_claimed_row(reads, run, task, fence))


def set_priority(ops: WriteOps, run: str, task: str, priority: float) -> None:
    """Set the priority of a task; a higher one is claimed first."""
    ops.patch(NodeLabel.TASK, ids.task_id(run, task), {"priority": priority})


def _load_claimed_row(reads: ReadOps, run: str, task: str, fence: int) -> Row:
    row = reads.get(NodeLabel.TASK, ids.task_id(run, task))
    if row is None or int_field(row, "fence") != fence:
        raise _lease_lost(task, fence)
    return row


def record_progress(
    ops: WriteOps,
    run: str,
    task: str,
    fence: int,
    outcomes: int,
    *,
    tokens: int = 0,
    tool_calls: int = 0,
) -> None:
    """Lock the task under its fence, and count gained outcomes and their cost."""
    id = ids.task_id(run, task)
    row = ops.patch_if(NodeLabel.TASK, id, {"fence": fence}, {})
    if row is None:
        raise _lease_lost(task, fence)
    more = {"outcomes": outcomes, "totalTokensUsed": tokens, "totalToolCalls": tool_calls}
    changed: Row = {name: int_field(row, name) + n for name, n in more.items() if n}
    if changed:
        ops.patch(NodeLabel.TASK, id, changed)


def release_task(ops: WriteOps, run: str, ready: Sequence[tuple[str, float]]) -> int:
    """Let pending tasks be claimed, with their priorities; return how many are new."""
    events: list[runs.NewEvent] = []
    waiting: Where = {"status": TaskStatus.PENDING.value, "released": ("!=", True)}
    for task, priority in ready:
        changed = {"released": True, "priority": priority, "claimState": _FREE}
        if ops.patch_if(NodeLabel.TASK, ids.task_id(run, task), waiting, changed) is not None:
            data = {"priority": priority}
            events.append(runs.NewEvent(kind=EventKind.TASK_READY, task=task, data=data))
    if events:
        runs.emit_all(ops, run, events)
    return len(events)


def block_task(ops: WriteOps, run: str, task: str, because: str) -> bool:
    """End a pending task that can never start; False if it is blocked already.

    Raises:
        IllegalMove: It is not pending.
    """
    # A blocked task cannot be unblocked, so a second call changes nothing.
    row = _load_task_row(ops, run, task)
    at = TaskStatus(text_field(row, "status"))
    if at is TaskStatus.BLOCKED:
        return False
    guard(at, TaskStatus.BLOCKED, TransitionActor.SCHEDULING)
    cause: Row = {"cause": Cause.DEPENDENCY.value, "blockedBy": because}
    data = {"because": because}
    _end_tasks(ops, run, [row], TaskStatus.BLOCKED, cause, EventKind.TASK_BLOCKED, data)
    return True


def cancel(ops: WriteOps, run: str) -> list[str]:
    """Cancel every task that has not ended; return their plan ids."""
    # The fences grow, so that processes at work are refused.
    ended = [status.value for status in TERMINAL]
    every = ops.find(NodeLabel.TASK, {"runId": run}, order=("seq",))
    rows = [row for row in every if text_field(row, "status") not in ended]
    cause: Row = {"cause": Cause.CANCELLED.value}
    _end_tasks(ops, run, rows, TaskStatus.CANCELLED, cause, EventKind.TASK_CANCELLED, {})
    return [text_field(row, "taskId") for row in rows]


@value_class
class _LeaseGrant:
    """Changes of one claim."""

    claim: Claim
    row: Row
    """Row of the task after the claim."""
    changed: Row
    event: runs.NewEvent


def _grant_lease(row: Row, owner: str, now: str, until: str) -> _LeaseGrant:
    at = TaskStatus(text_field(row, "status"))
    task, fence = text_field(row, "taskId"), int_field(row, "fence") + 1
    fresh = at in _NEW_ATTEMPT
    number = int_field(row, "attemptNumber") + fresh
    changed: dict[str, Value] = {
        "id": row["id"],
        "lockedBy": owner,
        "lockedAt": now,
        "expiresAt": until,
        "fence": fence,
        "claimState": _HELD,
        "version": int_field(row, "version") + 1,
        **(_attempt_began(at, number, now) if fresh else {}),
        **claim_candidates.death(row),
    }
    data: dict[str, object] = {"owner": owner, "fence": fence}
    if fresh:
        data |= {"from": at.value, "to": TaskStatus.WORKER_EXECUTING.value}
    kind = EventKind.ATTEMPT_STARTED if fresh else EventKind.LEASE_TAKEN
    after = {**row, **changed}
    record = TaskRecord.from_row(after)
    claim = Claim(
        task=task,
        record=record,
        fence=fence,
        attempt=number,
        fresh=fresh,
        suspect=claim_candidates.is_suspect(after),
        died=record.deaths >= claim_candidates.MOST_DEATHS,
    )
    event = runs.NewEvent(kind=kind, task=task, attempt=number, data=data)
    return _LeaseGrant(claim=claim, row=after, changed=changed, event=event)


def _attempt_began(at: TaskStatus, number: int, now: str) -> Row:
    """Return the values of phase 2."""
    # The guard also refuses a claim that the table of moves does not allow.
    guard(at, TaskStatus.WORKER_EXECUTING, TransitionActor.WORKER)
    return {
        "status": TaskStatus.WORKER_EXECUTING.value,
        "attemptNumber": number,
        "isRetry": number > 1,
        "workerStartTime": now,
    }


def _make_attempts(ops: WriteOps, run: str, begun: Sequence[_LeaseGrant]) -> None:
    """Create the nodes of new attempts."""
    if begun:
        rows = [
            {**_attempt_row(run, g.claim.task, g.claim.attempt), **select_present(g.row, _COPIED)}
            for g in begun
        ]
        ops.upsert(NodeLabel.ATTEMPT, rows)
        pairs = [(g.claim.record.id, str(row["id"])) for g, row in zip(begun, rows, strict=True)]
        ops.link(EdgeType.HAS_ATTEMPT, pairs)


def _attempt_row(run: str, task: str, number: int) -> dict[str, Value]:
    return {
        "id": ids.attempt_id(run, task, number), "name": f"{task} attempt {number}", "runId": run, "taskId": task, "seq": number,
    }  # fmt: skip


def _lease_after(to: TaskStatus) -> Row:
    # A task in `preparing_retry` is free: any process may begin its next attempt.
    if to in TERMINAL:
        return {**_NO_LEASE, "claimState": None, "waitsFor": None}
    if to is TaskStatus.PREPARING_RETRY:
        return {**_NO_LEASE, "claimState": _FREE}
    return {}


def _time_held(reads: ReadOps, row: Row) -> Row:
    """Return the time under leases, at the end of one."""
    # The time of a dead process is unknown.
    since = text_field(row, "lockedAt")
    if not since:
        return {}
    seconds = (moment(reads.now()) - moment(since)).total_seconds()
    return {"heldSeconds": round(float_field(row, "heldSeconds") + max(0.0, seconds), 3)}


def _end_tasks(
    ops: WriteOps,
    run: str,
    rows: Iterable[Row],
    to: TaskStatus,
    props: Row,
    kind: EventKind,
    data: Mapping[str, object],
) -> None:
    events: list[runs.NewEvent] = []
    for row in rows:
        task = text_field(row, "taskId")
        at = TaskStatus(text_field(row, "status"))
        guard(at, to, TransitionActor.SCHEDULING)
        number = int_field(row, "attemptNumber")
        fence = int_field(row, "fence")
        changed: dict[str, Value] = {**props, **_lease_after(to), **_time_held(ops, row)}
        changed |= {"status": to.value, "fence": fence + 1}
        expect = {"status": at.value, "fence": fence}
        if ops.patch_if(NodeLabel.TASK, ids.task_id(run, task), expect, changed) is None:
            raise StoreError(f"Task {task!r} was changed by another process.")
        ops.patch(NodeLabel.ATTEMPT, ids.attempt_id(run, task, number), {"status": to.value})
        event_data = {**data, "from": at.value, "to": to.value}
        events.append(runs.NewEvent(kind=kind, task=task, attempt=number, data=event_data))
    if events:
        runs.emit_all(ops, run, events)


def _load_task_row(reads: ReadOps, run: str, task: str) -> Row:
    row = reads.get(NodeLabel.TASK, ids.task_id(run, task))
    if row is None:
        raise StoreError(f"Run {run!r} has no task {task!r}.")
    return row


def _lease_lost(task: str, fence: int) -> LeaseLost:
    return LeaseLost(f"Task {task!r}: fence {fence} is old, another holder has it.")


def _lease_end(now: str, seconds: float) -> str:
    return stamp(moment(now) + timedelta(seconds=seconds))
