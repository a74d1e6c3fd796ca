"""What the workers and the coordinator of one process share."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mimir.attempts.services import PinnedRun
from mimir.domain.clock import Clock
from mimir.errors import Paused
from mimir.scheduling.attempt_order import AttemptOrder, Unordered
from mimir.scheduling.cpu_turns import CpuTurns
from mimir.scheduling.task_queries import CompletedTasks
from mimir.store.operations import worker_processes
from mimir.store.protocol import GraphStore, Row


class Owners(Protocol):
    """Which processes of this host are alive: an `flock` each."""

    def find_dead(self) -> Collection[str]:
        """Return owners of this host, in this project, whose process is gone."""
        ...

    def find_dead_of(self, known: Mapping[str, str]) -> Collection[str]:
        """Return those of some owners of this host (name → lock file) whose process is gone; of any project."""
        ...


@dataclass(slots=True)
class ProcessLiveness:
    """Which processes are known to be gone: by their lock files here, and by those that the processes of a run have named."""

    owners: Owners
    host: str
    _known: Mapping[str, str] = field(default_factory=dict[str, str])

    def learn(self, rows: Sequence[Row]) -> None:
        """Take in the registrations of a run."""
        self._known = worker_processes.by_host(rows, self.host)

    def dead(self) -> frozenset[str]:
        """Return owners whose process is gone."""
        return frozenset(self.owners.find_dead()) | frozenset(self.owners.find_dead_of(self._known))


@dataclass(slots=True)
class WorkSignals:
    """The bells of one process: of the coordinator, when a task has moved; of idle agents, when there may be work for them.

    Where the run's coordinator is in this process, who looks for work looks after it: a task that the last change made ready
    may matter more than all that was ready before.
    """

    moves: int = 0
    """How often a task has moved; read it before looking, hand it to `until_moved`."""
    offers: int = 0
    """How often tasks could be claimed that could not be before."""
    calls: int = 0
    """How often agents were called: there is an offer, or one of them became idle; as `moves`, for `until_called`."""
    _decided: int | None = None
    """The moves after which the coordinator has looked; None: it is not here."""
    _waiting: dict["asyncio.Future[None]", Callable[[], bool]] = field(
        default_factory=dict["asyncio.Future[None]", Callable[[], bool]]
    )
    """Who waits, and for what."""

    @property
    def decides_here(self) -> bool:
        """Whether the coordinator is in this process."""
        return self._decided is not None

    def task_moved(self, *, is_offer: bool = False) -> None:
        """Tell the coordinator that a task has moved; `is_offer`: it can be claimed again, once its agent is idle and calls."""
        self.moves += 1
        self.offers += is_offer
        self._tell()

    def work_available(self) -> None:
        """Tell agents that there is work which was not there before."""
        self.offers += 1
        self.wake_idle()

    def wake_idle(self) -> None:
        """Have idle agents look for work."""
        self.calls += 1
        self._tell()

    @contextlib.contextmanager
    def coordinating_here(self) -> Generator[None]:
        """Be the coordinator, here."""
        self._decided = -1
        try:
            yield
        finally:
            self.mark_decided(None)

    def mark_decided(self, moves: int | None) -> None:
        """Tell that all that follows from so many moves was decided; None: nobody decides here any more."""
        self._decided = moves
        self._tell()

    async def until_decided(self, moves: int) -> None:
        """Wait until the coordinator has looked after so many moves; where it is not in this process, do not wait."""
        await self._until(lambda: self._decided is None or self._decided >= moves)

    async def until_moved(self, seen: int, seconds: float | None) -> None:
        """Wait until a task has moved after `seen`, at most `seconds`: of other processes nothing is heard here."""
        await self._wait(lambda: self.moves != seen, seconds)

    async def until_called(self, seen: int, seconds: float) -> None:
        """Wait until agents were called after `seen`, at most `seconds`, as above."""
        await self._wait(lambda: self.calls != seen, seconds)

    async def _wait(self, is_heard: Callable[[], bool], seconds: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._until(is_heard)

    async def _until(self, is_heard: Callable[[], bool]) -> None:
        while not is_heard():
            waiter = asyncio.get_running_loop().create_future()
            self._waiting[waiter] = is_heard
            try:
                await waiter
            finally:
                self._waiting.pop(waiter, None)

    def _tell(self) -> None:
        """Wake those who hear it, in one step of the loop: of a condition's waiters each would wait for the one before, and whoever thinks for all."""
        for waiter, is_heard in list(self._waiting.items()):
            if is_heard() and not waiter.done():
                waiter.set_result(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunServices:
    """Services of one process for one run."""

    facts: PinnedRun
    store: GraphStore
    leases: GraphStore
    """The same store, for writes that name no commit: a slow exchange of commits must not hold back a heartbeat."""
    clock: Clock
    owner: str
    """Name of this process in leases."""
    process: worker_processes.WorkerProcess
    """How it is registered; `owner` is its name."""
    owners: ProcessLiveness
    lease_seconds: float
    work_room: Path
    wake: WorkSignals
    completions: CompletedTasks
    """Looked at by whoever holds `integrating`."""
    integrating: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a task of this process is integrated: two that prove their merges at once would prove one of them in vain."""
    turns: CpuTurns = field(default_factory=CpuTurns)
    """In which its attempts think."""
    pace: AttemptOrder = field(default_factory=Unordered)
    poll_seconds: float = 0.25
    """How often the store is asked for what other processes did."""
    answers_wait: bool = True
    """For the attempt's next write; False: each is committed as it comes, as in a replay, where time goes on with the events."""


@dataclass(slots=True)
class StopSignal:
    """The first reason why this process stops serving the run; set once."""

    reason: Paused | None = None
    broken: bool = False
    """True: a worker failed by a fault of ours, which its pool is about to raise; nothing more is taken."""
    on_halt: Callable[[], Awaitable[None]] | None = None

    async def stop(self, paused: Paused) -> None:
        """Stop all workers of this process; later reasons are dropped."""
        if self.reason is None:
            self.reason = paused
            if self.on_halt:
                await self.on_halt()
