"""The verb `load_workers`: which processes serve a run, what they hold, how they do."""

from collections.abc import Mapping
from functools import partial

from mimir.orchestrator.services import ProjectServices
from mimir.scheduling.processes import pool_metrics
from mimir.scheduling.run_services import ProcessLiveness
from mimir.store.operations import worker_processes as registrations


async def load_workers(parts: ProjectServices, run: str) -> Mapping[str, object]:
    """Return `load_workers`, `locks` and `metrics` of a run."""
    gone = await find_dead_processes(parts, run)
    return await parts.store.read(partial(pool_metrics.shape, run=run, dead=gone))


async def find_dead_processes(parts: ProjectServices, run: str) -> frozenset[str]:
    """Return the processes that are known to be gone: of this directory, and of others of this host that serve the run."""
    roster = ProcessLiveness(owners=parts.owners, host=parts.process.host)
    roster.learn(await parts.store.read(partial(registrations.present, run=run)))
    return roster.dead()
