"""The agents of one process: so many tasks at once. One claimer takes tasks for all that are idle, in one transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mimir.scheduling.processes import pool_metrics
from mimir.scheduling.processes.task_worker import TaskWorker
from mimir.scheduling.run_services import RunServices, StopSignal
from mimir.store.operations import claims, worker_processes
from mimir.store.operations.claims import Claim
from mimir.store.operations.worker_processes import PoolCounters
from mimir.store.protocol import ReadOps

SeeThrough = Callable[[Claim], Awaitable[None]]
"""Brings one claimed task to its next resting status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How a pool is."""

    agents: int
    """Tasks at once, at most."""
    busy: tuple[str, ...]
    """Tasks that are worked on, in the order in which they were taken."""
    stopping: str
    """Why it takes no more tasks; empty: it does."""


class AgentPool:
    """Works on a run with as many agents as it was told."""

    def __init__(self, crew: RunServices, see_through: SeeThrough, halt: StopSignal) -> None:
        """Make a pool without agents.

        Args:
            crew: Services and facts of this process.
            see_through: Does the work of one claim.
            halt: Says when no more tasks are taken; a task that has to pause the run says it there.
        """
        self._crew = crew
        self._see_through = see_through
        self._halt = halt
        self._agents = 0
        self._held: dict[TaskWorker, asyncio.Task[None]] = {}
        self._offers = crew.wake.offers
        self._dry_since: float | None = None
        self._tries = self._empty = self._claimed = self._lost = 0
        self._busy_seconds = self._served_seconds = 0.0
        self._counted_at = crew.clock.monotonic()

    async def spawn(self, agents: int) -> int:
        """Add agents; how many there are now."""
        return await self.scale(self._agents + agents)

    async def scale(self, agents: int) -> int:
        """Have so many agents; those who are too many finish what they work on first.

        Raises:
            ValueError: Fewer than none.
        """
        if agents < 0:
            raise ValueError(f"A pool cannot have {agents} agents.")
        self._count()
        self._agents = agents
        self._crew.wake.wake_idle()
        return agents

    def health(self) -> Health:
        """Return how it is."""
        return Health(
            agents=self._agents,
            busy=tuple(worker.claim.task for worker in self._held),
            stopping=str(self._halt.reason or ""),
        )

    def tally(self) -> PoolCounters:
        """Return what it has done so far."""
        self._count()
        return PoolCounters(
            agents=self._agents,
            tries=self._tries,
            empty=self._empty,
            claimed=self._claimed,
            lost=self._lost,
            busy_seconds=round(self._busy_seconds, 3),
            served_seconds=round(self._served_seconds, 3),
        )

    async def metrics(self) -> Mapping[str, object]:
        """Return its figures: context size and completion times of its tasks, lock contention, retry rate, idle share."""
        run, owner, tally = self._crew.facts.id, self._crew.owner, self.tally()
        attend = partial(
            worker_processes.register_process,
            run=run,
            process=self._crew.process,
            tally=tally,
            seconds=self._crew.lease_seconds,
        )
        await self._crew.leases.write(attend)
        return await self._crew.store.read(partial(pool_metrics.metrics, run=run, owner=owner))

    @property
    def held(self) -> Sequence[tuple[str, int]]:
        """(task, fence) of each claim that is worked on."""
        return [(worker.claim.task, worker.claim.fence) for worker in self._held]

    def lose(self, tasks: Collection[str]) -> None:
        """Stop working on tasks that another holder has."""
        self._lost += self._stop(tasks)

    async def serve(self) -> None:
        """Work until the run stops or this coroutine is cancelled; then every lease was given back."""
        crew = self._crew
        try:
            while self._halt.reason is None:
                # Who became idle after these moves waits for the next look: what its task made ready may not be released yet.
                calls, moves, idle = crew.wake.calls, crew.wake.moves, self._idle()
                await crew.wake.until_decided(moves)
                await self._claim(min(idle, self._idle()))
                await crew.wake.until_called(calls, crew.poll_seconds)
                self._look_for_faults()
        finally:
            self._count()
            works = list(self._held.values())
            for work in works:
                work.cancel()
            await asyncio.gather(*works, return_exceptions=True)

    def _idle(self) -> int:
        return self._agents - len(self._held)

    async def _claim(self, idle: int) -> None:
        """Take as many tasks as agents are idle. What was offered since the last time is there; else the store is asked first."""
        crew, offers = self._crew, self._crew.wake.offers
        is_offered = offers != self._offers
        if idle <= 0 or not (is_offered or self._may_be_work()):
            return
        run, dead = crew.facts.id, frozenset(crew.owners.dead())
        suspect = any(worker.claim.suspect for worker in self._held)
        look = partial(claims.is_work_there, run=run, dead=dead, has_suspect=suspect)
        if not (is_offered or await self._is_work_there(look)) or self._halt.broken:
            return
        take = partial(
            claims.claim,
            run=run,
            owner=crew.owner,
            lease_seconds=crew.lease_seconds,
            limit=idle,
            dead=dead,
            has_suspect=suspect,
        )
        # What is done under a claim and cannot be done twice is written durably before, and the claim with it.
        taken = await crew.leases.write(take, durable=False)
        self._offers = offers
        self._note_dry(len(taken) < idle)
        self._tries += 1
        self._empty += not taken
        self._claimed += len(taken)
        self._count()
        # An own lease that ended before it was renewed is lost; who has just prepared a retry was about to be done.
        self.lose([claim.task for claim in taken if not claim.fresh])
        self._stop([claim.task for claim in taken if claim.fresh])
        for claim in taken:
            worker = TaskWorker(crew, self._see_through, self._halt, claim)
            self._held[worker] = asyncio.ensure_future(self._work(worker))

    def _stop(self, tasks: Collection[str]) -> int:
        """Stop who works on these tasks; how many they were."""
        found = [worker for worker in self._held if worker.claim.task in tasks]
        for worker in found:
            worker.lose()
        return len(found)

    def _may_be_work(self) -> bool:
        """Tell whether the store need be asked.

        Where nothing was left, and whoever releases tasks is in this process, there is only what other processes leave: that is
        looked for now and then.
        """
        crew, since = self._crew, self._dry_since
        if since is None or not crew.wake.decides_here:
            return True
        return crew.clock.monotonic() - since >= crew.poll_seconds

    async def _is_work_there(self, look: Callable[[ReadOps], bool]) -> bool:
        """Ask the store whether a claim would find anything: without its lock, so that who is idle keeps nobody waiting."""
        found = await self._crew.store.read(look, brief=True)
        self._note_dry(not found)
        return found

    def _note_dry(self, is_dry: bool) -> None:
        self._dry_since = self._crew.clock.monotonic() if is_dry else None

    async def _work(self, worker: TaskWorker) -> None:
        await worker.serve()
        self._count()
        del self._held[worker]  # one that failed by a fault of ours stays, to be found
        self._crew.wake.wake_idle()

    def _look_for_faults(self) -> None:
        for work in list(self._held.values()):
            if work.done():
                work.result()

    def _count(self) -> None:
        """Add up the time since the last change."""
        now = self._crew.clock.monotonic()
        passed, self._counted_at = now - self._counted_at, now
        self._busy_seconds += passed * len(self._held)
        self._served_seconds += passed * max(self._agents, len(self._held))
