"""The verb `join_run`: a process more for a run that is under way. It claims like any other, and takes the chair when the coordinator dies.

What goes wrong on its own machine is no reason to pause the run: it gives back what it holds and leaves. The end of a budget is.
"""

import asyncio
import contextlib
import shutil
from collections.abc import Mapping
from functools import partial
from typing import cast, get_args

from mimir.domain.run import Apply, RunResult
from mimir.domain.task_states import RUN_ENDED, RunStatus
from mimir.errors import (
    BusyError,
    ModelError,
    Paused,
    SandboxError,
    StoreError,
    UsageError,
    WorkspaceError,
)
from mimir.orchestrator import project_identity, run_models
from mimir.orchestrator.runs import creation, execution, inspection, worker_status
from mimir.orchestrator.services import ProjectServices
from mimir.scheduling import lifecycle
from mimir.scheduling.processes.election import ELSEWHERE
from mimir.store import row_fields
from mimir.store.operations import leases, runs
from mimir.store.protocol import ReadOps, Row
from mimir.store.schema import NodeLabel

OF_THE_RUN = ("budget", "time_limit")
"""Reasons that hold for every process of a run; any other one is the helper's own."""
POLL_SECONDS = 0.25


async def find_joinable_run(parts: ProjectServices, run: str | None) -> str:
    """Return the run to help: the named one, or the newest one that is being worked on.

    Raises:
        UsageError: There is none.
    """
    if run is not None:
        return await inspection.find_own_run(parts, run, resumable=False)
    rows = await parts.store.read(_running)
    own = [row for row in rows if row_fields.text_field(row, "projectId") == parts.project_id]
    if own:
        return str(own[0]["id"])
    raise UsageError(
        "No run is being worked on here.",
        next_step="Begin one: mimir execute PLAN  Go on with a paused one: mimir resume",
    )


async def join_run(parts: ProjectServices, run: str, *, workers: int) -> RunResult:
    """Serve a run that is under way until it ends or pauses.

    Args:
        parts: Services.
        run: Id.
        workers: Tasks at once.

    Returns:
        How the run ended, or `paused`: the run is, or this process had to leave it.

    Raises:
        UnavailableError: The run is of another project, or its commits cannot be had here, or the sandbox does not work.
        UsageError: It is a planning run.
        ConfigurationError: The models cannot be asked from here.
    """
    row = await parts.store.read(partial(runs.node, run=run))
    if RunStatus(row_fields.text_field(row, "status")) in RUN_ENDED:
        return execution.result_if_ended(row)
    if row.get("kind") != "execute":
        raise UsageError(
            f"Run {run} is a planning run: one process does it.",
            next_step=f"Go on with it: mimir resume {run}",
        )
    await project_identity.require_same_project(parts, row)
    parts.check_models()
    parts = run_models.services_for_run(parts, row)
    await creation.require_sandbox(parts)
    try:
        leads = await _begin(parts, run)
        if leads is None:
            return execution.result_if_ended(await parts.store.read(partial(runs.node, run=run)))
        ending = await execution.run_to_end(parts, run, workers, _apply(row), leads=leads)
        await asyncio.to_thread(shutil.rmtree, parts.work_room / run, ignore_errors=True)
        return ending
    except Paused as paused:
        return await _leave(parts, run, paused)
    except (ModelError, WorkspaceError, SandboxError, OSError) as error:
        paused = execution.as_pause(error)
        if paused is None:
            raise
        return await _leave(parts, run, paused)
    except asyncio.CancelledError:
        await asyncio.shield(
            parts.leases.write(partial(lifecycle.leave_run, run=run, owner=parts.owner))
        )
        raise


async def _begin(parts: ProjectServices, run: str) -> bool | None:
    """Wait until the run's preambles are there; True: this process has taken the chair, and makes them; None: the run ended.

    Raises:
        Paused: The run is.
    """
    while True:
        row, is_ready, holder = await parts.store.read(
            partial(_look, run=run, dead=await worker_status.find_dead_processes(parts, run))
        )
        status = RunStatus(row_fields.text_field(row, "status"))
        if status in RUN_ENDED:
            return None
        if status is RunStatus.PAUSED:
            raise _is_paused(row)
        if is_ready:
            return False
        if not holder and await _take(parts, run):
            return True
        await asyncio.sleep(POLL_SECONDS)


async def _take(parts: ProjectServices, run: str) -> bool:
    try:
        await execution.take_coordination(parts, run, resumed=True)
    except (BusyError, UsageError):
        return False
    return True


async def _leave(parts: ProjectServices, run: str, paused: Paused) -> RunResult:
    """Leave the run, or pause it where the reason is the run's own."""
    if paused.reason in OF_THE_RUN:
        write = partial(lifecycle.pause, run=run, owner=parts.owner, paused=paused, seconds=0.0)
    else:
        write = partial(lifecycle.leave_run, run=run, owner=parts.owner)
    with contextlib.suppress(
        Paused, StoreError
    ):  # lost with the store: the leases end by themselves
        await parts.leases.write(write)
    step = f"Help it again: mimir worker --run {run}"
    return RunResult(
        run=run,
        outcome=RunStatus.PAUSED,
        exit_code=paused.exit_code,
        message=str(paused),
        next_step=paused.next_step or step,
    )


def _running(reads: ReadOps) -> list[Row]:
    where = {"kind": "execute", "status": RunStatus.RUNNING.value}
    return reads.find(NodeLabel.RUN, where, order=("-createdAt", "-seq"))


def _look(reads: ReadOps, run: str, dead: frozenset[str]) -> tuple[Row, bool, str]:
    row = reads.get(NodeLabel.RUN, run) or {}
    pinned = reads.get(NodeLabel.ARTIFACT, f"{run}#preambles")
    return row, pinned is not None, leases.holder(reads, row, lifecycle.COORDINATOR, dead)


def _is_paused(row: Row) -> Paused:
    run = str(row["id"])
    return Paused(
        f"Run {run} is paused: {row_fields.text_field(row, 'pauseMessage') or 'nobody works on it'}",
        reason=ELSEWHERE,
        next_step=f"Go on with: mimir resume {run}",
    )


def _apply(row: Row) -> Apply:
    """Return what the run was begun with."""
    pinned = row_fields.json_field(row, "settingsJson").get("run")
    said = cast("Mapping[str, object]", pinned).get("apply") if isinstance(pinned, dict) else None
    return cast("Apply", said) if said in get_args(Apply) else "never"
