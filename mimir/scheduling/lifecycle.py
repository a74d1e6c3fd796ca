"""Lifecycle of a run in the store: one coordinator takes it, pauses, resumes and ends it."""

from collections.abc import Callable, Collection, Mapping

from mimir.domain.clock import moment
from mimir.domain.event import EventKind
from mimir.domain.run import INPUT, RunBudget
from mimir.domain.task_states import RUN_ENDED, RunStatus
from mimir.errors import BusyError, LeaseLost, Paused, UsageError
from mimir.store.operations import claims, leases, runs, worker_processes
from mimir.store.operations.record_loading import (
    find_last_event_time,
    find_run,
    load_run,
    save_change,
)
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.records.record_codec import PackedJson, StoredRecord, encode
from mimir.store.records.run_changes import (
    RunLimitsChange,
    RunPauseChange,
    RunPinnedChange,
    RunQueueChange,
)
from mimir.store.records.run_records import RunRecord

COORDINATOR = "coordinator"


def take_run(
    ops: WriteOps,
    run: str,
    owner: str,
    seconds: float,
    dead: Collection[str],
    *,
    resumed: bool,
    models: Mapping[str, str] | None = None,
) -> RunRecord:
    """Become the run's coordinator; `models` (role → name) replace those of a resumed run.

    Raises:
        BusyError: Another process coordinates it.
        UsageError: It has ended.
    """
    record = must_be_open(ops, run)
    if not leases.acquire_lease(ops, run, COORDINATOR, owner, seconds=seconds, dead=dead):
        raise BusyError(
            f"Run {run} is running in another process ({record.coordinator}).",
            next_step=f"Follow it: mimir status {run}  Join it: mimir worker --run {run}",
        )
    if resumed:
        changes: list[StoredRecord] = [RunPauseChange()]
        data: Mapping[str, object] = {}
        if models:
            merged = {**record.models.mapping(), **models}
            changes.append(RunPinnedChange(models=PackedJson.pack(merged)))
            names = ", ".join(f"{role} {model}" for role, model in sorted(models.items()))
            data = {
                "models": dict(models),
                "message": f"The run uses other models from now on: {names}.",
            }
        runs.set_status(
            ops,
            run,
            RunStatus.RUNNING,
            EventKind.RUN_RESUMED,
            data,
            # A run whose coordinator died is still `running` in the store.
            expect=(RunStatus.PAUSED, RunStatus.RUNNING),
            changes=changes,
        )
    return load_run(ops, run)


def begin(ops: WriteOps, run: str, tasks: int) -> bool:
    """Record that the work on a run begins; False if it is recorded already."""
    if runs.events(ops, run, kinds=(EventKind.RUN_STARTED,), limit=1):
        return False
    runs.append_event(ops, run, EventKind.RUN_STARTED, data={"tasks": tasks})
    # An invocation has left the queue of its session.
    if load_run(ops, run).queued_at:
        save_change(ops, run, RunQueueChange(), RunPauseChange())
    return True


def must_lead(reads: ReadOps, run: str, owner: str) -> None:
    """Require the coordinator lease, in the transaction that writes.

    Raises:
        LeaseLost: Another process coordinates the run.
    """
    if not _leads(reads, run, owner):
        raise LeaseLost(f"Run {run} is coordinated by another process.")


def _leads(reads: ReadOps, run: str, owner: str) -> bool:
    # The lease may have been lost since the last heartbeat.
    record = find_run(reads, run)
    return record is not None and record.coordinator == owner


def leave_run(ops: WriteOps, run: str, owner: str) -> None:
    """Release every lease of a process on a run; the run continues without it."""
    claims.give_back_all(ops, run, owner)
    leases.release_lease(ops, run, COORDINATOR, owner)
    worker_processes.unregister_process(ops, run, owner)


def must_be_open(reads: ReadOps, run: str) -> RunRecord:
    """Return a run that has not ended.

    Raises:
        UsageError: It has ended, or there is no such run.
    """
    record = load_run(reads, run)
    if record.status in RUN_ENDED:
        raise UsageError(
            f"Run {run} has ended: {record.status.value}.",
            next_step=f"Read its report: mimir report {run}",
        )
    return record


def refuse_todo_list(run: RunRecord) -> None:
    """Refuse a run that agents never work on.

    Raises:
        UsageError: It is a todo list.
    """
    if run.is_todo_list:
        raise UsageError(
            f"{run.id} is a todo list: clients of the server do its todos, and nothing proves them.",
            next_step=f"See it: mimir show {run.id}  Close it: mimir cancel {run.id}",
        )


def set_limits(ops: WriteOps, run: str, limits: RunBudget) -> None:
    """Set new totals of a run; None keeps a limit."""
    change = RunLimitsChange(
        max_calls=limits.max_calls,
        max_tokens=limits.max_tokens,
        time_limit_seconds=limits.seconds,
        max_cost=limits.max_cost,
    )
    # A change without values would still write the node.
    if encode(change):
        save_change(ops, run, change)


def pause(ops: WriteOps, run: str, owner: str, paused: Paused, seconds: float) -> None:
    """Pause a run: tasks keep their phases, this process's leases end, its time is added."""
    record = load_run(ops, run)
    leave_run(ops, run, owner)
    # The coordinator has written this pause already, without the time of its process.
    if paused.reason == INPUT and record.status is RunStatus.PAUSED:
        save_change(ops, run, _time_change(record, seconds))
    else:
        write_pause(ops, record, paused, seconds)


def pause_from_outside(ops: WriteOps, run: str, dead: Collection[str]) -> bool:
    """Pause a run for a user; its processes see it and stop. False: it is paused already.

    Raises:
        UsageError: It has ended, or it is a todo list or a planning run, which ends with its process.
    """
    record = must_be_open(ops, run)
    refuse_todo_list(record)
    if record.shown_status(ops.now(), dead) is not RunStatus.RUNNING:
        return False
    if record.kind == "plan":
        raise UsageError(
            f"Run {run} makes a plan, which only its own process can pause.",
            next_step="Press Ctrl-C in its terminal; mimir resume continues it.",
        )
    # The process that began this part of the run cannot add its time any more.
    kinds = (EventKind.RUN_CREATED, EventKind.RUN_STARTED, EventKind.RUN_RESUMED)
    began = moment(find_last_event_time(ops, run, kinds) or record.created_at)
    paused = Paused("The user paused it with mimir pause.", reason="interrupted")
    write_pause(ops, record, paused, (moment(ops.now()) - began).total_seconds())
    return True


def _time_change(record: RunRecord, seconds: float) -> RunLimitsChange:
    return RunLimitsChange(seconds_used=record.seconds_used + max(0.0, seconds))


def write_pause(ops: WriteOps, record: RunRecord, paused: Paused, seconds: float) -> None:
    """Write the pause of a running run with its events; leases stay."""
    run = record.id
    data = {"reason": paused.reason, "message": str(paused), "outcome": RunStatus.PAUSED.value}
    changes = (
        RunPauseChange(pause_reason=paused.reason, pause_message=str(paused)),
        _time_change(record, seconds),
    )
    changed = runs.set_status(
        ops,
        run,
        RunStatus.PAUSED,
        EventKind.RUN_PAUSED,
        data,
        expect=(RunStatus.RUNNING,),
        changes=changes,
    )
    if changed:
        runs.append_event(ops, run, EventKind.RUN_FINISHED, data=data)


def end(
    ops: WriteOps, run: str, owner: str, outcome: RunStatus, data: Mapping[str, object]
) -> None:
    """End a run: its last write."""
    # A pause that another process writes now is too late: all work is done and sealed.
    runs.set_status(
        ops,
        run,
        outcome,
        EventKind.RUN_FINISHED,
        {**data, "outcome": outcome.value},
        expect=(RunStatus.RUNNING, RunStatus.PAUSED),
        changes=(RunPauseChange(),),
    )
    leave_run(ops, run, owner)


def renew(run: str, owner: str, seconds: float) -> Callable[[WriteOps], bool]:
    """Return the write that renews the coordinator lease; False if it is not this process's."""

    def work(ops: WriteOps) -> bool:
        return _leads(ops, run, owner) and leases.acquire_lease(
            ops, run, COORDINATOR, owner, seconds=seconds
        )

    return work
