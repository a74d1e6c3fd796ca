"""Verb `execute_run`: serve a run to its report, or until it pauses.

It may be repeated after a crash: the store records the finished steps, and no step is repeated.
"""

import asyncio
import contextlib
import errno
import shutil
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from mimir.attempts.services import PinnedRun
from mimir.domain import ids
from mimir.domain.event import EventKind
from mimir.domain.run import Apply, RunBudget, RunResult, exit_code
from mimir.domain.task_states import RUN_ENDED, RunStatus
from mimir.errors import BusyError, MimirError, ModelError, Paused, SandboxError, WorkspaceError
from mimir.orchestrator import (
    preflight,
    project_identity,
    result_application,
    run_models,
)
from mimir.orchestrator.delegation.documents import describe_documents
from mimir.orchestrator.delegation.stored_response import save_response
from mimir.orchestrator.gc_tuning import reduced_collection
from mimir.orchestrator.patterns.ledger_writer import LedgerWriter
from mimir.orchestrator.proposals.checking import check_proposals
from mimir.orchestrator.result_application import ApplyResult
from mimir.orchestrator.runs import creation, inspection
from mimir.orchestrator.runs.preambles import make_preambles
from mimir.orchestrator.services import ProjectServices
from mimir.qc.evidence import seal
from mimir.scheduling import lifecycle
from mimir.scheduling.completion.result_reuse import take_over
from mimir.scheduling.completion.run_outcome import RunOutcome, finish_run
from mimir.scheduling.coordinator import Coordinator
from mimir.scheduling.execution.attempt_runner import AttemptRunner, WorkerServices
from mimir.scheduling.execution.preparation import AttemptPreparer
from mimir.scheduling.processes.run_server import serve_run
from mimir.scheduling.run_services import ProcessLiveness, RunServices
from mimir.scheduling.task_queries import CompletedTasks
from mimir.store.operations import budget, claims, estimates, memory, runs
from mimir.store.operations.record_loading import decode_plan, load_run, load_run_with_plan
from mimir.store.protocol import WriteOps
from mimir.store.questions import question_rows
from mimir.store.records.run_records import RunRecord
from mimir.store.sealing.run_record import write_record
from mimir.workspace.aio import run_beside, to_thread_shielded
from mimir.workspace.stale_cleanup import remove_stale_files


async def execute_run(
    services: ProjectServices,
    run: str,
    *,
    workers: int,
    apply: Apply,
    limits: RunBudget,
    resumed: bool,
) -> RunResult:
    """Serve a run to its end, or until it pauses.

    Raises:
        BusyError: Another process coordinates it.
        ConfigurationError: The cost is to be limited, and a model had no price at the start.
        UnavailableError: The run is of another project, or the sandbox does not work.
        UsageError: There is no such run.
    """
    store = services.store
    # The trial of the sandbox needs files in the directory that is cleaned up next.
    await services.sandbox.probe()
    await asyncio.to_thread(remove_stale_files, services.work_room, services.owners.is_alone)
    record = await _load(services, run)
    if record.status in RUN_ENDED:
        # The process may have been killed between the run's end and its cleanup.
        shutil.rmtree(services.work_room / run, ignore_errors=True)
        return replace(result_if_ended(record), message="The run had ended already.")
    await project_identity.require_same_project(services, record)
    resumed_settings = run_models.resume_settings(services, record)
    services = resumed_settings.services
    # Before any model call: a run whose result cannot be applied wastes its cost.
    result_application.require_applicable(services, apply)
    services.check_models()
    if limits.max_cost is not None or record.max_cost is not None:
        plan = decode_plan(await store.read(partial(load_run_with_plan, run=run)))
        budget.must_be_priced(record, creation.models_of_plan(services, plan))
    await creation.require_sandbox(services)
    leads = await _take_or_follow(services, run, resumed=resumed, models=resumed_settings.models)
    await _warn_of_ignored_models(services, run, resumed_settings.ignored)
    await store.write(partial(lifecycle.set_limits, run=run, limits=limits), durable=False)
    started = services.clock.monotonic()
    ledger = LedgerWriter(services, run)
    try:
        with errors_as_pauses():
            async with run_beside(ledger.follow()) if leads else contextlib.nullcontext():
                return await run_to_end(services, run, workers, apply, leads=leads)
    except Paused as paused:
        return await _pause(services, run, paused, started)
    # Ctrl-C: the pause must be stored although this task is being cancelled.
    except asyncio.CancelledError:
        interrupted = Paused("Interrupted.", reason="interrupted", exit_code=130)
        await asyncio.shield(_pause(services, run, interrupted, started))
        raise
    finally:
        # A pause or an end was stored after the last write.
        if leads:
            await asyncio.shield(ledger.write())


async def _warn_of_ignored_models(
    services: ProjectServices, run: str, models: Mapping[str, str]
) -> None:
    """Warn that a run keeps its models (role → name), although others are set."""
    if models:
        kept = ", ".join(f"{role} {model}" for role, model in sorted(models.items()))
        notice = f"Other models are set now; the run continues with those of its start: {kept}."
        await services.store.write(partial(_log_warnings, run=run, notices=[notice]), durable=False)


async def take_coordination(
    services: ProjectServices, run: str, *, resumed: bool, models: Mapping[str, str] | None = None
) -> None:
    """Become the coordinator of a run; `models` as in `lifecycle.take_run`.

    Raises:
        BusyError: Another process coordinates it.
        UsageError: It has ended.
    """
    write = partial(
        lifecycle.take_run,
        run=run,
        owner=services.owner,
        seconds=services.lease_seconds,
        dead=await inspection.find_dead_processes(services, run),
        resumed=resumed,
        models=models,
    )
    # A lease need not outlive a power cut.
    await services.leases.write(write, durable=False)


async def _take_or_follow(
    services: ProjectServices, run: str, *, resumed: bool, models: Mapping[str, str]
) -> bool:
    """Take the coordinator lease; False: a worker was faster than the creating process."""
    try:
        await take_coordination(services, run, resumed=resumed, models=models)
    except BusyError:
        # Between creation and this point a waiting worker may become coordinator; that is no error.
        if resumed:
            raise
        return False
    return True


def result_if_ended(run: RunRecord) -> RunResult:
    """Return the result of a run that has ended."""
    return RunResult(
        run=run.id,
        outcome=run.status,
        exit_code=exit_code(run.status),
        next_step=f"Read its report: mimir report {run.id}",
        plan_path=run.plan_path,
        commit=run.final_commit,
        branch=run.result_branch or ids.branch(run.id),
        seal=run.seal,
        is_read_only=run.is_read_only,
    )


async def cancel(services: ProjectServices, run: str) -> None:
    """Cancel all that has not ended; fences refuse later writes of other processes.

    Raises:
        UsageError: It has ended, or there is no such run.
    """

    def work(ops: WriteOps) -> None:
        lifecycle.must_be_open(ops, run)
        # Claims end in the same transaction, so no process can complete a task afterwards.
        claims.cancel(ops, run)
        # In the same transaction: no answer may come to a task that has ended.
        question_rows.withdraw_open(ops, run)
        save_response(ops, run, RunStatus.CANCELLED, services.clock.now(), documents)
        runs.set_status(
            ops,
            run,
            RunStatus.CANCELLED,
            EventKind.RUN_FINISHED,
            {"outcome": RunStatus.CANCELLED.value},
            expect=(RunStatus.RUNNING, RunStatus.PAUSED),
        )

    documents = await describe_documents(services, run)
    await services.store.write(work)
    await inspection.report_files(services).write(run)


async def run_to_end(
    services: ProjectServices, run: str, workers: int, apply: Apply, *, leads: bool
) -> RunResult:
    """Serve a run until it has ended, with other processes; `Paused` if this process stops."""
    facts = await creation.load_pinned_run(services, run)
    services.show_base(facts.base_commit, facts.project)
    run_services = _run_services(services, facts)
    runner = AttemptRunner(run_services, worker_services(services, run_services))
    lead = partial(_lead, services, run_services, apply)
    with reduced_collection():
        result = await serve_run(run_services, runner, lead, agents=workers, leads=leads)
    # None: another process coordinated the run to its end.
    if result is None:
        await services.leases.write(partial(lifecycle.leave_run, run=run, owner=services.owner))
        result = result_if_ended(await services.store.read(partial(load_run, run=run)))
    if result.outcome in RUN_ENDED:
        # Only now have all agents of this process stopped, each of which removes its own workspace.
        await to_thread_shielded(shutil.rmtree, services.work_room / run, ignore_errors=True)
    return result


def _run_services(services: ProjectServices, facts: PinnedRun) -> RunServices:
    return RunServices(
        facts=facts,
        store=services.store,
        leases=services.leases,
        clock=services.clock,
        owner=services.owner,
        process=services.process,
        owners=ProcessLiveness(owners=services.owners, host=services.process.host),
        lease_seconds=services.lease_seconds,
        work_room=services.work_room,
        wake=services.wake,
        completions=CompletedTasks(facts.plan),
        pace=services.pace,
    )


def worker_services(services: ProjectServices, run_services: RunServices) -> WorkerServices:
    """Return the services of the workers of a run."""
    return WorkerServices(
        history=services.history,
        checks=services.checks,
        models=services.models,
        tools=services.tools,
        preparer=AttemptPreparer(
            run_services, services.history, services.choices["worker"], services.redact
        ),
        qc_choice=services.choices["qc"],
        redact=services.redact,
    )


async def _lead(services: ProjectServices, run_services: RunServices, apply: Apply) -> RunResult:
    """Coordinate a run during the making of its preambles; the first error ends both."""
    making = asyncio.ensure_future(make_preambles(services, run_services.facts))
    leading = asyncio.ensure_future(_coordinate(services, run_services, apply, making))
    try:
        await asyncio.wait((making, leading), return_when=asyncio.FIRST_EXCEPTION)
        if making.done() and not making.cancelled():
            making.result()
        return leading.result()
    finally:
        making.cancel()
        leading.cancel()
        await asyncio.gather(making, leading, return_exceptions=True)


async def _coordinate(
    services: ProjectServices,
    run_services: RunServices,
    apply: Apply,
    making: "asyncio.Future[None]",
) -> RunResult:
    """Decide until every task has ended, then gate, apply and report."""
    run = run_services.facts.id
    try:
        await preflight.check_run(services, run)
    except Paused:
        # Their calls are paid: a run of the corrected plan finds the preambles in the cache.
        await asyncio.wait((making,))
        raise
    record = await _load(services, run)
    tasks = len(run_services.facts.plan.tasks)
    await services.store.write(partial(lifecycle.begin, run=run, tasks=tasks), durable=False)
    if record.from_run:
        await take_over(run_services, services.history, services.checks, record.from_run)
    seconds = None
    if record.time_limit_seconds is not None:
        seconds = max(0.0, record.time_limit_seconds - record.seconds_used)
    await _decide(run_services, seconds)
    # Another process may have cancelled the run during the decisions.
    if (await _load(services, run)).status is RunStatus.CANCELLED:
        making.cancel()
        return RunResult(run=run, outcome=RunStatus.CANCELLED, exit_code=1, message="Cancelled.")
    # Of a run whose tasks ended early: no call is journaled after its end.
    await making
    end = await finish_run(run_services, services.history, services.checks)
    return await _close(services, run, end, apply)


async def _decide(run_services: RunServices, seconds: float | None) -> None:
    """Release and block tasks until all have ended; raise `Paused` at the time limit."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            await Coordinator(run_services).drive()
    except TimeoutError:
        if not limit.expired():
            raise
        raise Paused(
            "The time limit of the run is reached.",
            reason="time_limit",
            next_step="Raise the limit: mimir resume --time-limit MINUTES",
        ) from None


async def _close(services: ProjectServices, run: str, end: RunOutcome, apply: Apply) -> RunResult:
    """Apply, report and end, in this order: the report shows the applied files."""
    applied = await result_application.apply_at_end(services, run, end, apply)
    # Endpoints learn of retries and limits during the run; the report must show them.
    notices = services.notices()
    if notices:
        await services.store.write(partial(_log_warnings, run=run, notices=notices), durable=False)
    learn = partial(_learn, services, run)
    path, text = await inspection.write_last_report(services, run, end.outcome, alongside=[learn])
    data = {"seal": end.seal, "commit": end.commit, "report": path}
    record = await _load(services, run)
    report = inspection.describe_report(services, record.plan_path, path, text)
    documents = await describe_documents(services, run)
    proposals = await check_proposals(services, run)

    def work(ops: WriteOps) -> None:
        lifecycle.must_lead(ops, run, services.owner)
        runs.append_event(ops, run, EventKind.REPORT_WRITTEN, data={"path": path})
        # Those that no task waits for.
        question_rows.withdraw_open(ops, run)
        now = services.clock.now()
        save_response(ops, run, end.outcome, now, documents, proposals)
        lifecycle.end(ops, run, services.owner, end.outcome, data)
        write_record(ops, run, report, seal.append)

    await services.store.write(work)
    record = await _load(services, run)
    return RunResult(
        run=run,
        outcome=end.outcome,
        # A completed run whose result waits for the user is not done.
        exit_code=exit_code(end.outcome) or int(bool(applied.conflicts or applied.shown)),
        # A broken check is a fault of the plan: it comes first.
        message=" ".join((*end.broken, *end.red, *end.unanswered)),
        next_step=_next_step(run, end, applied, commit=apply == "commit"),
        branch=end.branch,
        report_path=path,
        plan_path=record.plan_path,
        commit=end.commit,
        applied=applied.paths,
        conflicts=applied.conflicts,
        shown=applied.shown,
        seal=end.seal,
        is_read_only=record.is_read_only,
    )


def _next_step(run: str, end: RunOutcome, applied: ApplyResult, *, commit: bool) -> str:
    if applied.shown:
        return result_application.describe_confirmation(run, commit=commit)
    if applied.conflicts:
        return result_application.describe_refusal(run, end.branch, commit=commit)
    return ""


async def _learn(services: ProjectServices, run: str) -> None:
    """Store the run's lessons and durations for later runs; the report does not show them."""
    await services.store.write(partial(memory.learn_from_run, run=run))
    samples = await services.store.read(partial(estimates.of_run, run=run))
    await services.store.write(
        partial(estimates.save_samples, project=services.project_id, run=run, samples=samples)
    )


def _log_warnings(ops: WriteOps, run: str, notices: Sequence[str]) -> None:
    for notice in notices:
        runs.append_event(ops, run, EventKind.WARNING, data={"message": notice})


async def _pause(services: ProjectServices, run: str, paused: Paused, started: float) -> RunResult:
    seconds = services.clock.monotonic() - started
    await services.leases.write(
        partial(lifecycle.pause, run=run, owner=services.owner, paused=paused, seconds=seconds)
    )
    path = ""
    # The store has the pause already; a report that cannot be written must not replace its reason.
    with contextlib.suppress(MimirError, OSError):  # a full disk must not hide why the run paused
        path, _ = await inspection.report_files(services).write(run)
    return RunResult(
        run=run,
        outcome=RunStatus.PAUSED,
        exit_code=paused.exit_code,
        message=str(paused),
        next_step=paused.next_step or f"Resume it: mimir resume {run}",
        report_path=path,
    )


@contextlib.contextmanager
def errors_as_pauses() -> Generator[None]:
    """Raise errors that the user can repair as `Paused`; all others are faults of mimir."""
    try:
        yield
    except (ModelError, WorkspaceError, SandboxError, OSError) as error:
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
                reason, code, step = "disk", 75, "Free disk space, then: mimir resume"
            case _:
                raise
        raise Paused(str(error), reason=reason, exit_code=code, next_step=step) from error


async def _load(services: ProjectServices, run: str) -> RunRecord:
    return await services.store.read(partial(load_run, run=run), brief=True)
