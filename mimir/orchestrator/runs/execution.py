"""The verb `execute_run`: serve a run through its tasks, the final gate, apply and report, or to where it pauses.

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
from mimir.domain.run import Apply, RunBudget, RunResult, exit_code
from mimir.domain.task_states import RUN_ENDED, RunStatus
from mimir.errors import BusyError, MimirError, ModelError, Paused, SandboxError, WorkspaceError
from mimir.orchestrator import plan_creation, project_identity, result_application, run_models
from mimir.orchestrator.gc_tuning import reduced_collection
from mimir.orchestrator.runs import creation, inspection, worker_status
from mimir.orchestrator.services import ProjectServices
from mimir.scheduling import lifecycle
from mimir.scheduling.completion.result_reuse import take_over
from mimir.scheduling.completion.run_outcome import RunOutcome, finish_run
from mimir.scheduling.coordinator import Coordinator
from mimir.scheduling.execution.attempt_runner import AttemptRunner, WorkerServices
from mimir.scheduling.execution.preparation import AttemptPreparer
from mimir.scheduling.processes.run_server import serve_run
from mimir.scheduling.run_services import ProcessLiveness, RunServices
from mimir.scheduling.task_queries import CompletedTasks
from mimir.store import row_fields
from mimir.store.operations import budget, claims, estimates, memory, runs
from mimir.store.protocol import Row, WriteOps
from mimir.workspace.aio import run_beside, to_thread_shielded
from mimir.workspace.stale_cleanup import remove_stale_files


async def execute_run(
    parts: ProjectServices,
    run: str,
    *,
    workers: int,
    apply: Apply,
    limits: RunBudget,
    resumed: bool,
) -> RunResult:
    """Serve a run to its end, or to where it pauses.

    Raises:
        BusyError: Another process coordinates it.
        ConfigurationError: Its money is to be bounded, and a model had no price when it began.
        UnavailableError: The run is of another project, or the sandbox does not work.
        UsageError: There is no run of this name.
    """
    store = parts.store
    await parts.sandbox.probe()  # what its trial needs lies where is swept
    await asyncio.to_thread(remove_stale_files, parts.work_room, parts.owners.is_alone)
    row = await store.read(partial(runs.node, run=run), brief=True)
    if RunStatus(row_fields.text_field(row, "status")) in RUN_ENDED:
        shutil.rmtree(parts.work_room / run, ignore_errors=True)  # killed between its end and this
        return replace(result_if_ended(row), message="It had ended already.")
    await project_identity.require_same_project(parts, row)
    taken = run_models.resume_settings(parts, row)
    parts = taken.parts
    result_application.require_applicable(parts, apply)
    parts.check_models()
    if limits.max_cost is not None or row.get("maxCost") is not None:
        plan = runs.plan_of(await store.read(partial(runs.get, run=run)))
        budget.must_be_priced(row, creation.models_of_plan(parts, plan))
    await creation.require_sandbox(parts)
    leads = await _begin(parts, run, resumed=resumed, models=taken.models)
    await _say_what_stays(parts, run, taken.left_aside)
    await store.write(partial(lifecycle.set_limits, run=run, limits=limits), durable=False)
    started = parts.clock.monotonic()
    try:
        return await run_to_end(parts, run, workers, apply, leads=leads)
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


async def _say_what_stays(parts: ProjectServices, run: str, models: Mapping[str, str]) -> None:
    """Say which models (role → name) a run goes on with, though others are set by now."""
    if models:
        asked = ", ".join(f"{role} {model}" for role, model in sorted(models.items()))
        notice = f"Other models are set by now; the run goes on with those it began with: {asked}."
        await parts.store.write(partial(_tell, run=run, notices=[notice]), durable=False)


async def take_coordination(
    parts: ProjectServices, run: str, *, resumed: bool, models: Mapping[str, str] | None = None
) -> None:
    """Become the coordinator of a run; `models` as `lifecycle.take` has them.

    Raises:
        BusyError: Another process coordinates it.
        UsageError: It has ended.
    """
    write = partial(
        lifecycle.take_run,
        run=run,
        owner=parts.owner,
        seconds=parts.lease_seconds,
        dead=await worker_status.find_dead_processes(parts, run),
        resumed=resumed,
        models=models,
    )
    await parts.leases.write(write, durable=False)  # no lease outlives the power


async def _begin(
    parts: ProjectServices, run: str, *, resumed: bool, models: Mapping[str, str]
) -> bool:
    """Take the chair; False: a worker has it, which was faster than the process that has just begun the run.

    Raises:
        BusyError: The run was begun before, and another process coordinates it.
    """
    try:
        await take_coordination(parts, run, resumed=resumed, models=models)
    except BusyError:
        if resumed:
            raise
        return False
    return True


def result_if_ended(row: Row) -> RunResult:
    """Return how a run ended that has nothing left to do for this process."""
    outcome = RunStatus(row_fields.text_field(row, "status"))
    return RunResult(
        run=str(row["id"]),
        outcome=outcome,
        exit_code=exit_code(outcome),
        next_step=f"Look at it: mimir report {row['id']}",
        plan_path=row_fields.text_field(row, "planPath"),
        commit=row_fields.text_field(row, "finalCommit"),
        seal=row_fields.text_field(row, "seal"),
    )


async def resume_planning(parts: ProjectServices, run: str, limits: RunBudget) -> RunResult:
    """Go on with a planning run."""
    await plan_creation.raise_limits(parts, run, limits)
    row = await parts.store.read(partial(runs.node, run=run), brief=True)
    taken = run_models.resume_settings(parts, row)
    planned = await plan_creation.make_plan(taken.parts, run, models=taken.models)
    outcome = RunStatus.COMPLETED if planned.exit_code == 0 else RunStatus.FAILED
    return RunResult(
        run=run,
        outcome=outcome,
        exit_code=planned.exit_code,
        plan_path=planned.path,
        next_step=f"Look at it: mimir check {planned.path}  Run it: mimir execute {planned.path}",
    )


async def cancel(parts: ProjectServices, run: str) -> None:
    """Cancel what has not ended; a process that works on it is refused by its fence.

    Raises:
        UsageError: It has ended, or there is none of this name.
    """

    def work(ops: WriteOps) -> None:
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


async def run_to_end(
    parts: ProjectServices, run: str, workers: int, apply: Apply, *, leads: bool
) -> RunResult:
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
        facts = await creation.load_pinned_run(parts, run)
    parts.show_base(facts.base_commit, facts.project)
    crew = RunServices(
        facts=facts,
        store=parts.store,
        leases=parts.leases,
        clock=parts.clock,
        owner=parts.owner,
        process=parts.process,
        owners=ProcessLiveness(owners=parts.owners, host=parts.process.host),
        lease_seconds=parts.lease_seconds,
        work_room=parts.work_room,
        wake=parts.wake,
        completions=CompletedTasks(facts.plan),
        pace=parts.pace,
    )
    tools = WorkerServices(
        history=parts.history,
        checks=parts.checks,
        models=parts.models,
        tools=parts.tools,
        preparer=AttemptPreparer(crew, parts.history, parts.choices["worker"], parts.redact),
        qc_choice=parts.choices["qc"],
        redact=parts.redact,
    )
    lead = partial(_lead, parts, crew, apply)
    with reduced_collection():
        ending = await serve_run(
            crew, AttemptRunner(crew, tools), lead, agents=workers, leads=leads
        )
    if ending is None:
        await parts.leases.write(partial(lifecycle.leave_run, run=run, owner=parts.owner))
        ending = result_if_ended(await parts.store.read(partial(runs.node, run=run)))
    if ending.outcome in RUN_ENDED:
        # Not before every agent of this process has stopped: one that clears its own workspace away would be in the way.
        await to_thread_shielded(shutil.rmtree, parts.work_room / run, ignore_errors=True)
    return ending


async def _lead(parts: ProjectServices, crew: RunServices, apply: Apply) -> RunResult:
    """Do what is done once a run: begin it, decide until every task has ended, pass the gate, apply, report."""
    run = crew.facts.id
    row = await parts.store.read(partial(runs.node, run=run), brief=True)
    tasks = len(crew.facts.plan.tasks)
    await parts.store.write(partial(lifecycle.begin, run=run, tasks=tasks), durable=False)
    source = row_fields.text_field(row, "fromRun")
    if source:
        await take_over(crew, parts.history, parts.checks, source)
    await _decide(crew, _remaining_seconds(row))
    row = await parts.store.read(partial(runs.node, run=run), brief=True)
    if (
        row_fields.text_field(row, "status") == RunStatus.CANCELLED.value
    ):  # from another process, meanwhile
        return RunResult(run=run, outcome=RunStatus.CANCELLED, exit_code=1, message="Cancelled.")
    end = await finish_run(crew, parts.history, parts.checks)
    return await _close(parts, run, end, apply)


async def _decide(crew: RunServices, seconds: float | None) -> None:
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


async def _close(parts: ProjectServices, run: str, end: RunOutcome, apply: Apply) -> RunResult:
    """Apply, report, end: in this order, so that the report tells of what was applied."""
    applied = await result_application.apply_at_end(parts, run, end, apply)
    notices = parts.notices()
    if notices:
        await parts.store.write(partial(_tell, run=run, notices=notices), durable=False)
    learn = partial(_learn, parts, run)
    path = await inspection.write_last_report(parts, run, end.outcome, meanwhile=[learn])
    data = {"seal": end.seal, "commit": end.commit, "report": path}

    def work(ops: WriteOps) -> None:
        lifecycle.must_lead(ops, run, parts.owner)
        runs.append_event(ops, run, EventKind.REPORT_WRITTEN, data={"path": path})
        lifecycle.end(ops, run, parts.owner, end.outcome, data)

    await parts.store.write(work)
    row = await parts.store.read(partial(runs.node, run=run), brief=True)
    return RunResult(
        run=run,
        outcome=end.outcome,
        exit_code=exit_code(end.outcome),
        message=" ".join(end.red),
        report_path=path,
        plan_path=row_fields.text_field(row, "planPath"),
        commit=end.commit,
        applied=applied.paths,
        conflicts=applied.conflicts,
        seal=end.seal,
    )


async def _learn(parts: ProjectServices, run: str) -> None:
    """Keep what the run teaches later ones; no report tells of it."""
    await parts.store.write(partial(memory.learn_from_run, run=run))
    took = await parts.store.read(partial(estimates.of_run, run=run))
    await parts.store.write(
        partial(estimates.save_samples, project=parts.project_id, run=run, samples=took)
    )


def _tell(ops: WriteOps, run: str, notices: Sequence[str]) -> None:
    for notice in notices:
        runs.append_event(ops, run, EventKind.WARNING, data={"message": notice})


async def _pause(parts: ProjectServices, run: str, paused: Paused, started: float) -> RunResult:
    seconds = parts.clock.monotonic() - started
    await parts.leases.write(
        partial(lifecycle.pause, run=run, owner=parts.owner, paused=paused, seconds=seconds)
    )
    path = ""
    with contextlib.suppress(MimirError, OSError):  # a full disk must not hide why the run paused
        path, _ = await inspection.write_report(parts, run)
    return RunResult(
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
async def _coordinating(parts: ProjectServices, run: str, *, leads: bool) -> AsyncGenerator[None]:
    """Renew the coordinator's lease at a third of its length while the block runs, if it is ours."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(parts.lease_seconds / 3)
            await parts.leases.write(lifecycle.renew(run, parts.owner, parts.lease_seconds))

    async with run_beside(beat()) if leads else contextlib.nullcontext():
        yield


def _remaining_seconds(row: Row) -> float | None:
    limit = row.get("timeLimitSeconds")
    if not isinstance(limit, int | float):
        return None
    return max(0.0, float(limit) - row_fields.float_field(row, "secondsUsed"))
