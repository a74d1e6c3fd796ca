"""Server of a run in one process: its agents, its heartbeat and its part in the election."""

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial

from mimir.domain.run import RunResult
from mimir.errors import MimirError
from mimir.scheduling.processes.agent_pool import AgentPool
from mimir.scheduling.processes.election import CoordinatorElection, Lead
from mimir.scheduling.processes.heartbeat import send_heartbeat
from mimir.scheduling.processes.task_worker import RunClaim
from mimir.scheduling.run_services import RunServices, StopSignal
from mimir.store.operations import worker_processes


async def serve_run(
    services: RunServices, run_claim: RunClaim, lead: Lead, *, agents: int, leads: bool
) -> RunResult | None:
    """Work on a run until it has ended.

    Args:
        services: Services and facts of this process.
        run_claim: Brings one claimed task to its next resting status.
        lead: Work of the coordinator.
        agents: Concurrent tasks, at least 1.
        leads: True: this process holds the coordinator lease already.

    Returns:
        The result, if this process ended the run. None: another one did.

    Raises:
        Paused: The reason of a stop; every lease was released, and no work is lost.
    """
    stop = StopSignal()
    pool = AgentPool(services, run_claim, stop)
    # The agents stay idle until `serve` starts.
    await pool.spawn(agents)
    election = CoordinatorElection(services, lead, leads=leads)
    attending = asyncio.ensure_future(election.attend())
    others = [
        asyncio.ensure_future(job)
        for job in (pool.serve(), send_heartbeat(services, pool, election), _wait(stop.stopped))
    ]
    # The end of the run, a stop or a bug: the first one counts.
    try:
        await _await_first((attending, *others))
    finally:
        await asyncio.shield(_save_counters(services, pool))
    if stop.reason:
        raise stop.reason
    return attending.result()


async def _await_first(
    jobs: "Sequence[asyncio.Future[RunResult | None] | asyncio.Future[None]]",
) -> None:
    """Wait until one job is done, then end the others; its exception is raised."""
    try:
        done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
        for future in done:
            future.result()
    finally:
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)


async def _save_counters(services: RunServices, pool: AgentPool) -> None:
    run, owner = services.facts.id, services.owner
    save = partial(worker_processes.count, run=run, owner=owner, tally=pool.counters())
    with contextlib.suppress(MimirError):  # counters are no reason to fail
        await services.leases.write(save, durable=False)


async def _wait(event: asyncio.Event) -> None:
    await event.wait()
