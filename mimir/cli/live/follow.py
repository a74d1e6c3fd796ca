"""Live view of a run: the work and the polling of its events run concurrently."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence

from mimir.cli.live.views import LiveOutput
from mimir.domain.event import Event
from mimir.domain.run import RunResult
from mimir.errors import MimirError

POLL_SECONDS = 0.1

Events = Callable[[int], Awaitable[Sequence[Event]]]
"""Returns the events after an event number."""


async def watch(
    work: Coroutine[object, object, RunResult], events: Events, view: LiveOutput, *, after: int = 0
) -> RunResult:
    """Do `work` and show its events; all of them are shown before this returns.

    If it is cancelled, or if the reader of the view is gone, it cancels the work, waits for its end, shows the remaining events and
    passes the exception on. A result that the work has returned by then is returned. `after` is the number of the last event that is
    already shown.
    """
    working = asyncio.ensure_future(work)
    follower = _EventFollower(events, view, after)
    try:
        while not working.done():
            await asyncio.wait({working}, timeout=POLL_SECONDS)
            await follower.show_new()
        await follower.show_new()
    except BaseException:
        working.cancel()
        try:
            view.show_pausing()
        finally:
            # The view may be broken, but the work must end in order.
            await asyncio.wait({working})
            await follower.show_new()
        if working.cancelled() or working.exception() is not None:
            raise
    return working.result()


class _EventFollower:
    """Reads and shows the events after the last one shown."""

    def __init__(self, events: Events, view: LiveOutput, after: int) -> None:
        self._events = events
        self._view = view
        self._after = after

    async def show_new(self) -> None:
        try:
            new = await self._events(self._after)
        except MimirError:
            return  # the work needs the store too, and reports the error itself
        if new:
            self._after = new[-1].seq
            self._view.show(new)
