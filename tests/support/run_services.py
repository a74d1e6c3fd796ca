"""The services of one process that serves a small run, with stand-ins for its work and its host."""

import asyncio
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, cast

from mimir.agents.context.task_context import PlannerKnowledge
from mimir.attempts.services import PinnedPreamble, PinnedRun
from mimir.domain.graph import TaskGraph
from mimir.domain.plan import Plan, preamble_roles
from mimir.scheduling.run_services import ProcessLiveness, RunServices, WorkSignals
from mimir.scheduling.task_queries import CompletedTasks
from mimir.store.operations import worker_processes
from mimir.store.operations.claims import Claim
from mimir.store.sqlite.sqlite_store import SqliteStore
from mimir.workspace.process_locks import ProcessLocks
from tests.support.clock import FrozenClock
from tests.support.stored_run import plan, task

TASKS = ("a", "b", "c")


class Hosts:
    """Names the dead processes."""

    def __init__(self) -> None:
        self.gone_ones: set[str] = set()

    def find_dead(self) -> set[str]:
        return self.gone_ones

    def find_dead_of(self, known: Mapping[str, str]) -> set[str]:
        return self.gone_ones & known.keys()


class Work:
    """Sees claims through until it is let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.stopped: list[str] = []
        self.go = asyncio.Event()
        self.changed = asyncio.Event()

    async def __call__(self, claim: Claim) -> None:
        self.begun.append(claim.task)
        self.changed.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.stopped.append(claim.task)
            self.changed.set()
            raise

    async def until(self, count: int) -> None:
        while len(self.begun) < count:
            self.changed.clear()
            await self.changed.wait()


def facts_of(run: str, plan: Plan) -> PinnedRun:
    """The fixed values of a run of this plan; its preambles are empty."""
    return PinnedRun(
        id=run,
        project="p1",
        plan=plan,
        base_commit="c0",
        base_tree="t0",
        preambles={role: PinnedPreamble(text="", hash="") for role in preamble_roles(plan.tasks)},
        background=PlannerKnowledge.from_plan(plan),
        tasks={task.id: task for task in plan.tasks},
        graph=TaskGraph.from_plan(plan),
        learned={},
    )


def crew_of(
    owner: str, store: SqliteStore, clock: FrozenClock, hosts: Hosts, room: Path
) -> RunServices:
    """A process of this name that serves the run `r1` of `TASKS`."""
    facts = facts_of("r1", plan(*(task(id) for id in TASKS)))
    process = worker_processes.WorkerProcess(
        owner=owner, host="here", number=1, lock_file=f"/locks/{owner}"
    )
    return RunServices(
        facts=facts,
        store=store,
        leases=store,
        clock=clock,
        owner=owner,
        process=process,
        owners=ProcessLiveness(owners=cast("ProcessLocks", hosts), host="here"),
        lease_seconds=300,
        work_room=room,
        wake=WorkSignals(has_begun=True),
        completions=CompletedTasks(facts.plan),
        poll_seconds=0.01,
    )


class Running:
    """A coroutine beside the test; ended with it."""

    def __init__(self, job: Coroutine[Any, Any, object]) -> None:
        self.task = asyncio.ensure_future(job)

    async def __aenter__(self) -> asyncio.Future[object]:
        return self.task

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
