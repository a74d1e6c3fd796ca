"""Claims tasks and sees each through: attempt, integration, retry or failure. The lease is kept alive; losing it stops the work."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from mimir.errors import LeaseLost, Paused
from mimir.scheduling.crew import Crew, Halt
from mimir.store import claims
from mimir.store.claims import Claim


class Worker:
    """One of the workers of a process; works on one task at a time."""

    def __init__(
        self, crew: Crew, see_through: Callable[[Claim], Awaitable[None]], halt: Halt
    ) -> None:
        self._crew = crew
        self._see_through = see_through
        self._halt = halt

    async def serve(self) -> None:
        """Work until the run pauses or this coroutine is cancelled; a cancelled attempt goes on where it was when resumed."""
        crew = self._crew
        while self._halt.reason is None:
            rung = crew.wake.count
            claim = await self._claim()
            if claim is None:
                await crew.wake.wait(rung, crew.poll_seconds)
                continue
            await self._hold(claim)
            await crew.wake.ring()

    async def _claim(self) -> Claim | None:
        crew = self._crew
        take = partial(
            claims.claim,
            run=crew.facts.id,
            owner=crew.owner,
            lease_seconds=crew.lease_seconds,
            dead=frozenset(crew.owners.dead()),
        )
        taken = await crew.store.write(take)
        return taken[0] if taken else None

    async def _hold(self, claim: Claim) -> None:
        """See the task through under a lease that is renewed; give the lease back however it ends."""
        try:
            await self._with_heartbeat(claim)
        except Paused as paused:
            await self._halt.because(paused)
        except LeaseLost:
            return  # another holder goes on with it; what we still had is refused by its fence
        finally:
            await asyncio.shield(self._give_back(claim))

    async def _with_heartbeat(self, claim: Claim) -> None:
        work = asyncio.ensure_future(self._see_through(claim))
        beat = asyncio.ensure_future(self._heartbeat(claim))
        try:
            await asyncio.wait((work, beat), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (beat, work):
                task.cancel()
            await asyncio.wait((work, beat))
        if work.cancelled():
            beat.result()  # raises LeaseLost or what ended the heartbeat
            raise LeaseLost(f"Task {claim.task!r}: the lease is gone.")
        work.result()

    async def _heartbeat(self, claim: Claim) -> None:
        """Renew the lease at a third of its length.

        Raises:
            LeaseLost: Another holder has the task.
        """
        crew = self._crew
        while True:
            await asyncio.sleep(crew.lease_seconds / 3)
            lost = await crew.store.write(
                partial(
                    claims.heartbeat,
                    run=crew.facts.id,
                    tasks=[(claim.task, claim.fence)],
                    owner=crew.owner,
                    lease_seconds=crew.lease_seconds,
                )
            )
            if lost:
                raise LeaseLost(f"Task {claim.task!r}: fence {claim.fence} is old.")

    async def _give_back(self, claim: Claim) -> None:
        """Give the lease back; a store that cannot be written pauses the run, and the lease ends with this process."""
        crew = self._crew
        give = partial(claims.give_back, run=crew.facts.id, task=claim.task, fence=claim.fence)
        try:
            await crew.store.write(give)
        except Paused as paused:
            await self._halt.because(paused)
