"""The heartbeat of one process: every lease that it has is renewed in one transaction, and it hears what it has lost."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mimir.scheduling import lifecycle
from mimir.scheduling.processes.agent_pool import AgentPool
from mimir.scheduling.processes.election import CoordinatorElection
from mimir.scheduling.run_services import RunServices
from mimir.store.operations import claims, worker_processes
from mimir.store.operations.worker_processes import PoolCounters
from mimir.store.protocol import WriteOps


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatResult:
    """What a process learns from its heartbeat."""

    lost: tuple[str, ...]
    """Tasks that another holder has."""
    leads: bool
    """True: it still coordinates."""


async def send_heartbeat(crew: RunServices, pool: AgentPool, chair: CoordinatorElection) -> None:
    """Beat at a third of a lease until cancelled; what was lost is stopped at once.

    A process that was stopped for longer than a lease beats as soon as it goes on: its timer has run out long ago.
    """
    while True:
        renewal = _renewal(crew, pool.held, pool.tally(), leads=chair.leads)
        heard = await crew.leases.write(renewal, durable=False)  # no lease outlives the power
        pool.lose(heard.lost)
        if chair.leads and not heard.leads:
            chair.lose()
        await asyncio.sleep(crew.lease_seconds / 3)


def _renewal(
    crew: RunServices, held: Sequence[tuple[str, int]], tally: PoolCounters, *, leads: bool
) -> Callable[[WriteOps], HeartbeatResult]:
    """Return the write of one heartbeat."""
    run, owner, seconds = crew.facts.id, crew.owner, crew.lease_seconds

    def work(ops: WriteOps) -> HeartbeatResult:
        lost = claims.heartbeat(ops, run, held, owner, seconds)
        still = leads and lifecycle.renew(run, owner, seconds)(ops)
        worker_processes.register_process(ops, run, crew.process, tally, seconds)
        return HeartbeatResult(lost=tuple(lost), leads=still)

    return work
