"""Drives a run and shows what happens: the work and the look at its events, side by side, until the work has come to rest."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence

from mimir.cli.live.views import LiveOutput
from mimir.domain.event import Event
from mimir.domain.run import RunResult
from mimir.errors import MimirError

POLL_SECONDS = 0.1

Events = Callable[[int], Awaitable[Sequence[Event]]]
"""Returns what happened behind an event's number."""


async def watch(
    work: Coroutine[object, object, RunResult], events: Events, view: LiveOutput, *, after: int = 0
) -> RunResult:
    """Do `work`, and show its events as they come; all of them are shown before this returns.

    Cancelled, or with a view that nobody looks at any more, it cancels the work, waits until that has come to rest, shows what
    happened meanwhile and passes the exception on; but a work that was done by then is done.

    Args:
        work: Serves the run.
        events: Where its events are read.
        view: Where they are shown.
        after: Number of the last event that is not shown.
    """
    doing = asyncio.ensure_future(work)
    looking = _EventFollower(events, view, after)
    try:
        while not doing.done():
            await asyncio.wait({doing}, timeout=POLL_SECONDS)
            await looking.look()
        await looking.look()
    except BaseException:
        await _rest(doing, looking, view)
        if doing.cancelled() or doing.exception() is not None:
            raise
    return doing.result()


async def _rest(
    doing: "asyncio.Future[RunResult]", looking: "_EventFollower", view: LiveOutput
) -> None:
    """Cancel the work and wait for it; whatever goes wrong with the view now, the work comes first."""
    doing.cancel()
    try:
        view.show_pausing()
    finally:
        await asyncio.wait({doing})
        await looking.look()


class _EventFollower:
    """Reads on from the last event that was shown."""

    def __init__(self, events: Events, view: LiveOutput, after: int) -> None:
        self._events = events
        self._view = view
        self._after = after

    async def look(self) -> None:
        try:
            fresh = await self._events(self._after)
        except MimirError:
            return  # the work, which needs the store too, says what is wrong with it, also when it is lost for good
        if fresh:
            self._after = fresh[-1].seq
            self._view.show(fresh)
