"""Tells a run as it happens: reads its events from the store, and says each one that matters."""

import asyncio
import contextlib
from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeVar

from mimir.demo.narration import narrate_event, needs_data, seconds
from mimir.domain.event import Event
from mimir.errors import MimirError
from mimir.orchestrator.api import Mimir
from mimir.reporting.summary.run_data import RunData

T = TypeVar("T")

POLL_SECONDS = 0.05


class NarratorScreen(Protocol):
    """Where the person looks; to make text harmless is its business."""

    def say(self, text: str = "") -> None:
        """Print a line."""
        ...


class Narrator:
    """Tells the events of runs, each once, in order."""

    def __init__(self, screen: NarratorScreen, mimir: Mimir) -> None:
        self._screen = screen
        self._mimir = mimir
        self._first: Event | None = None
        self._after: dict[str, int] = {}

    async def watch(self, run: str, work: Awaitable[T]) -> T:
        """Do `work`, and tell what happens in a run meanwhile; all of it is told before this returns."""
        doing = asyncio.ensure_future(work)
        try:
            while not doing.done():
                await asyncio.wait({doing}, timeout=POLL_SECONDS)
                # The work needs the store, too: it says what is wrong with it.
                with contextlib.suppress(MimirError):
                    await self.catch_up(run)
        finally:
            if not doing.done():
                doing.cancel()
                await asyncio.wait({doing})
        return doing.result()

    async def catch_up(self, run: str) -> Sequence[Event]:
        """Tell what happened since the last time; those events."""
        events = await self._mimir.events(run, self._after.get(run, 0))
        if not events:
            return events
        self._after[run] = events[-1].seq
        data = await self._mimir.material(run) if needs_data(events) else None
        for event in events:
            self._tell(event, data)
        return events

    def say(self, who: str, said: str, at: str = "") -> None:
        """Say a line of one's own among those of the run."""
        self._screen.say(f"{at:>7} {who:<12}{said}")

    def _tell(self, event: Event, data: RunData | None) -> None:
        self._first = self._first or event
        at = f"{seconds(self._first, event):.1f} s"
        for number, line in enumerate(narrate_event(event, data)):
            self.say(line.who, line.said, at if number == 0 else "")
