"""Who may work on what: claims, leases, fences, moves. Written once above the primitives.

A task that may be claimed has `claimState` "free"; one under a lease "held"; any other has none: so choosing costs what is
chosen, not the run. Every grant makes the fence grow, and a write with an old one is refused. Leases are compared with the
store's time only.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from mimir.domain import ids
from mimir.domain.clock import moment, stamp
from mimir.domain.event import EventKind
from mimir.domain.task_states import TERMINAL, Cause, RunStatus, TaskStatus, TransitionActor, guard
from mimir.errors import LeaseLost, StoreError
from mimir.store import row_fields
from mimir.store.operations import claim_candidates, runs
from mimir.store.protocol import ReadOps, Row, Value, Where, WriteOps
from mimir.store.records.record_codec import StoredRecord, encode
from mimir.store.records.task_changes import ReuseChange
from mimir.store.records.task_records import TaskRecord
from mimir.store.schema import PHASES, EdgeType, NodeLabel

_FREE, _HELD = claim_candidates.FREE, claim_candidates.HELD
_NO_LEASE: Row = {"lockedBy": None, "lockedAt": None, "expiresAt": None}
_NEW_ATTEMPT = (TaskStatus.PENDING, TaskStatus.PREPARING_RETRY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A task that this owner may work on until its lease ends."""

    task: str
    """Id in the plan."""
    row: Row
    """The task's row after the claim."""
    fence: int
    attempt: int
    fresh: bool
    """True: a new attempt began. False: one is resumed at the phase in which its holder left it."""
    suspect: bool = False
    """True: its next death would be its last."""
    died: bool = False
    """True: its holders died too often without gaining an outcome; the caller fails it with `worker_died`."""

    @property
    def record(self) -> TaskRecord:
        """The task after the claim."""
        return TaskRecord.from_row(self.row)


def claim(
    ops: WriteOps,
    run: str,
    owner: str,
    *,
    lease_seconds: float,
    limit: int = 1,
    dead: Collection[str] = (),
    has_suspect: bool = False,
) -> list[Claim]:
    """Choose and take tasks in one transaction: highest priority first, then by id.

    Of the tasks that one more death would end, an owner has one at a time.

    Nothing is compared and set: who writes has the store's lock, so what is chosen is still free when it is taken. The questions
    to the store are the same few, however many tasks are taken.

    Args:
        ops: The transaction.
        run: Whose tasks; of a run that is not running none is taken.
        owner: Who takes them.
        lease_seconds: How long the lease lasts unless it is renewed.
        limit: How many at most.
        dead: Owners that are known to be gone; their leases count as ended.
        has_suspect: True: the owner works on a task that one more death would end; it gets no second one.
    """
    known = ops.get(NodeLabel.RUN, run) or {}
    if known.get("status") != RunStatus.RUNNING.value:
        return []
    chosen = claim_candidates.candidates(ops, run, limit, frozenset(dead), has_suspect=has_suspect)
    if not chosen:
        _note_empty(ops, run)
        return []
    until = _later(ops.now(), lease_seconds)
    taken = [_granted(row, owner, ops.now(), until) for row in chosen]
    ops.upsert(NodeLabel.TASK, [grant.changed for grant in taken])
    _make_attempts(ops, run, [grant.claim for grant in taken if grant.claim.fresh])
    runs.emit_all(ops, run, [grant.event for grant in taken], known=known)
    return [grant.claim for grant in taken]


def _note_empty(ops: WriteOps, run: str) -> None:
    """Count a claim that others were faster than; only who saw work to be had claims, so it is rare."""
    row = ops.patch_if(NodeLabel.RUN, run, {}, {}) or {}
    ops.patch(NodeLabel.RUN, run, {"claimsEmpty": row_fields.int_field(row, "claimsEmpty") + 1})


def is_work_there(
    reads: ReadOps, run: str, dead: Collection[str] = (), *, has_suspect: bool = False
) -> bool:
    """Tell whether a claim would find anything: asked without the lock, so that idle processes keep nobody waiting."""
    return claim_candidates.is_any(reads, run, frozenset(dead), has_suspect=has_suspect)


def heartbeat(
    ops: WriteOps, run: str, tasks: Sequence[tuple[str, int]], owner: str, lease_seconds: float
) -> list[str]:
    """Renew leases; the tasks (plan ids) whose lease another holder has, or that have ended."""
    until = _later(ops.now(), lease_seconds)
    lost: list[str] = []
    for task, fence in tasks:
        mine = {"fence": fence, "lockedBy": owner}
        if ops.patch_if(NodeLabel.TASK, ids.task_id(run, task), mine, {"expiresAt": until}) is None:
            lost.append(task)
    return lost


def release_claim(ops: WriteOps, run: str, task: str, fence: int) -> bool:
    """End the lease and keep the phase; False if it was lost or had ended. Nobody died: no death is counted."""
    id, held = ids.task_id(run, task), {"fence": fence, "claimState": _HELD}
    row = ops.patch_if(NodeLabel.TASK, id, held, {})
    if row is None:
        return False
    return ops.patch(NodeLabel.TASK, id, {**_NO_LEASE, **_time_held(ops, row), "claimState": _FREE})


def give_back_all(ops: WriteOps, run: str, owner: str) -> None:
    """End every lease that a process still holds in a run: one of a claim that was cancelled half-way is known to nobody."""
    held: Where = {"runId": run, "lockedBy": owner, "claimState": _HELD}
    for row in ops.find(NodeLabel.TASK, held):
        release_claim(
            ops, run, row_fields.text_field(row, "taskId"), row_fields.int_field(row, "fence")
        )


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
    props: Row | None = None,
    attempt_props: Row | None = None,
    kind: EventKind,
    data: Mapping[str, object] | None = None,
) -> Row:
    """Change the status of a task with the values of its phase and its event.

    A terminal status and `preparing_retry` end the lease. The attempt gets a copy of the `changes` that belong to a phase, and
    its own `attempt_changes`.

    Raises:
        LeaseLost: The fence is old.
        IllegalMove: The table has no such move, or not by this mover.
    """
    row = check_fence(ops, run, task, fence)
    at = TaskStatus(row_fields.text_field(row, "status"))
    guard(at, to, mover)
    expect = {"fence": fence, "status": at.value}
    values = encode(*changes)
    changed: Row = {
        **(props or {}),
        **values,
        **_lease_after(to),
        **_time_held_until(ops, row, to),
        "status": to.value,
    }
    moved = ops.patch_if(NodeLabel.TASK, ids.task_id(run, task), expect, changed)
    if moved is None:
        raise _lost(task, fence)
    number = row_fields.int_field(moved, "attemptNumber")
    copy: Row = {
        **(attempt_props or {}),
        **_copied_to_attempt(values, to),
        **encode(*attempt_changes),
        "status": to.value,
    }
    ops.patch(NodeLabel.ATTEMPT, ids.attempt_id(run, task, number), copy)
    said = {**(data or {}), "from": at.value, "to": to.value}
    runs.append_event(ops, run, kind, task=task, attempt=number, data=said)
    return moved


_PHASE_NAMES = frozenset(name for names in PHASES.values() for name in names)
_VERDICT_NAMES = frozenset(PHASES[6])


def _copied_to_attempt(values: Row, to: TaskStatus) -> Row:
    """Return what the attempt keeps of a phase: on the task, the next attempt replaces it."""
    # A verdict stays on the attempt as it was sealed, however the task ends.
    kept = _PHASE_NAMES - _VERDICT_NAMES if to in TERMINAL else _PHASE_NAMES
    return {name: value for name, value in values.items() if name in kept}


_REUSED_OF_ATTEMPT = (
    "checksJson", "judgementJson", "workJson", "startJson", "receiptJson", "preambleHash",
)  # fmt: skip
_REUSED_OF_TASK = (
    "qcScore", "qcFeedback", "workerOutput", "workerToolCalls", "workerTokens", "workerDuration",
    "workerMessageCount", "filesChanged", "passedChecks", "qcIssues", "criteriaExecuted",
    "criteriaJudged", "criteriaUnverified", "criteriaFailed", "criteriaOpen",
)  # fmt: skip


def complete_reused_task(
    ops: WriteOps, run: str, task: str, change: ReuseChange, *, commit: str
) -> None:
    """Complete a task with a copy of the accepted attempt of another run.

    Raises:
        LeaseLost: A process claimed the task.
        StoreError: The other run has no such attempt.
    """
    source, number = change.taken_from, change.accepted_attempt
    theirs = _known(ops, source, task)
    attempt = ops.get(NodeLabel.ATTEMPT, ids.attempt_id(source, task, number))
    if attempt is None:
        raise StoreError(f"Run {source!r} has no attempt {number} of task {task!r}.")
    id, name = ids.task_id(run, task), ids.attempt_id(run, task, number)
    copy: dict[str, Value] = {
        "id": name, "name": f"{task} attempt {number}", "runId": run, "taskId": task, "seq": number,
        "attemptNumber": number, "status": TaskStatus.COMPLETED.value, "takenFrom": source,
    }  # fmt: skip
    ops.upsert(NodeLabel.ATTEMPT, [{**copy, **_chosen(attempt, _REUSED_OF_ATTEMPT)}])
    ops.link(EdgeType.HAS_ATTEMPT, [(id, name)])
    ops.patch(NodeLabel.TASK, id, {"attemptNumber": number})
    move(
        ops,
        run,
        task,
        0,
        TaskStatus.COMPLETED,
        TransitionActor.SCHEDULING,
        props={**_chosen(theirs, _REUSED_OF_TASK), **encode(change)},
        kind=EventKind.TASK_COMPLETED,
        data={"takenFrom": source, "commit": commit},
    )


def _chosen(row: Row, names: Sequence[str]) -> Row:
    return {name: row[name] for name in names if name in row}


def load_claimed_task(reads: ReadOps, run: str, task: str, fence: int) -> TaskRecord:
    """Load a task under its newest fence.

    Raises:
        LeaseLost: The fence is old.
    """
    return TaskRecord.from_row(check_fence(reads, run, task, fence))


def set_priority(ops: WriteOps, run: str, task: str, priority: float) -> None:
    """Set the priority of a task; a higher one is claimed first."""
    ops.patch(NodeLabel.TASK, ids.task_id(run, task), {"priority": priority})


def check_fence(reads: ReadOps, run: str, task: str, fence: int) -> Row:
    """Return the task's row if the fence is its newest.

    Raises:
        LeaseLost: It is not.
    """
    row = reads.get(NodeLabel.TASK, ids.task_id(run, task))
    if row is None or row_fields.int_field(row, "fence") != fence:
        raise _lost(task, fence)
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
    """Take the task's lock under its fence, and count outcomes that were gained: what tells a death from a loop.

    Args:
        ops: The transaction.
        run: Whose.
        task: Id in the plan.
        fence: Of its lease.
        outcomes: How many.
        tokens: What they cost.
        tool_calls: How many of them were a worker's calls.

    Raises:
        LeaseLost: The fence is old.
    """
    id = ids.task_id(run, task)
    row = ops.patch_if(NodeLabel.TASK, id, {"fence": fence}, {})
    if row is None:
        raise _lost(task, fence)
    more = {"outcomes": outcomes, "totalTokensUsed": tokens, "totalToolCalls": tool_calls}
    changed: Row = {name: row_fields.int_field(row, name) + n for name, n in more.items() if n}
    if changed:
        ops.patch(NodeLabel.TASK, id, changed)


def release_task(ops: WriteOps, run: str, ready: Sequence[tuple[str, float]]) -> int:
    """Let pending tasks be claimed, with their priorities; how many were not released before."""
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
    row = _known(ops, run, task)
    at = TaskStatus(row_fields.text_field(row, "status"))
    if at is TaskStatus.BLOCKED:
        return False
    guard(at, TaskStatus.BLOCKED, TransitionActor.SCHEDULING)
    cause: Row = {"cause": Cause.DEPENDENCY.value, "blockedBy": because}
    data = {"because": because}
    _end(ops, run, [row], TaskStatus.BLOCKED, cause, EventKind.TASK_BLOCKED, data)
    return True


def cancel(ops: WriteOps, run: str) -> list[str]:
    """Cancel every task that has not ended; their plan ids. Fences grow, so that who still works on one is refused."""
    ended = [status.value for status in TERMINAL]
    rows = [r for r in runs.tasks(ops, run) if row_fields.text_field(r, "status") not in ended]
    cause: Row = {"cause": Cause.CANCELLED.value}
    _end(ops, run, rows, TaskStatus.CANCELLED, cause, EventKind.TASK_CANCELLED, {})
    return [row_fields.text_field(row, "taskId") for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class _LeaseGrant:
    """What taking a task changes."""

    claim: Claim
    changed: Row
    event: runs.NewEvent


def _granted(row: Row, owner: str, now: str, until: str) -> _LeaseGrant:
    at = TaskStatus(row_fields.text_field(row, "status"))
    task, fence = row_fields.text_field(row, "taskId"), row_fields.int_field(row, "fence") + 1
    fresh = at in _NEW_ATTEMPT
    number = row_fields.int_field(row, "attemptNumber") + fresh
    changed: dict[str, Value] = {
        "id": row["id"],
        "lockedBy": owner,
        "lockedAt": now,
        "expiresAt": until,
        "fence": fence,
        "claimState": _HELD,
        "version": row_fields.int_field(row, "version") + 1,
        **(_attempt_began(at, number, now) if fresh else {}),
        **claim_candidates.death(row),
    }
    data: dict[str, object] = {"owner": owner, "fence": fence}
    if fresh:
        data |= {"from": at.value, "to": TaskStatus.WORKER_EXECUTING.value}
    kind = EventKind.ATTEMPT_STARTED if fresh else EventKind.LEASE_TAKEN
    claim = Claim(
        task=task,
        row={**row, **changed},
        fence=fence,
        attempt=number,
        fresh=fresh,
        suspect=claim_candidates.is_suspect({**row, **changed}),
        died=row_fields.int_field({**row, **changed}, "deaths") >= claim_candidates.MOST_DEATHS,
    )
    event = runs.NewEvent(kind=kind, task=task, attempt=number, data=data)
    return _LeaseGrant(claim=claim, changed=changed, event=event)


def _attempt_began(at: TaskStatus, number: int, now: str) -> Row:
    """Phase 2."""
    guard(at, TaskStatus.WORKER_EXECUTING, TransitionActor.WORKER)
    return {
        "status": TaskStatus.WORKER_EXECUTING.value,
        "attemptNumber": number,
        "isRetry": number > 1,
        "workerStartTime": now,
    }


def _make_attempts(ops: WriteOps, run: str, begun: Sequence[Claim]) -> None:
    """Make the nodes of attempts that begin."""
    copied = ("status", "attemptNumber", "isRetry", "retryReason", "workerStartTime")
    rows: list[Row] = [
        {
            "id": ids.attempt_id(run, claim.task, claim.attempt),
            "name": f"{claim.task} attempt {claim.attempt}",
            "runId": run,
            "taskId": claim.task,
            "seq": claim.attempt,
            **{name: claim.row[name] for name in copied if name in claim.row},
        }
        for claim in begun
    ]
    if rows:
        ops.upsert(NodeLabel.ATTEMPT, rows)
        pairs = [
            (str(claim.row["id"]), str(row["id"])) for claim, row in zip(begun, rows, strict=True)
        ]
        ops.link(EdgeType.HAS_ATTEMPT, pairs)


def _lease_after(to: TaskStatus) -> Row:
    if to in TERMINAL:
        return {**_NO_LEASE, "claimState": None}
    if to is TaskStatus.PREPARING_RETRY:
        return {**_NO_LEASE, "claimState": _FREE}
    return {}


def _time_held_until(reads: ReadOps, row: Row, to: TaskStatus) -> Row:
    return _time_held(reads, row) if _lease_after(to) else {}


def _time_held(reads: ReadOps, row: Row) -> Row:
    """Add up for how long a task was worked on, at the end of a lease: the part that a dead holder had is not known."""
    since = row_fields.text_field(row, "lockedAt")
    if not since:
        return {}
    seconds = (moment(reads.now()) - moment(since)).total_seconds()
    return {"heldSeconds": round(row_fields.float_field(row, "heldSeconds") + max(0.0, seconds), 3)}


def _end(
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
        task, at = (
            row_fields.text_field(row, "taskId"),
            TaskStatus(row_fields.text_field(row, "status")),
        )
        guard(at, to, TransitionActor.SCHEDULING)
        number, fence = (
            row_fields.int_field(row, "attemptNumber"),
            row_fields.int_field(row, "fence"),
        )
        changed: dict[str, Value] = {**props, **_lease_after(to), **_time_held(ops, row)}
        changed |= {"status": to.value, "fence": fence + 1}
        expect = {"status": at.value, "fence": fence}
        if ops.patch_if(NodeLabel.TASK, ids.task_id(run, task), expect, changed) is None:
            raise StoreError(f"Task {task!r} was changed by another process meanwhile.")
        ops.patch(NodeLabel.ATTEMPT, ids.attempt_id(run, task, number), {"status": to.value})
        said = {**data, "from": at.value, "to": to.value}
        events.append(runs.NewEvent(kind=kind, task=task, attempt=number, data=said))
    if events:
        runs.emit_all(ops, run, events)


def _known(reads: ReadOps, run: str, task: str) -> Row:
    row = reads.get(NodeLabel.TASK, ids.task_id(run, task))
    if row is None:
        raise StoreError(f"Run {run!r} has no task {task!r}.")
    return row


def _lost(task: str, fence: int) -> LeaseLost:
    return LeaseLost(f"Task {task!r}: fence {fence} is old, another holder has it.")


def _later(now: str, seconds: float) -> str:
    return stamp(moment(now) + timedelta(seconds=seconds))
