"""Worker of one claimed task: it runs the claim and releases the lease."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import cast

from mimir.errors import LeaseLost, Paused, Waiting
from mimir.scheduling.run_services import RunServices, StopSignal
from mimir.store.operations import claims
from mimir.store.operations.claims import Claim

RunClaim = Callable[[Claim], Awaitable[None]]
"""Brings one claimed task to its next resting status."""


class TaskWorker:
    """Holder of one claim."""

    def __init__(
        self, services: RunServices, run_claim: RunClaim, stop: StopSignal, claim: Claim
    ) -> None:
        self.claim = claim
        self._services = services
        self._run_claim = run_claim
        self._stop = stop
        self._work: asyncio.Task[None] | None = None
        self._is_lost = False

    def lose(self) -> None:
        """Stop the work with its tools: another process holds the task."""
        if self._work is not None and not self._is_lost:
            self._is_lost = True
            self._work.cancel()

    async def serve(self) -> None:
        """Run the claim, and release the lease in any case; a cancelled attempt can be resumed."""
        has_ended = False
        try:
            await self._run()
            has_ended = True  # its last move ended the lease
        except Paused as paused:
            self._stop.stop(paused)
        except Waiting:
            has_ended = True  # the transaction of the question ended the lease
            # The coordinator must learn that one task less is running.
            self._services.wake.task_moved()
        except LeaseLost:
            return  # another holder continues; the fence refuses further writes of this one
        except Exception:
            # Set before the lease is free: no agent of this process may claim the task again.
            self._stop.broken = True
            raise
        finally:
            if not has_ended:
                await asyncio.shield(self._release())

    async def _run(self) -> None:
        # In the task of the caller: a separate one would end two steps of the loop later.
        self._work = work = cast("asyncio.Task[None]", asyncio.current_task())
        try:
            await self._run_claim(self.claim)
        except asyncio.CancelledError:
            if work.cancelling() > self._is_lost:  # the whole process stops
                raise
            raise LeaseLost(f"Task {self.claim.task!r}: fence {self.claim.fence} is old.") from None
        finally:
            self._work = None
            if self._is_lost:
                work.uncancel()

    async def _release(self) -> None:
        """Release the lease; if the store cannot be written, the run pauses and the lease expires."""
        run, claim = self._services.facts.id, self.claim
        release = partial(claims.release_claim, run=run, task=claim.task, fence=claim.fence)
        try:
            await self._services.leases.write(release)
        except Paused as paused:
            self._stop.stop(paused)
