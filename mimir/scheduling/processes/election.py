"""Leader election: one process coordinates a run while it holds the coordinator lease.

If it dies, any other process that serves the run takes over. The coordinator does each step that a run has once: decisions, final gate, seals
and report.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from mimir.domain.run import INPUT, RunResult
from mimir.domain.task_states import RUN_ENDED, RunStatus
from mimir.errors import BusyError, Paused, UsageError
from mimir.scheduling import input_pause, lifecycle
from mimir.scheduling.run_services import RunServices
from mimir.store.operations.record_loading import lease_holder, load_processes, load_run
from mimir.store.protocol import ReadOps
from mimir.store.records.artifact_records import ProcessRecord
from mimir.store.records.run_records import RunRecord

Lead = Callable[[], Awaitable[RunResult]]
"""Coordinates a run to its end."""

ELSEWHERE = "elsewhere"
"""Reason of a pause that another process wrote."""


class CoordinatorElection:
    """Part of this process in the election."""

    def __init__(self, services: RunServices, lead: Lead, *, leads: bool) -> None:
        """Prepare the election; `leads`: this process holds the lease already."""
        self.leads = leads
        self._services = services
        self._lead = lead
        self._leading: asyncio.Future[RunResult] | None = None

    def lose(self) -> None:
        """Stop coordinating: another process holds the lease."""
        self.leads = False
        if self._leading is not None:
            self._leading.cancel()

    async def attend(self) -> RunResult | None:
        """Coordinate the run as long as no other process does, until it ends.

        Returns:
            The result. None: another process ended the run.

        Raises:
            Paused: This process or another one paused the run.
        """
        try:
            while True:
                run, coordinator = await self._look()
                # If this process leads, its own result follows.
                if run.status in RUN_ENDED and self._leading is None:
                    return None
                if run.status is RunStatus.PAUSED:
                    raise _pause_error(run)
                await self._take(coordinator)
                if not self.leads:
                    self._services.wake.begin()
                result = await self._wait()
                if result is not None:
                    return result
        finally:
            if self._leading is not None:
                self._leading.cancel()
                await asyncio.gather(self._leading, return_exceptions=True)

    async def _look(self) -> tuple[RunRecord, str]:
        """Return the run and its coordinator; empty if no live process holds the lease."""
        services = self._services
        load = partial(_load, run=services.facts.id)
        run, processes, now = await services.store.read(load, brief=True)
        services.owners.learn(processes)
        return run, lease_holder(run, lifecycle.COORDINATOR, now, services.owners.dead())

    async def _take(self, coordinator: str) -> None:
        """Take the lease if it is free, and coordinate if it is held."""
        services = self._services
        # The process that finds the free lease first takes it; the others are refused.
        if self._leading is None and not self.leads and not coordinator:
            take = partial(
                lifecycle.take_run,
                run=services.facts.id,
                owner=services.owner,
                seconds=services.lease_seconds,
                dead=services.owners.dead(),
                resumed=True,
            )
            try:
                await services.leases.write(take)
            except (BusyError, UsageError):
                return  # another process was faster, or the run has just ended
            self.leads = True
        if self.leads and self._leading is None:
            self._leading = asyncio.ensure_future(self._lead())

    async def _wait(self) -> RunResult | None:
        """Wait for the result, at most for the poll time; None: there is none yet."""
        if self._leading is None:
            await asyncio.sleep(self._services.poll_seconds)
            return None
        done, _ = await asyncio.wait((self._leading,), timeout=self._services.poll_seconds)
        if not done:
            return None
        led, self._leading = self._leading, None
        return None if led.cancelled() else led.result()


def _load(reads: ReadOps, run: str) -> tuple[RunRecord, list[ProcessRecord], str]:
    return load_run(reads, run), load_processes(reads, run), reads.now()


def _pause_error(run: RunRecord) -> Paused:
    # Also the pause of this process itself, if it is seen before its coordinator has returned.
    if run.pause_reason == INPUT:
        step = input_pause.answer_step(run.id)
        return Paused(run.pause_message, reason=INPUT, next_step=step)
    reason = f": {run.pause_message}" if run.pause_message else "."
    return Paused(
        f"Run {run.id} was paused{reason}",
        reason=ELSEWHERE,
        next_step=f"Continue it: mimir resume {run.id}",
    )
