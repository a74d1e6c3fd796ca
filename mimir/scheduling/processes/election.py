"""Who coordinates a run: one process, by a lease. When it dies, any other one that serves the run takes the chair.

The chair's work is everything that is done once a run: deciding, the final gate, the seals, the report.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from mimir.domain.run import RunResult
from mimir.domain.task_states import RUN_ENDED, RunStatus
from mimir.errors import BusyError, Paused, UsageError
from mimir.scheduling import lifecycle
from mimir.scheduling.run_services import RunServices
from mimir.store import row_fields
from mimir.store.operations import leases, worker_processes
from mimir.store.protocol import ReadOps, Row
from mimir.store.schema import NodeLabel

Lead = Callable[[], Awaitable[RunResult]]
"""Coordinates a run to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """Where a run stands, as every process that serves it looks again and again."""

    status: RunStatus
    coordinator: str
    """Empty: nobody, or nobody who lives."""
    row: Row


class CoordinatorElection:
    """This process's place in the election."""

    def __init__(self, crew: RunServices, lead: Lead, *, leads: bool) -> None:
        """Prepare it.

        Args:
            crew: Services and facts of this process.
            lead: What the coordinator does.
            leads: True: this process has taken the lease already.
        """
        self.leads = leads
        self._crew = crew
        self._lead = lead
        self._leading: asyncio.Future[RunResult] | None = None

    def lose(self) -> None:
        """Stop leading: the lease is another process's."""
        self.leads = False
        if self._leading is not None:
            self._leading.cancel()

    async def sit(self) -> RunResult | None:
        """Lead the run to its end, whenever nobody else does.

        Returns:
            How it ended; None: another process has ended it.

        Raises:
            Paused: The run is paused, by this process's part or by another.
        """
        try:
            while True:
                standing = await self.look()
                if standing.status in RUN_ENDED and self._leading is None:
                    return None
                if standing.status is RunStatus.PAUSED:
                    raise _paused(standing.row)
                await self._take(standing)
                ending = await self._wait()
                if ending is not None:
                    return ending
        finally:
            await self._rise()

    async def look(self) -> RunState:
        """Look where the run stands and who is gone."""
        crew = self._crew
        row, rows, now = await crew.store.read(partial(_look, run=crew.facts.id), brief=True)
        crew.owners.learn(rows)
        return RunState(
            status=RunStatus(row_fields.text_field(row, "status")),
            coordinator=leases.holder_at(row, lifecycle.COORDINATOR, now, crew.owners.dead()),
            row=row,
        )

    async def _take(self, standing: RunState) -> None:
        """Take the chair if it is free."""
        crew = self._crew
        if self._leading is None and not self.leads and not standing.coordinator:
            take = partial(
                lifecycle.take_run,
                run=crew.facts.id,
                owner=crew.owner,
                seconds=crew.lease_seconds,
                dead=crew.owners.dead(),
                resumed=True,
            )
            try:
                await crew.leases.write(take)
            except (BusyError, UsageError):
                return  # another one was faster, or the run has just ended
            self.leads = True
        if self.leads and self._leading is None:
            self._leading = asyncio.ensure_future(self._lead())

    async def _wait(self) -> RunResult | None:
        """Wait for news, or for the end; None: nothing is decided yet."""
        if self._leading is None:
            await asyncio.sleep(self._crew.poll_seconds)
            return None
        done, _ = await asyncio.wait((self._leading,), timeout=self._crew.poll_seconds)
        if not done:
            return None
        led, self._leading = self._leading, None
        return None if led.cancelled() else led.result()

    async def _rise(self) -> None:
        if self._leading is not None:
            self._leading.cancel()
            await asyncio.gather(self._leading, return_exceptions=True)


def _look(reads: ReadOps, run: str) -> tuple[Row, list[Row], str]:
    return reads.get(NodeLabel.RUN, run) or {}, worker_processes.present(reads, run), reads.now()


def _paused(row: Row) -> Paused:
    run, why = str(row["id"]), row_fields.text_field(row, "pauseMessage")
    return Paused(
        f"Run {run} was paused{f': {why}' if why else '.'}",
        reason=ELSEWHERE,
        next_step=f"Go on with: mimir resume {run}",
    )


ELSEWHERE = "elsewhere"
"""Reason of a pause that another process has written."""
