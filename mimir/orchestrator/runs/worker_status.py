"""Verb `workers`: the processes that serve a run, their claims and their metrics."""

from collections.abc import Mapping
from functools import partial

from mimir.orchestrator.services import ProjectServices
from mimir.scheduling.processes import pool_metrics
from mimir.scheduling.run_services import ProcessLiveness
from mimir.store.operations.record_loading import load_processes


async def load_workers(services: ProjectServices, run: str) -> Mapping[str, object]:
    """Return `workers`, `locks` and `metrics` of a run."""
    dead = await find_dead_processes(services, run)
    return await services.store.read(partial(pool_metrics.shape, run=run, dead=dead))


async def find_dead_processes(services: ProjectServices, run: str) -> frozenset[str]:
    """Return the dead processes of this directory, and those of this host that served the run."""
    liveness = ProcessLiveness(owners=services.owners, host=services.process.host)
    # Lock files of other directories on this host are known only through the registrations.
    liveness.learn(await services.store.read(partial(load_processes, run=run)))
    return liveness.dead()
