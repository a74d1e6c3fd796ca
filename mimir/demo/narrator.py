"""Narrator of a run: it polls the run's events and prints those that matter."""

import asyncio
import contextlib
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from mimir.demo.narration import narrate_event, needs_data
from mimir.demo.screen import NarratorScreen, say_wrapped
from mimir.domain.clock import moment
from mimir.domain.event import Event
from mimir.errors import MimirError
from mimir.orchestrator.api import Mimir

T = TypeVar("T")

POLL_SECONDS = 0.05


class Narrator:
    """Narrates the events of runs, each once and in order."""

    def __init__(self, screen: NarratorScreen, mimir: Mimir) -> None:
        self._screen = screen
        self._mimir = mimir
        self._first: Event | None = None
        self._last: dict[str, int] = {}

    async def watch(self, run: str, work: Awaitable[T]) -> T:
        """Do `work` and narrate a run during it, up to its last event."""
        job = asyncio.ensure_future(work)
        try:
            while not job.done():
                await asyncio.wait({job}, timeout=POLL_SECONDS)
                # The work needs the store too, and reports faults of the store.
                with contextlib.suppress(MimirError):
                    await self.catch_up(run)
        finally:
            if not job.done():
                job.cancel()
                await asyncio.wait({job})
        return job.result()

    async def catch_up(self, run: str) -> Sequence[Event]:
        """Narrate the new events of a run, and return them."""
        events = await self._mimir.events(run, self._last.get(run, 0))
        if not events:
            return events
        self._last[run] = events[-1].seq
        # The whole run is loaded, so only for events that need it.
        data = await self._mimir.material(run) if needs_data(events) else None
        for event in events:
            # The planning run's first event is the zero of all times.
            self._first = self._first or event
            seconds = (moment(event.at) - moment(self._first.at)).total_seconds()
            at = f"{seconds:.1f} s"
            for line in narrate_event(event, data):
                self.say(line.subject, line.text, at)
                at = ""
        return events

    def say(self, subject: str, text: str, at: str = "") -> None:
        """Print one line of the narration."""
        say_wrapped(self._screen, f"{at:>7} {subject:<12}", text)
