"""What the workers and the coordinator of one process share."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mimir.attempts.desk import RunFacts
from mimir.domain.clock import Clock
from mimir.errors import Paused
from mimir.scheduling.rows import Completions
from mimir.scheduling.turns import Turns
from mimir.store import workers
from mimir.store.protocol import GraphStore, Row


class Owners(Protocol):
    """Which processes of this host are alive: an `flock` each."""

    def dead(self) -> Collection[str]:
        """Return owners of this host, in this project, whose process is gone."""
        ...

    def gone(self, known: Mapping[str, str]) -> Collection[str]:
        """Return those of some owners of this host (name → lock file) whose process is gone; of any project."""
        ...


@dataclass(slots=True)
class Roster:
    """Which processes are known to be gone: by their lock files here, and by those that the processes of a run have named."""

    owners: Owners
    host: str
    _known: Mapping[str, str] = field(default_factory=dict[str, str])

    def learn(self, rows: Sequence[Row]) -> None:
        """Take in the registrations of a run."""
        self._known = workers.by_host(rows, self.host)

    def dead(self) -> frozenset[str]:
        """Return owners whose process is gone."""
        return frozenset(self.owners.dead()) | frozenset(self.owners.gone(self._known))


@dataclass(slots=True)
class Wake:
    """A bell: whoever waits for work or for news is woken by any change in this process.

    Where the run's coordinator is in this process, who looks for work looks after it: a task that the last change made ready
    may matter more than all that was ready before.
    """

    _condition: asyncio.Condition = field(default_factory=asyncio.Condition)
    _count: int = 0
    _decided: int | None = None
    """The ring after which the coordinator has looked; None: it is not here."""

    @property
    def count(self) -> int:
        """How often the bell was rung; read it before looking, hand it to `wait`."""
        return self._count

    async def ring(self) -> None:
        """Wake everyone."""
        async with self._condition:
            self._count += 1
            self._condition.notify_all()

    @contextlib.asynccontextmanager
    async def deciding(self) -> AsyncGenerator[None]:
        """Be the coordinator, here."""
        self._decided = -1
        try:
            yield
        finally:
            await self.decided(None)

    async def decided(self, rung: int | None) -> None:
        """Tell that all that follows from what happened before this ring was decided; None: nobody decides here any more."""
        self._decided = rung
        async with self._condition:
            self._condition.notify_all()

    async def until_decided(self, rung: int) -> None:
        """Wait until the coordinator has looked after this ring; where it is not in this process, do not wait."""
        async with self._condition:
            await self._condition.wait_for(lambda: self._decided is None or self._decided >= rung)

    async def wait(self, seen: int, seconds: float) -> None:
        """Wait until the bell was rung after `seen`, at most `seconds`: other processes do not ring here."""
        async with self._condition:
            try:
                async with asyncio.timeout(seconds):
                    await self._condition.wait_for(lambda: self._count != seen)
            except TimeoutError:
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """Services of one process for one run."""

    facts: RunFacts
    store: GraphStore
    leases: GraphStore
    """The same store, for writes that name no commit: a slow exchange of commits must not hold back a heartbeat."""
    clock: Clock
    owner: str
    """Name of this process in leases."""
    process: workers.Process
    """How it is registered; `owner` is its name."""
    owners: Roster
    lease_seconds: float
    work_room: Path
    wake: Wake
    completions: Completions
    """Looked at by whoever holds `integrating`."""
    integrating: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a task of this process is integrated: two that prove their merges at once would prove one of them in vain."""
    turns: Turns = field(default_factory=Turns)
    """In which its attempts think."""
    poll_seconds: float = 0.25
    """How often the store is asked for what other processes did."""
    answers_wait: bool = True
    """For the attempt's next write; False: each is committed as it comes, as in a replay, where time goes on with the events."""


@dataclass(slots=True)
class Halt:
    """The first reason why this process stops serving the run; set once."""

    reason: Paused | None = None
    broken: bool = False
    """True: a worker failed by a fault of ours, which its pool is about to raise; nothing more is taken."""
    on_halt: Callable[[], Awaitable[None]] | None = None

    async def because(self, paused: Paused) -> None:
        """Stop all workers of this process; later reasons are dropped."""
        if self.reason is None:
            self.reason = paused
            if self.on_halt:
                await self.on_halt()
