"""Runs with tasks and events: each change and its event are one transaction."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from typing import Literal, TypeVar

from mimir.domain import ids, json_value
from mimir.domain.event import Event, EventKind
from mimir.domain.money import ModelPrice, encode_price
from mimir.domain.plan import Plan, Task
from mimir.domain.task_states import RUN_ENDED, RunStatus, TaskStatus
from mimir.domain.value_class import value_class
from mimir.errors import StoreError
from mimir.store import codec
from mimir.store.protocol import ReadOps, Row, Where, WriteOps
from mimir.store.records.record_codec import StoredRecord, encode
from mimir.store.row_fields import int_field, json_field, text_field
from mimir.store.schema import EdgeType, NodeLabel, pack, unpack

T = TypeVar("T")
RunKind = Literal["plan", "execute", "agent"]

# Rows of a run that one batch reads: an attempt takes some 30 kB as objects.
AT_ONCE = 25
# Events of one batch; they are small.
_EVENTS_AT_ONCE = 100


@value_class
class NewRun:
    """Everything that is pinned when a run is created."""

    id: str
    kind: RunKind
    project_id: str
    project_name: str
    name: str
    request: str
    plan: Plan | None
    """None: a planning run, which makes a plan."""
    plan_path: str
    settings: Mapping[str, object]
    """JSON values, without secrets."""
    engine_version: str
    base_commit: str
    base_tree: str
    max_calls: int | None = None
    """Model calls. None: no limit."""
    max_tokens: int | None = None
    time_limit_seconds: float | None = None
    max_cost: int | None = None
    """Units of money."""
    prices: Mapping[str, ModelPrice] = field(default_factory=dict[str, ModelPrice])
    """By model."""
    agent: str = ""
    """Address of the invoked definition. Empty: the run is no invocation."""
    parent_run: str = ""
    spawned_by: str = ""
    """Address of the agent of `parent_run` that spawned it. Empty: it has no parent."""
    spawn_key: str = ""
    """Of the call that spawned it."""
    principal: str = ""
    """Client of the server that asked for the run. Empty: the user typed it."""
    session_id: str = ""
    refines: str = ""
    """Invocation whose result this one improves. Empty: none."""
    only: tuple[str, ...] = ()
    """Tasks that the user named; the plan holds them with their dependencies. Empty: all."""
    seal_form: int | None = None
    """Form of the seals. None: the gate seals no facts, and the run gets no record."""


@value_class
class NewEvent:
    """Event without its number."""

    kind: EventKind
    task: str = ""
    attempt: int = 0
    data: Mapping[str, object] = field(default_factory=dict[str, object])


def encode_plan(plan: Plan) -> str:
    """Return a plan as stored; a large one takes time, and needs no transaction.

    Raises:
        StoreError: It could not be read again.
    """
    # Read again at once: a plan that no later process can read must not be pinned.
    text = pack(codec.encode(plan))
    read_plan(text)
    return text


def create(ops: WriteOps, new: NewRun, plan: str = "") -> None:
    """Create a run with its project, tasks and edges: no task is released.

    A `plan` from `encode_plan` saves time in the transaction.

    Raises:
        StoreError: A run of this id exists.
    """
    if ops.get(NodeLabel.RUN, new.id) is not None:
        raise StoreError(f"Run {new.id!r} exists.")
    number = _count_in_project(ops, new)
    ops.upsert(NodeLabel.RUN, [_run_row(ops, new, number)])
    ops.link(EdgeType.HAS_RUN, [(new.project_id, new.id)])
    tasks = new.plan.tasks if new.plan else ()
    if new.plan:
        _pin_plan(ops, new.id, plan or encode_plan(new.plan))
    for batch in in_batches(enumerate(tasks)):
        ops.upsert(NodeLabel.TASK, [_task_row(new.id, seq, task, ops.now()) for seq, task in batch])
    ops.link(EdgeType.HAS_TASK, [(new.id, ids.task_id(new.id, task.id)) for task in tasks])
    ops.link(
        EdgeType.DEPENDS_ON,
        [
            (ids.task_id(new.id, t.id), ids.task_id(new.id, d))
            for t in tasks
            for d in t.dependencies
        ],
    )
    data = {"kind": new.kind, "name": new.name, "tasks": [task.id for task in tasks]}
    append_event(ops, new.id, EventKind.RUN_CREATED, data=data)


def add_task(ops: WriteOps, run: str, plan: Plan) -> None:
    """Store a plan that has one more task, its last one; of a todo list only."""
    task, count = plan.tasks[-1], len(plan.tasks)
    _pin_plan(ops, run, encode_plan(plan))
    ops.upsert(NodeLabel.TASK, [_task_row(run, count - 1, task, ops.now())])
    ops.link(EdgeType.HAS_TASK, [(run, ids.task_id(run, task.id))])
    ops.patch(NodeLabel.RUN, run, {"taskCount": count})


def append_event(
    ops: WriteOps,
    run: str,
    kind: EventKind,
    *,
    task: str = "",
    attempt: int = 0,
    data: Mapping[str, object] | None = None,
) -> int:
    """Write the run's next event; return its number.

    Raises:
        StoreError: There is no such run.
    """
    return emit_all(ops, run, [NewEvent(kind=kind, task=task, attempt=attempt, data=data or {})])


def emit_all(
    ops: WriteOps, run: str, events: Sequence[NewEvent], *, known: Row | None = None
) -> int:
    """Write several events; return the last number. `known`: the run's row, if just read."""
    # A `known` row may be older than the newest event; then the row is read again.
    while True:
        row, known = known or _load_run_row(ops, run), None
        last = int_field(row, "eventSeq")
        end = last + len(events)
        if ops.patch_if(NodeLabel.RUN, run, {"eventSeq": last}, {"eventSeq": end}) is not None:
            break
    rows = [_event_row(run, last + i, e, ops.now()) for i, e in enumerate(events, start=1)]
    ops.upsert(NodeLabel.EVENT, rows)
    return end


def events(
    reads: ReadOps,
    run: str,
    *,
    after: int = 0,
    limit: int | None = None,
    kinds: Collection[EventKind] = (),
) -> list[Event]:
    """Return a run's events after a number, in order; of these kinds if any are named."""
    only: Where = {"kind": ("in", [kind.value for kind in kinds])} if kinds else {}
    where: Where = {"runId": run, "seq": (">", after), **only}
    return [_event(row) for row in reads.find(NodeLabel.EVENT, where, order=("seq",), limit=limit)]


def last_event(reads: ReadOps, run: str) -> int:
    """Return the number of a run's newest event; 0: there is none."""
    found = reads.find(NodeLabel.RUN, {"id": run}, only=("eventSeq",))
    return int_field(found[0], "eventSeq") if found else 0


def each_event(reads: ReadOps, run: str, kinds: Collection[EventKind]) -> Iterator[Event]:
    """Yield a run's events of these kinds in order, one batch in memory at a time."""
    after = 0
    while found := events(reads, run, after=after, kinds=kinds, limit=_EVENTS_AT_ONCE):
        yield from found
        after = found[-1].seq


def last_seq(reads: ReadOps, run: str) -> int:
    """Return the number of the run's last event."""
    return int_field(_load_run_row(reads, run), "eventSeq")


def read_plan(text: str) -> Plan:
    """Return a plan from its stored text; the last one is cached by its hash.

    Raises:
        StoreError: It cannot be read.
    """
    # A pinned plan never changes, and one process reads it several times.
    name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    plan = _LAST.get(name)
    if plan is None:
        plan = codec.decode(Plan, unpack(text))
        _LAST.clear()
        _LAST[name] = plan
    return plan


_LAST: dict[bytes, Plan] = {}


def in_batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Part items into batches of `AT_ONCE`."""
    left = iter(items)
    while batch := list(islice(left, AT_ONCE)):
        yield batch


def set_status(
    ops: WriteOps,
    run: str,
    to: RunStatus,
    kind: EventKind,
    data: Mapping[str, object] | None = None,
    *,
    expect: Sequence[RunStatus],
    changes: Sequence[StoredRecord] = (),
) -> bool:
    """Change the run's status with its event; False if the status is none of `expect`."""
    # Read and compared in one transaction, so two processes cannot both end a run.
    before = _load_run_row(ops, run)
    at = text_field(before, "status")
    if at not in [status.value for status in expect]:
        return False
    ended: Row = {"finishedAt": ops.now()} if to in RUN_ENDED else {}
    changed: Row = {**ended, **encode(*changes), "status": to.value}
    if ops.patch_if(NodeLabel.RUN, run, {"status": at}, changed) is None:
        return False
    append_event(ops, run, kind, data={**(data or {}), "from": at, "to": to.value})
    return True


def advance_head(ops: WriteOps, run: str, expect_head: str, new_head: str, new_tree: str) -> bool:
    """Move the head of the run branch; False if the head is another one now."""
    # The merge was checked on this head; on another one it must be checked again.
    changed = {"head": new_head, "headTree": new_tree}
    return ops.patch_if(NodeLabel.RUN, run, {"head": expect_head}, changed) is not None


def fold(events: Iterable[Event]) -> dict[str, TaskStatus]:
    """Return the status of each task from the events alone; it equals the rows."""
    standing: dict[str, TaskStatus] = {}
    for event in events:
        if event.kind is EventKind.RUN_CREATED:
            named = json_value.as_texts(event.data.get("tasks"))
            standing.update(dict.fromkeys(named, TaskStatus.PENDING))
        # A todo list grows after its creation.
        if event.kind is EventKind.TASK_READY:
            standing.setdefault(event.task, TaskStatus.PENDING)
        to = event.data.get("to")
        if event.task and isinstance(to, str):
            standing[event.task] = TaskStatus(to)
    return standing


def _load_run_row(reads: ReadOps, run: str) -> Row:
    row = reads.get(NodeLabel.RUN, run)
    if row is None:
        raise StoreError(f"There is no run {run!r}.")
    return row


def _count_in_project(ops: WriteOps, new: NewRun) -> int:
    """Number the project's runs, so that two of one moment have an order."""
    ops.upsert(
        NodeLabel.PROJECT,
        [{"id": new.project_id, "name": new.project_name, "projectId": new.project_id}],
    )
    project = ops.patch_if(NodeLabel.PROJECT, new.project_id, {}, {}) or {}
    number = int_field(project, "runCount") + 1
    ops.patch(NodeLabel.PROJECT, new.project_id, {"runCount": number})
    return number


def _run_row(ops: WriteOps, new: NewRun, number: int) -> Row:
    parent = ops.get(NodeLabel.RUN, new.parent_run) if new.parent_run else None
    plan = new.plan
    return {
        "id": new.id, "name": new.name, "runId": new.id, "projectId": new.project_id, "kind": new.kind,
        "seq": number, "status": RunStatus.RUNNING.value, "createdAt": ops.now(), "request": new.request,
        "isReadOnly": True if plan and plan.is_read_only else None, "agent": new.agent or None,
        "principal": new.principal or None, "refines": new.refines or None,
        "title": plan.title if plan else "", "goal": plan.goal if plan else "", "planPath": new.plan_path,
        "taskCount": len(plan.tasks) if plan else 0, "only": list(new.only), "sealForm": new.seal_form,
        "settingsJson": pack(new.settings), "engineVersion": new.engine_version,
        "baseCommit": new.base_commit, "baseTree": new.base_tree,
        "head": new.base_commit, "headTree": new.base_tree,
        "maxCalls": new.max_calls, "maxTokens": new.max_tokens, "timeLimitSeconds": new.time_limit_seconds,
        "maxCost": new.max_cost, "pricesJson": _prices(new),
        "callsUsed": 0, "tokensUsed": 0, "tokensReserved": 0, "eventSeq": 0, "version": 0,
        "spawnedBy": new.spawned_by or None, "spawnKey": new.spawn_key or None,
        "parentRun": new.parent_run, "sessionId": new.session_id,
        "depth": int_field(parent, "depth") + 1 if parent else 0,
    }  # fmt: skip


def _prices(new: NewRun) -> str | None:
    pinned = {name: encode_price(one) for name, one in new.prices.items()}
    return pack(pinned) if pinned else None


def _task_row(run: str, seq: int, task: Task, now: str) -> Row:
    return {
        "id": ids.task_id(run, task.id), "name": task.title or task.id, "runId": run, "taskId": task.id,
        "seq": seq, "title": task.title, "prompt": task.prompt, "status": TaskStatus.PENDING.value,
        "taskCreatedAt": now, "workerRole": task.worker_role, "qcRole": task.reviewer,
        "verificationCriteria": [f"{c.id}: {c.text}" for c in task.criteria],
        "criteriaJson": pack(codec.encode(task.criteria)), "checksJson": pack(codec.encode(task.checks)),
        "dependencies": list(task.dependencies), "files": list(task.files),
        "contextFiles": list(task.context_files), "tools": list(task.tools),
        "estimatedToolCalls": task.estimated_tool_calls, "estimatedMinutes": task.estimated_minutes,
        "timeLimitMinutes": task.time_limit_minutes, "maxRetries": task.max_retries, "model": task.model,
        "parallelGroup": task.parallel_group, "attemptNumber": 0, "isRetry": False, "released": False,
        "priority": 0.0, "fence": 0, "version": 0, "outcomes": 0, "outcomesAtDeath": 0, "deaths": 0,
        "qcFailuresCount": 0, "totalTokensUsed": 0, "totalToolCalls": 0,
    }  # fmt: skip


def plan_id(run: str) -> str:
    """Return the id of the artifact that holds the plan of a run."""
    return f"{run}#plan"


def _pin_plan(ops: WriteOps, run: str, text: str) -> None:
    """Store the plan separately: the run's row changes with every event."""
    row: Row = {"id": plan_id(run), "name": "plan", "runId": run, "kind": "plan", "text": text}
    ops.upsert(NodeLabel.ARTIFACT, [row])
    ops.link(EdgeType.PRODUCED, [(run, plan_id(run))])


def _event_row(run: str, seq: int, event: NewEvent, now: str) -> Row:
    return {
        "id": ids.event_id(run, seq), "name": event.kind.value, "runId": run, "seq": seq, "at": now,
        "kind": event.kind.value, "task": event.task, "attempt": event.attempt, "dataJson": pack(event.data),
    }  # fmt: skip


def _event(row: Row) -> Event:
    return Event(
        seq=int_field(row, "seq"),
        kind=EventKind(text_field(row, "kind")),
        run=text_field(row, "runId"),
        at=text_field(row, "at"),
        task=text_field(row, "task"),
        attempt=int_field(row, "attempt"),
        data=json_field(row, "dataJson"),
    )
