"""Server of a run in one process: its agents, its heartbeat and its part in the election."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from functools import partial

from mimir.domain.run import RunResult
from mimir.errors import MimirError
from mimir.scheduling import lifecycle
from mimir.scheduling.processes.agent_pool import AgentPool
from mimir.scheduling.processes.election import CoordinatorElection, Lead
from mimir.scheduling.processes.task_worker import RunClaim
from mimir.scheduling.run_services import RunServices, StopSignal
from mimir.store.operations import claims, worker_processes
from mimir.store.protocol import WriteOps
from mimir.store.records.artifact_records import PoolCounters
from mimir.workspace.aio import cancel_all


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
        await cancel_all(jobs)


async def _save_counters(services: RunServices, pool: AgentPool) -> None:
    run, owner = services.facts.id, services.owner
    save = partial(worker_processes.count, run=run, owner=owner, tally=pool.counters())
    with contextlib.suppress(MimirError):  # counters are no reason to fail
        await services.leases.write(save, durable=False)


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def send_heartbeat(
    services: RunServices, pool: AgentPool, election: CoordinatorElection
) -> None:
    """Renew all leases every third of a lease until cancelled; stop lost work at once."""
    while True:
        await services.wake.until_begun(services.lease_seconds / 3)
        # After a suspension longer than a lease, renewal is immediate: the timer has expired.
        led = election.leads
        is_serving = services.wake.has_begun
        counters = pool.counters() if is_serving else None
        renewal = _renewal(services, pool.held, counters, leads=led)
        lost, leads = await services.leases.write(renewal, durable=False)  # a power cut ends leases
        pool.lose(lost)
        # A process that became coordinator during the write has not lost the lease.
        if led and not leads:
            election.lose()
        if is_serving:
            await asyncio.sleep(services.lease_seconds / 3)


def _renewal(
    services: RunServices,
    held: Sequence[tuple[str, int]],
    counters: PoolCounters | None,
    *,
    leads: bool,
) -> Callable[[WriteOps], tuple[list[str], bool]]:
    """Return the write of a heartbeat; it gives (lost tasks, whether this process leads).

    Without counters, the process is not registered: its agents do not serve yet.
    """
    run, owner, seconds = services.facts.id, services.owner, services.lease_seconds

    def work(ops: WriteOps) -> tuple[list[str], bool]:
        lost = claims.heartbeat(ops, run, held, owner, seconds)
        still_leads = leads and lifecycle.renew(run, owner, seconds)(ops)
        if counters is not None:
            worker_processes.register_process(ops, run, services.process, counters, seconds)
        return lost, still_leads

    return work
