"""Heartbeat of one process: one transaction renews its leases and finds lost ones."""

import asyncio
from collections.abc import Callable, Sequence

from mimir.scheduling import lifecycle
from mimir.scheduling.processes.agent_pool import AgentPool
from mimir.scheduling.processes.election import CoordinatorElection
from mimir.scheduling.run_services import RunServices
from mimir.store.operations import claims, worker_processes
from mimir.store.protocol import WriteOps
from mimir.store.records.artifact_records import PoolCounters


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
