"""One process serves a run: its agents, its heartbeat, and its place in the election of the coordinator; until the run ends or something says stop."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from mimir.domain.run import RunResult
from mimir.errors import MimirError
from mimir.scheduling.processes.agent_pool import AgentPool
from mimir.scheduling.processes.election import CoordinatorElection, Lead
from mimir.scheduling.processes.heartbeat import send_heartbeat
from mimir.scheduling.run_services import RunServices, StopSignal
from mimir.store.operations import worker_processes
from mimir.store.operations.claims import Claim


async def serve_run(
    crew: RunServices,
    see_through: Callable[[Claim], Awaitable[None]],
    lead: Lead,
    *,
    agents: int,
    leads: bool,
) -> RunResult | None:
    """Work on a run until it has ended.

    Args:
        crew: Services and facts of this process.
        see_through: Brings one claimed task to its next resting status.
        lead: What this process does when it coordinates.
        agents: Tasks worked on at once; >= 1.
        leads: True: this process has taken the coordinator's lease already.

    Returns:
        How it ended, if this process ended it; None: another one did.

    Raises:
        Paused: Why it stops here; every lease was given back, no work is lost.
    """
    stop = asyncio.Event()

    async def on_halt() -> None:
        stop.set()

    halt = StopSignal(on_halt=on_halt)
    pool = AgentPool(crew, see_through, halt)
    await pool.spawn(agents)
    chair = CoordinatorElection(crew, lead, leads=leads)
    sitting = asyncio.ensure_future(chair.sit())
    others = [
        asyncio.ensure_future(job) for job in (pool.serve(), send_heartbeat(crew, pool, chair))
    ]
    stopped = asyncio.ensure_future(_wait(stop))
    # The end of the run, a halt, or a fault of ours: whichever comes first.
    try:
        await _first((sitting, *others, stopped))
    finally:
        await asyncio.shield(_last_tally(crew, pool))
    if halt.reason:
        raise halt.reason
    return sitting.result()


async def _first(jobs: "Sequence[asyncio.Future[RunResult | None] | asyncio.Future[None]]") -> None:
    """Wait until one of them is done and end the others; a failure of the one is raised."""
    try:
        done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
        for future in done:
            future.result()
    finally:
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)


async def _last_tally(crew: RunServices, pool: AgentPool) -> None:
    """Write down what the agents have done; figures are no reason to fail."""
    work = partial(worker_processes.count, run=crew.facts.id, owner=crew.owner, tally=pool.tally())
    with contextlib.suppress(MimirError):
        await crew.leases.write(work, durable=False)


async def _wait(event: asyncio.Event) -> None:
    await event.wait()
