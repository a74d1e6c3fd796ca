"""One process serves a run: a coordinator and its workers, until every task has ended or something says stop."""

import asyncio
from collections.abc import Awaitable, Callable

from mimir.errors import Paused
from mimir.scheduling.coordinator import Coordinator
from mimir.scheduling.crew import Crew, Halt
from mimir.scheduling.worker import Worker
from mimir.store.claims import Claim


async def serve(
    crew: Crew,
    see_through: Callable[[Claim], Awaitable[None]],
    *,
    workers: int,
    seconds: float | None = None,
) -> None:
    """Work on a run until all its tasks have ended.

    Args:
        crew: Services and facts of this process.
        see_through: Brings one claimed task to its next resting status.
        workers: Tasks worked on at once; >= 1.
        seconds: What is left of the run's time limit; None: no limit.

    Raises:
        Paused: Why it stops here; every lease was given back, no work is lost.
    """
    stop = asyncio.Event()

    async def on_halt() -> None:
        stop.set()

    halt = Halt(on_halt=on_halt)
    drive = asyncio.ensure_future(Coordinator(crew).drive())
    stopped = asyncio.ensure_future(_wait(stop))
    everyone = [drive, stopped]
    everyone += [
        asyncio.ensure_future(Worker(crew, see_through, halt).serve()) for _ in range(workers)
    ]
    try:
        # The end of the run, a halt, or a fault of ours: whichever comes first.
        done, _ = await asyncio.wait(everyone, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for future in done:
            future.result()
    finally:
        for job in everyone:
            job.cancel()
        await asyncio.gather(*everyone, return_exceptions=True)
    if halt.reason:
        raise halt.reason
    if not done:
        raise Paused(
            "The run's time limit is reached.",
            reason="time_limit",
            next_step="Go on with a new total: mimir resume --time-limit MINUTES",
        )


async def _wait(event: asyncio.Event) -> None:
    await event.wait()
