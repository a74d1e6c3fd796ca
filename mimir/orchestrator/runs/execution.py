"""The verb `drive`: serve a run through its tasks, the final gate, apply and report, or to where it pauses.

It may be repeated after a crash: what was done is in the store, and is not done again.
"""

import asyncio
import contextlib
import errno
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from mimir.domain.event import EventKind
from mimir.domain.run import Apply, Ending, Limits, exit_code
from mimir.domain.task_states import RUN_ENDED, RunStatus
from mimir.errors import BusyError, MimirError, ModelError, Paused, SandboxError, WorkspaceError
from mimir.orchestrator import plan_creation, project_identity, result_application, run_models
from mimir.orchestrator.gc_tuning import collected_seldom
from mimir.orchestrator.runs import creation, inspection, worker_status
from mimir.orchestrator.services import Parts
from mimir.reporting.summary.incremental import Account
from mimir.scheduling import lifecycle
from mimir.scheduling.completion.result_reuse import take_over
from mimir.scheduling.completion.run_outcome import End, finish
from mimir.scheduling.coordinator import Coordinator
from mimir.scheduling.execution.attempt_runner import Pursuit, Tools
from mimir.scheduling.execution.preparation import Preparer
from mimir.scheduling.processes.run_server import serve
from mimir.scheduling.run_services import Crew, Roster
from mimir.scheduling.task_queries import Completions
from mimir.store import row_fields
from mimir.store.operations import budget, claims, estimates, memory, runs
from mimir.store.protocol import Ops, Row
from mimir.workspace.aio import beside, to_its_end
from mimir.workspace.stale_cleanup import sweep


async def drive(
    parts: Parts, run: str, *, workers: int, apply: Apply, limits: Limits, resumed: bool
) -> Ending:
    """Serve a run to its end, or to where it pauses.

    Raises:
        BusyError: Another process coordinates it.
        ConfigurationError: Its money is to be bounded, and a model had no price when it began.
        UnavailableError: The run is of another project, or the sandbox does not work.
        UsageError: There is no run of this name.
    """
    store = parts.store
    await parts.sandbox.probe()  # what its trial needs lies where is swept
    await asyncio.to_thread(sweep, parts.work_room, parts.owners.is_alone)
    row = await store.read(partial(runs.node, run=run), brief=True)
    if RunStatus(row_fields.text(row, "status")) in RUN_ENDED:
        shutil.rmtree(parts.work_room / run, ignore_errors=True)  # killed between its end and this
        return replace(ended(row), message="It had ended already.")
    await project_identity.admit(parts, row)
    taken = run_models.taken_up(parts, row)
    parts = taken.parts
    result_application.must_be_possible(parts, apply)
    parts.check_models()
    if limits.max_cost is not None or row.get("maxCost") is not None:
        plan = runs.plan_of(await store.read(partial(runs.get, run=run)))
        budget.must_be_priced(row, creation.asked(parts, plan))
    await creation.require_sandbox(parts)
    leads = await _begin(parts, run, resumed=resumed, models=taken.models)
    await _say_what_stays(parts, run, taken.left_aside)
    await store.write(partial(lifecycle.set_limits, run=run, limits=limits), durable=False)
    started = parts.clock.monotonic()
    try:
        return await through(parts, run, workers, apply, leads=leads)
    except Paused as paused:
        return await _pause(parts, run, paused, started)
    except (ModelError, WorkspaceError, SandboxError, OSError) as error:
        paused = as_pause(error)
        if paused is None:
            raise
        return await _pause(parts, run, paused, started)
    except asyncio.CancelledError:
        interrupted = Paused("Interrupted.", reason="interrupted", exit_code=130)
        await asyncio.shield(_pause(parts, run, interrupted, started))
        raise


async def _say_what_stays(parts: Parts, run: str, models: Mapping[str, str]) -> None:
    """Say which models (role → name) a run goes on with, though others are set by now."""
    if models:
        asked = ", ".join(f"{role} {model}" for role, model in sorted(models.items()))
        notice = f"Other models are set by now; the run goes on with those it began with: {asked}."
        await parts.store.write(partial(_tell, run=run, notices=[notice]), durable=False)


async def take(
    parts: Parts, run: str, *, resumed: bool, models: Mapping[str, str] | None = None
) -> None:
    """Become the coordinator of a run; `models` as `lifecycle.take` has them.

    Raises:
        BusyError: Another process coordinates it.
        UsageError: It has ended.
    """
    write = partial(
        lifecycle.take,
        run=run,
        owner=parts.owner,
        seconds=parts.lease_seconds,
        dead=await worker_status.dead(parts, run),
        resumed=resumed,
        models=models,
    )
    await parts.leases.write(write, durable=False)  # no lease outlives the power


async def _begin(parts: Parts, run: str, *, resumed: bool, models: Mapping[str, str]) -> bool:
    """Take the chair; False: a worker has it, which was faster than the process that has just begun the run.

    Raises:
        BusyError: The run was begun before, and another process coordinates it.
    """
    try:
        await take(parts, run, resumed=resumed, models=models)
    except BusyError:
        if resumed:
            raise
        return False
    return True


def ended(row: Row) -> Ending:
    """Return how a run ended that has nothing left to do for this process."""
    outcome = RunStatus(row_fields.text(row, "status"))
    return Ending(
        run=str(row["id"]),
        outcome=outcome,
        exit_code=exit_code(outcome),
        next_step=f"Look at it: mimir report {row['id']}",
        plan_path=row_fields.text(row, "planPath"),
        commit=row_fields.text(row, "finalCommit"),
        seal=row_fields.text(row, "seal"),
    )


async def plan_again(parts: Parts, run: str, limits: Limits) -> Ending:
    """Go on with a planning run."""
    await plan_creation.raise_limits(parts, run, limits)
    row = await parts.store.read(partial(runs.node, run=run), brief=True)
    taken = run_models.taken_up(parts, row)
    planned = await plan_creation.plan(taken.parts, run, models=taken.models)
    outcome = RunStatus.COMPLETED if planned.exit_code == 0 else RunStatus.FAILED
    return Ending(
        run=run,
        outcome=outcome,
        exit_code=planned.exit_code,
        plan_path=planned.path,
        next_step=f"Look at it: mimir check {planned.path}  Run it: mimir execute {planned.path}",
    )


async def cancel(parts: Parts, run: str) -> None:
    """Cancel what has not ended; a process that works on it is refused by its fence.

    Raises:
        UsageError: It has ended, or there is none of this name.
    """

    def work(ops: Ops) -> None:
        lifecycle.must_be_open(ops, run)
        claims.cancel(ops, run)
        runs.set_status(
            ops,
            run,
            RunStatus.CANCELLED,
            EventKind.RUN_FINISHED,
            {"outcome": RunStatus.CANCELLED.value},
            expect=(RunStatus.RUNNING, RunStatus.PAUSED),
        )

    await parts.store.write(work)
    await inspection.write_report(parts, run)


async def through(parts: Parts, run: str, workers: int, apply: Apply, *, leads: bool) -> Ending:
    """Serve a run until it has ended, by this process or by another one that serves it.

    Args:
        parts: Services.
        run: Id.
        workers: Tasks at once.
        apply: What is brought into the person's files, if this process ends the run.
        leads: True: this process has taken the coordinator's lease.

    Raises:
        Paused: Why this process stops.
    """
    async with _coordinating(parts, run, leads=leads):
        facts = await creation.facts(parts, run)
    parts.show_base(facts.base_commit, facts.project)
    crew = Crew(
        facts=facts,
        store=parts.store,
        leases=parts.leases,
        clock=parts.clock,
        owner=parts.owner,
        process=parts.process,
        owners=Roster(owners=parts.owners, host=parts.process.host),
        lease_seconds=parts.lease_seconds,
        work_room=parts.work_room,
        wake=parts.wake,
        completions=Completions(facts.plan),
        pace=parts.pace,
    )
    tools = Tools(
        history=parts.history,
        checks=parts.checks,
        models=parts.models,
        tools=parts.tools,
        preparer=Preparer(crew, parts.history, parts.choices["worker"], parts.redact),
        qc_choice=parts.choices["qc"],
        redact=parts.redact,
    )
    lead = partial(_lead, parts, crew, apply)
    with collected_seldom():
        ending = await serve(crew, Pursuit(crew, tools), lead, agents=workers, leads=leads)
    if ending is None:
        await parts.leases.write(partial(lifecycle.leave, run=run, owner=parts.owner))
        ending = ended(await parts.store.read(partial(runs.node, run=run)))
    if ending.outcome in RUN_ENDED:
        # Not before every agent of this process has stopped: one that clears its own workspace away would be in the way.
        await to_its_end(shutil.rmtree, parts.work_room / run, ignore_errors=True)
    return ending


async def _lead(parts: Parts, crew: Crew, apply: Apply) -> Ending:
    """Do what is done once a run: begin it, decide until every task has ended, pass the gate, apply, report."""
    run = crew.facts.id
    row = await parts.store.read(partial(runs.node, run=run), brief=True)
    tasks = len(crew.facts.plan.tasks)
    await parts.store.write(partial(lifecycle.begin, run=run, tasks=tasks), durable=False)
    source = row_fields.text(row, "fromRun")
    if source:
        await take_over(crew, parts.history, parts.checks, source)
    account = Account(run)
    async with beside(inspection.read_ahead(crew, account)):
        await _decide(crew, _left(row))
    row = await parts.store.read(partial(runs.node, run=run), brief=True)
    if (
        row_fields.text(row, "status") == RunStatus.CANCELLED.value
    ):  # from another process, meanwhile
        return Ending(run=run, outcome=RunStatus.CANCELLED, exit_code=1, message="Cancelled.")
    end = await finish(crew, parts.history, parts.checks)
    return await _close(parts, account, end, apply)


async def _decide(crew: Crew, seconds: float | None) -> None:
    """Release and block tasks until all have ended.

    Raises:
        Paused: The run's time limit is reached.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            await Coordinator(crew).drive()
    except TimeoutError:
        if not limit.expired():
            raise
        raise Paused(
            "The run's time limit is reached.",
            reason="time_limit",
            next_step="Go on with a new total: mimir resume --time-limit MINUTES",
        ) from None


async def _close(parts: Parts, account: Account, end: End, apply: Apply) -> Ending:
    """Apply, report, end: in this order, so that the report tells of what was applied."""
    run = account.run
    applied = await result_application.finish(parts, run, end, apply)
    notices = parts.notices()
    if notices:
        await parts.store.write(partial(_tell, run=run, notices=notices), durable=False)
    learn = partial(_learn, parts, run)
    path = await inspection.write_last_report(parts, account, end.outcome, meanwhile=[learn])
    data = {"seal": end.seal, "commit": end.commit, "report": path}

    def work(ops: Ops) -> None:
        lifecycle.must_lead(ops, run, parts.owner)
        runs.emit(ops, run, EventKind.REPORT_WRITTEN, data={"path": path})
        lifecycle.end(ops, run, parts.owner, end.outcome, data)

    await parts.store.write(work)
    row = await parts.store.read(partial(runs.node, run=run), brief=True)
    return Ending(
        run=run,
        outcome=end.outcome,
        exit_code=exit_code(end.outcome),
        message=" ".join(end.red),
        report_path=path,
        plan_path=row_fields.text(row, "planPath"),
        commit=end.commit,
        applied=applied.paths,
        conflicts=applied.conflicts,
        seal=end.seal,
    )


async def _learn(parts: Parts, run: str) -> None:
    """Keep what the run teaches later ones; no report tells of it."""
    await parts.store.write(partial(memory.learn_from_run, run=run))
    took = await parts.store.read(partial(estimates.of_run, run=run))
    await parts.store.write(
        partial(estimates.keep, project=parts.project_id, run=run, samples=took)
    )


def _tell(ops: Ops, run: str, notices: Sequence[str]) -> None:
    for notice in notices:
        runs.emit(ops, run, EventKind.WARNING, data={"message": notice})


async def _pause(parts: Parts, run: str, paused: Paused, started: float) -> Ending:
    seconds = parts.clock.monotonic() - started
    await parts.leases.write(
        partial(lifecycle.pause, run=run, owner=parts.owner, paused=paused, seconds=seconds)
    )
    path = ""
    with contextlib.suppress(MimirError, OSError):  # a full disk must not hide why the run paused
        path, _ = await inspection.write_report(parts, run)
    return Ending(
        run=run,
        outcome=RunStatus.PAUSED,
        exit_code=paused.exit_code,
        message=str(paused),
        next_step=paused.next_step or f"Go on with: mimir resume {run}",
        report_path=path,
    )


def as_pause(error: ModelError | WorkspaceError | SandboxError | OSError) -> Paused | None:
    """Say what was lost in mid-run that a person can bring back; None: that is not it, but a fault of ours."""
    match error:
        case ModelError(scope="run"):
            reason, code, step = "configuration", 78, error.next_step
        case ModelError():
            reason, code, step = "provider", 75, error.next_step
        case SandboxError():
            reason, code, step = "sandbox", 75, error.next_step
        case WorkspaceError():
            reason, code, step = "workspace", 75, error.next_step
        case _ if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason, code, step = "disk", 75, "Free some space, then: mimir resume"
        case _:
            return None
    return Paused(str(error), reason=reason, exit_code=code, next_step=step)


@contextlib.asynccontextmanager
async def _coordinating(parts: Parts, run: str, *, leads: bool) -> AsyncGenerator[None]:
    """Renew the coordinator's lease at a third of its length while the block runs, if it is ours."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(parts.lease_seconds / 3)
            await parts.leases.write(lifecycle.renew(run, parts.owner, parts.lease_seconds))

    async with beside(beat()) if leads else contextlib.nullcontext():
        yield


def _left(row: Row) -> float | None:
    limit = row.get("timeLimitSeconds")
    if not isinstance(limit, int | float):
        return None
    return max(0.0, float(limit) - row_fields.number(row, "secondsUsed"))
