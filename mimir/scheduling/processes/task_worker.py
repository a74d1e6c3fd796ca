"""One agent on one claimed task: attempt, integration, retry or failure. Losing the lease stops the work."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import cast

from mimir.errors import LeaseLost, Paused
from mimir.scheduling.run_services import RunServices, StopSignal
from mimir.store.operations import claims
from mimir.store.operations.claims import Claim


class TaskWorker:
    """Holds one claim until the task has come to rest."""

    def __init__(
        self,
        crew: RunServices,
        see_through: Callable[[Claim], Awaitable[None]],
        halt: StopSignal,
        claim: Claim,
    ) -> None:
        self.claim = claim
        self._crew = crew
        self._see_through = see_through
        self._halt = halt
        self._work: asyncio.Task[None] | None = None
        self._is_lost = False

    def lose(self) -> None:
        """Stop the work with its tools: another holder has the task."""
        if self._work is not None and not self._is_lost:
            self._is_lost = True
            self._work.cancel()

    async def serve(self) -> None:
        """See the task through, and give the lease back however that ends; a cancelled attempt goes on where it was."""
        is_over = False
        try:
            await self._through()
            is_over = True  # its last move ended the lease
        except Paused as paused:
            await self._halt.stop(paused)
        except LeaseLost:
            return  # another holder goes on with it; what we still had is refused by its fence
        except Exception:
            # Said before the lease is free: nobody here shall take the task again.
            self._halt.broken = True
            raise
        finally:
            if not is_over:
                await asyncio.shield(self._give_back(self.claim))

    async def _through(self) -> None:
        # In the task that called: one of its own would be heard of two steps of the loop later.
        self._work = work = cast("asyncio.Task[None]", asyncio.current_task())
        try:
            await self._see_through(self.claim)
        except asyncio.CancelledError:
            if work.cancelling() > self._is_lost:  # the whole process stops
                raise
            raise LeaseLost(f"Task {self.claim.task!r}: fence {self.claim.fence} is old.") from None
        finally:
            self._work = None
            if self._is_lost:
                work.uncancel()

    async def _give_back(self, claim: Claim) -> None:
        """Give the lease back; a store that cannot be written pauses the run, and the lease ends with this process."""
        crew = self._crew
        give = partial(claims.release_claim, run=crew.facts.id, task=claim.task, fence=claim.fence)
        try:
            await crew.leases.write(give)
        except Paused as paused:
            await self._halt.stop(paused)
