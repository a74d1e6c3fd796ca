"""A run's beginning and end in the store: taken by one coordinator, paused, resumed, ended."""

from collections.abc import Callable, Collection, Mapping

from mimir.domain.event import EventKind
from mimir.domain.run import RunBudget
from mimir.domain.task_states import RUN_ENDED, RunStatus
from mimir.errors import BusyError, LeaseLost, Paused, UsageError
from mimir.store import row_fields
from mimir.store.operations import claims, leases, runs, worker_processes
from mimir.store.protocol import ReadOps, Row, Value, WriteOps
from mimir.store.schema import NodeLabel, pack

COORDINATOR = "coordinator"


def shown_status(reads: ReadOps, row: Row, dead: Collection[str]) -> RunStatus:
    """Return what a person is told: a run that nobody serves is paused, whatever its process wrote before it died."""
    status = RunStatus(row_fields.text_field(row, "status"))
    if status is RunStatus.RUNNING and not leases.holder(reads, row, COORDINATOR, dead):
        return RunStatus.PAUSED
    return status


def take_run(
    ops: WriteOps,
    run: str,
    owner: str,
    seconds: float,
    dead: Collection[str],
    *,
    resumed: bool,
    models: Mapping[str, str] | None = None,
) -> Row:
    """Become the run's coordinator; of a run that goes on, `models` (role → name) are asked from now on.

    Raises:
        BusyError: Another process coordinates it.
        UsageError: It has ended.
    """
    must_be_open(ops, run)
    row = runs.node(ops, run)
    if not leases.acquire_lease(ops, run, COORDINATOR, owner, seconds=seconds, dead=dead):
        raise BusyError(
            f"Run {run} is running in another process ({row_fields.text_field(row, COORDINATOR)}).",
            next_step=f"Follow it: mimir status {run}  Help it: mimir worker --run {run}",
        )
    if resumed:
        runs.set_status(
            ops,
            run,
            RunStatus.RUNNING,
            EventKind.RUN_RESUMED,
            _told(models),
            expect=(RunStatus.PAUSED, RunStatus.RUNNING),
            props={"pauseReason": None, "pauseMessage": None, **_remembered(row, models)},
        )
    return runs.node(ops, run)


def _told(models: Mapping[str, str] | None) -> Mapping[str, object]:
    if not models:
        return {}
    asked = ", ".join(f"{role} {model}" for role, model in sorted(models.items()))
    return {"models": dict(models), "message": f"From now on these models are asked: {asked}."}


def _remembered(row: Row, models: Mapping[str, str] | None) -> Row:
    if not models:
        return {}
    return {"modelsJson": pack({**row_fields.json_field(row, "modelsJson"), **models})}


def begin(ops: WriteOps, run: str, tasks: int) -> bool:
    """Say that the work on a run begins; False: that was said before, by this process or by one that died."""
    if runs.events(ops, run, kinds=(EventKind.RUN_STARTED,), limit=1):
        return False
    runs.append_event(ops, run, EventKind.RUN_STARTED, data={"tasks": tasks})
    return True


def must_lead(reads: ReadOps, run: str, owner: str) -> None:
    """Refuse what only the coordinator may write: it is asked in the transaction that writes.

    Raises:
        LeaseLost: Another process coordinates the run by now.
    """
    row = reads.get(NodeLabel.RUN, run) or {}
    if row_fields.text_field(row, COORDINATOR) != owner:
        raise LeaseLost(f"Run {run} is coordinated by another process.")


def leave_run(ops: WriteOps, run: str, owner: str) -> None:
    """Give everything back that a process holds of a run, which goes on without it."""
    claims.give_back_all(ops, run, owner)
    leases.release_lease(ops, run, COORDINATOR, owner)
    worker_processes.unregister_process(ops, run, owner)


def must_be_open(reads: ReadOps, run: str) -> None:
    """Refuse what only makes sense for a run that has not ended.

    Raises:
        UsageError: It has ended, or there is none of this name.
    """
    status = RunStatus(row_fields.text_field(runs.node(reads, run), "status"))
    if status in RUN_ENDED:
        raise UsageError(
            f"Run {run} has ended: {status.value}.", next_step=f"Look at it: mimir report {run}"
        )


def set_limits(ops: WriteOps, run: str, limits: RunBudget) -> None:
    """Set new totals of a run; None leaves one as it is."""
    values: dict[str, Value] = {}
    if limits.max_calls is not None:
        values["maxCalls"] = limits.max_calls
    if limits.max_tokens is not None:
        values["maxTokens"] = limits.max_tokens
    if limits.seconds is not None:
        values["timeLimitSeconds"] = limits.seconds
    if limits.max_cost is not None:
        values["maxCost"] = limits.max_cost
    if values:
        ops.patch("Run", run, values)


def pause(ops: WriteOps, run: str, owner: str, paused: Paused, seconds: float) -> None:
    """Pause a run: phases stay, this process's leases are given back, the time used is added up."""
    row = runs.node(ops, run)
    leave_run(ops, run, owner)
    data = {"reason": paused.reason, "message": str(paused), "outcome": RunStatus.PAUSED.value}
    moved = runs.set_status(
        ops,
        run,
        RunStatus.PAUSED,
        EventKind.RUN_PAUSED,
        data,
        expect=(RunStatus.RUNNING,),
        props={
            "pauseReason": paused.reason,
            "pauseMessage": str(paused),
            "secondsUsed": row_fields.float_field(row, "secondsUsed") + seconds,
        },
    )
    if moved:
        runs.append_event(ops, run, EventKind.RUN_FINISHED, data=data)


def end(
    ops: WriteOps, run: str, owner: str, outcome: RunStatus, data: Mapping[str, object]
) -> None:
    """End a run: its last write."""
    runs.set_status(
        ops,
        run,
        outcome,
        EventKind.RUN_FINISHED,
        {**data, "outcome": outcome.value},
        expect=(RunStatus.RUNNING,),
    )
    leave_run(ops, run, owner)


def renew(run: str, owner: str, seconds: float) -> Callable[[WriteOps], bool]:
    """Return the write that renews the coordinator's lease; False: it is not this process's any more, also if nobody has it."""

    def work(ops: WriteOps) -> bool:
        row = ops.get(NodeLabel.RUN, run) or {}
        mine = row_fields.text_field(row, COORDINATOR) == owner
        return mine and leases.acquire_lease(ops, run, COORDINATOR, owner, seconds=seconds)

    return work
