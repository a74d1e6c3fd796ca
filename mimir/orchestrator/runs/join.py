"""Verb `join_run`: one more process serves a running run.

A fault of its own machine does not pause the run: the process returns its tasks and leaves. An exhausted budget pauses the run.
"""

import asyncio
import contextlib
import shutil
from functools import partial

from mimir.domain.run import INPUT, RunResult
from mimir.domain.task_states import RUN_ENDED, RunStatus
from mimir.errors import Paused, StoreError, UsageError
from mimir.orchestrator import project_identity, run_models
from mimir.orchestrator.runs import creation, execution, inspection
from mimir.orchestrator.services import ProjectServices
from mimir.scheduling import lifecycle
from mimir.store.operations.record_loading import find_runs, load_run

RUN_WIDE_REASONS = ("budget", "time_limit", INPUT)
"""Pause reasons that hold for every process of a run; all others are of one process."""


async def find_joinable_run(services: ProjectServices, run: str | None) -> str:
    """Return the run to serve: the named one, or the project's newest running one."""
    if run is not None:
        return await inspection.find_own_run(services, run, resumable=False)
    running = await services.store.read(
        partial(find_runs, project_id=services.project_id, status=RunStatus.RUNNING)
    )
    own = [one.id for one in running if one.kind != "plan" and not one.is_todo_list]
    if own:
        return own[0]
    raise UsageError(
        "No run of this project is running.",
        next_step="Start one: mimir execute PLAN  Continue a paused one: mimir resume",
    )


async def join_run(services: ProjectServices, run: str, *, workers: int) -> RunResult:
    """Serve a running run until it ends or pauses, or this process leaves it (`paused`).

    Raises:
        UnavailableError: The run is of another project, its commits cannot be fetched, or the sandbox does not work.
        UsageError: It is a planning run or a todo list.
        ConfigurationError: The settings do not allow a model call.
    """
    record = await services.store.read(partial(load_run, run=run))
    lifecycle.refuse_todo_list(record)
    if record.status in RUN_ENDED:
        return execution.result_if_ended(record)
    if record.kind == "plan":
        raise UsageError(
            f"Run {run} is a planning run, which one process serves alone.",
            next_step=f"Continue it: mimir resume {run}",
        )
    await project_identity.require_same_project(services, record)
    services.check_models()
    # A joining process must call the same models as the coordinator.
    services = run_models.services_for_run(services, record)
    await creation.require_sandbox(services)
    try:
        with execution.errors_as_pauses():
            apply = run_models.pinned_apply(record)
            result = await execution.run_to_end(services, run, workers, apply, leads=False)
            await asyncio.to_thread(shutil.rmtree, services.work_room / run, ignore_errors=True)
            return result
    except Paused as paused:
        return await _leave(services, run, paused)
    # Other processes continue the run, so it is left, not paused.
    except asyncio.CancelledError:
        leave = partial(lifecycle.leave_run, run=run, owner=services.owner)
        await asyncio.shield(services.leases.write(leave))
        raise


async def _leave(services: ProjectServices, run: str, paused: Paused) -> RunResult:
    """Leave the run, or pause it if the reason applies to every process."""
    if paused.reason in RUN_WIDE_REASONS:
        write = partial(lifecycle.pause, run=run, owner=services.owner, paused=paused, seconds=0.0)
    else:
        write = partial(lifecycle.leave_run, run=run, owner=services.owner)
    # If the store is lost, the leases simply end.
    with contextlib.suppress(Paused, StoreError):
        await services.leases.write(write)
    return RunResult(
        run=run,
        outcome=RunStatus.PAUSED,
        exit_code=paused.exit_code,
        message=str(paused),
        next_step=paused.next_step or f"Serve it again: mimir worker --run {run}",
    )
