"""Writer of the ledger during a run: at most one file a second, and one at the end."""

import asyncio
from functools import partial

from mimir.domain.event import EventKind
from mimir.errors import MimirError
from mimir.orchestrator.patterns.ledger_file import try_write_ledger
from mimir.orchestrator.patterns.ledger_state import read_ledger
from mimir.orchestrator.services import ProjectServices
from mimir.store.operations import runs

SECONDS = 1.0
"""Shortest time between two writes."""


class LedgerWriter:
    """Writes the ledger of one run; only its coordinator does."""

    def __init__(self, services: ProjectServices, run: str) -> None:
        self._services = services
        self._run = run
        self._written = -1

    async def follow(self) -> None:
        """Write the ledger after new events, until this is cancelled."""
        while True:
            last = await self._services.store.read(partial(runs.last_event, run=self._run))
            # A run that waits for models needs no write.
            if last != self._written:
                self._written = last
                for message in await self.write():
                    log = partial(runs.append_event, run=self._run, kind=EventKind.WARNING)
                    data = {"message": message}
                    await self._services.store.write(partial(log, data=data), durable=False)
            await asyncio.sleep(SECONDS)

    async def write(self) -> list[str]:
        """Write the ledger as the store is now; return the messages for the user."""
        services, messages = self._services, list[str]()
        read = partial(
            read_ledger,
            project=services.project_id,
            run=self._run,
            dead=(),
            now=services.clock.now(),
        )
        try:
            ledger = await services.store.read(read, brief=True)
        except MimirError:  # a store that is away is reported by the run itself
            return messages
        await asyncio.to_thread(try_write_ledger, services.project, ledger, messages.append)
        return messages
