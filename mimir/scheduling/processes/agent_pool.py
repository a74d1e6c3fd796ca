"""Agent pool of one process: its concurrent task slots, filled by one claimer."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial

from mimir.scheduling.processes.task_worker import RunClaim, TaskWorker
from mimir.scheduling.run_services import RunServices, StopSignal
from mimir.store.operations import claims
from mimir.store.protocol import ReadOps
from mimir.store.records.artifact_records import PoolCounters
from mimir.workspace.aio import cancel_all


class AgentPool:
    """Concurrent agents of one process that serves a run."""

    def __init__(self, services: RunServices, run_claim: RunClaim, stop: StopSignal) -> None:
        """Make a pool without agents; it claims no more tasks after `stop`."""
        self._services = services
        self._run_claim = run_claim
        self._stop_signal = stop
        self._agents = 0
        self._jobs: dict[TaskWorker, asyncio.Task[None]] = {}
        self._offers = services.wake.offers
        self._empty_since: float | None = None
        self._tries = self._empty = self._claimed = self._lost = 0
        self._busy_seconds = self._served_seconds = 0.0
        self._counted_at = services.clock.monotonic()

    async def spawn(self, agents: int) -> int:
        """Add agents; return their new number."""
        return await self.scale(self._agents + agents)

    async def scale(self, agents: int) -> int:
        """Set the number of agents; surplus ones finish their tasks first.

        Raises:
            ValueError: The number is negative.
        """
        if agents < 0:
            raise ValueError(f"A pool cannot have {agents} agents.")
        self._count_time()
        self._agents = agents
        self._services.wake.wake_idle()
        return agents

    @property
    def agents(self) -> int:
        """Largest number of concurrent tasks."""
        return self._agents

    @property
    def held(self) -> Sequence[tuple[str, int]]:
        """(task, fence) of each claim, oldest first."""
        return [(worker.claim.task, worker.claim.fence) for worker in self._jobs]

    def counters(self) -> PoolCounters:
        """Return the counters of the pool so far."""
        self._count_time()
        return PoolCounters(
            agents=self._agents,
            tries=self._tries,
            empty=self._empty,
            claimed=self._claimed,
            lost=self._lost,
            busy_seconds=round(self._busy_seconds, 3),
            served_seconds=round(self._served_seconds, 3),
        )

    def lose(self, tasks: Collection[str]) -> None:
        """Stop the work on tasks whose lease another process holds."""
        self._lost += self._stop(tasks)

    async def serve(self) -> None:
        """Work until the run stops or this coroutine is cancelled; then every lease is released."""
        wake = self._services.wake
        try:
            await wake.until_begun()
            self._counted_at = self._services.clock.monotonic()
            while self._stop_signal.reason is None:
                # An agent that became idle after these moves waits for the next round: the tasks that its task made ready may not be
                # released yet.
                calls, moves, idle = wake.calls, wake.moves, self._idle()
                await wake.until_decided(moves)
                await self._claim(min(idle, self._idle()))
                await wake.until_called(calls, self._services.poll_seconds)
                self._raise_bugs()
        finally:
            self._count_time()
            await cancel_all(self._jobs.values())

    def _idle(self) -> int:
        return self._agents - len(self._jobs)

    async def _claim(self, idle: int) -> None:
        """Claim a task for each idle agent, if there are any tasks to claim."""
        services, offers = self._services, self._services.wake.offers
        is_offered = offers != self._offers
        if idle <= 0 or not (is_offered or self._must_look()):
            return
        run, dead = services.facts.id, services.owners.dead()
        has_suspect = any(worker.claim.suspect for worker in self._jobs)
        look = partial(claims.is_work_there, run=run, dead=dead, has_suspect=has_suspect)
        if not (is_offered or await self._is_work_there(look)) or self._stop_signal.broken:
            return
        claim = partial(
            claims.claim,
            run=run,
            owner=services.owner,
            lease_seconds=services.lease_seconds,
            limit=idle,
            dead=dead,
            has_suspect=has_suspect,
        )
        # Not durable: the first durable write of an attempt makes its claim durable too.
        taken = await services.leases.write(claim, durable=False)
        self._offers = offers
        self._note_empty(len(taken) < idle)
        self._tries += 1
        self._empty += not taken
        self._claimed += len(taken)
        self._count_time()
        # A lease of this process that was not renewed in time is lost, even right before a retry.
        self.lose([one.task for one in taken if not one.fresh])
        self._stop([one.task for one in taken if one.fresh])
        for one in taken:
            worker = TaskWorker(services, self._run_claim, self._stop_signal, one)
            self._jobs[worker] = asyncio.ensure_future(self._work(worker))

    def _stop(self, tasks: Collection[str]) -> int:
        """Stop the workers of these tasks; return how many there were."""
        found = [worker for worker in self._jobs if worker.claim.task in tasks]
        for worker in found:
            worker.lose()
        return len(found)

    def _must_look(self) -> bool:
        """Return whether the store may hold tasks that were not offered here.

        If none was left and the coordinator is in this process, only another process can leave one: look now and then.
        """
        since = self._empty_since
        if since is None or not self._services.wake.decides_here:
            return True
        return self._services.clock.monotonic() - since >= self._services.poll_seconds

    async def _is_work_there(self, look: Callable[[ReadOps], bool]) -> bool:
        # Without the store's lock: idle processes must not delay others.
        found = await self._services.store.read(look, brief=True)
        self._note_empty(not found)
        return found

    def _note_empty(self, is_empty: bool) -> None:
        self._empty_since = self._services.clock.monotonic() if is_empty else None

    async def _work(self, worker: TaskWorker) -> None:
        await worker.serve()
        self._count_time()
        del self._jobs[worker]  # a worker that failed because of a bug stays, to be found
        self._services.wake.wake_idle()

    def _raise_bugs(self) -> None:
        # A worker handles expected errors itself, so an exception here is a bug.
        for job in list(self._jobs.values()):
            if job.done():
                job.result()

    def _count_time(self) -> None:
        """Add the time since the last change of the pool."""
        now = self._services.clock.monotonic()
        passed, self._counted_at = now - self._counted_at, now
        self._busy_seconds += passed * len(self._jobs)
        self._served_seconds += passed * max(self._agents, len(self._jobs))
