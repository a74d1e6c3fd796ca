"""Services that the workers and the coordinator of one process share."""

import asyncio
import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mimir.attempts.services import PinnedRun
from mimir.domain.clock import Clock
from mimir.domain.value_class import value_class
from mimir.errors import Paused
from mimir.scheduling.attempt_order import AttemptOrder
from mimir.scheduling.cpu_turns import CpuTurns
from mimir.scheduling.task_queries import CompletedTasks
from mimir.store.operations import worker_processes
from mimir.store.protocol import GraphStore
from mimir.store.records.artifact_records import ProcessRecord
from mimir.workspace.process_locks import ProcessLocks


@dataclass(slots=True)
class ProcessLiveness:
    """Dead processes of this host, by lock files of the project and the run."""

    owners: ProcessLocks
    host: str
    _known: Mapping[str, str] = field(default_factory=dict[str, str])

    def learn(self, processes: Sequence[ProcessRecord]) -> None:
        """Add the lock files of a run's registered processes."""
        self._known = worker_processes.lock_files(processes, self.host)

    def dead(self) -> frozenset[str]:
        """Return the owners whose process is dead."""
        # Other projects keep their locks elsewhere; the store names their files.
        return self.owners.find_dead() | self.owners.find_dead_of(self._known)


@dataclass(slots=True)
class WorkSignals:
    """Wake-up signals of one process, for its coordinator and its idle agents.

    If the coordinator is in this process, agents claim after its decision: a task that has just become ready may have a
    higher priority than all others.
    """

    moves: int = 0
    """Moves of tasks so far; read it before looking, and pass it to `until_moved`."""
    offers: int = 0
    """Number of times that new tasks could be claimed."""
    calls: int = 0
    """Calls of agents, because of an offer or an idle agent; for `until_called`."""
    has_begun: bool = False
    """Whether agents may claim: this process decides, or another one coordinates.

    Before that, a coordinator tries the checks; its agents are not idle.
    """
    _decided: int | None = None
    """Moves that the coordinator has decided on. None: it is not in this process."""
    _waiting: dict["asyncio.Future[None]", Callable[[], bool]] = field(
        default_factory=dict["asyncio.Future[None]", Callable[[], bool]]
    )
    """Waiter → its condition."""

    @property
    def decides_here(self) -> bool:
        """Whether the coordinator is in this process."""
        return self._decided is not None

    def task_moved(self, *, is_offer: bool = False) -> None:
        """Signal that a task moved; `is_offer`: its idle agent can claim it again."""
        self.moves += 1
        # A retry can be claimed when its agent has ended, which calls the others.
        self.offers += is_offer
        self._notify()

    def work_available(self) -> None:
        """Signal that new tasks can be claimed."""
        self.offers += 1
        self.wake_idle()

    def wake_idle(self) -> None:
        """Signal idle agents to look for work."""
        self.calls += 1
        self._notify()

    def begin(self) -> None:
        """Signal that agents may claim."""
        if not self.has_begun:
            self.has_begun = True
            self._notify()

    @contextlib.contextmanager
    def coordinating_here(self) -> Generator[None]:
        """Mark this process as the coordinator while the block runs."""
        self._decided = -1
        self.begin()
        try:
            yield
        finally:
            self.mark_decided(None)

    def mark_decided(self, moves: int | None) -> None:
        """Record the moves that the coordinator has decided on. None: it is not here any more."""
        self._decided = moves
        self._notify()

    async def until_begun(self, seconds: float | None = None) -> None:
        """Wait until agents may claim, at most `seconds`."""
        await self._wait(lambda: self.has_begun, seconds)

    async def until_decided(self, moves: int) -> None:
        """Wait for the coordinator's decision on `moves`; do not wait if it is in another process."""
        await self._until(lambda: self._decided is None or self._decided >= moves)

    async def until_moved(self, seen: int, seconds: float | None) -> None:
        """Wait for a move after `seen`, at most `seconds`: other processes send no signal."""
        await self._wait(lambda: self.moves != seen, seconds)

    async def until_called(self, seen: int, seconds: float) -> None:
        """Wait for a call of agents after `seen`, at most `seconds`."""
        await self._wait(lambda: self.calls != seen, seconds)

    async def _wait(self, is_met: Callable[[], bool], seconds: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._until(is_met)

    async def _until(self, is_met: Callable[[], bool]) -> None:
        while not is_met():
            waiter = asyncio.get_running_loop().create_future()
            self._waiting[waiter] = is_met
            try:
                await waiter
            finally:
                self._waiting.pop(waiter, None)

    def _notify(self) -> None:
        # All in one step of the loop: the waiters of an `asyncio.Condition` wake one after another.
        for waiter, is_met in list(self._waiting.items()):
            if is_met() and not waiter.done():
                waiter.set_result(None)


@value_class
class RunServices:
    """Services and facts of one process for one run."""

    facts: PinnedRun
    store: GraphStore
    leases: GraphStore
    """The same store for writes without commits, which no slow exchange may delay."""
    clock: Clock
    owner: str
    """Name of this process in leases."""
    process: worker_processes.WorkerProcess
    """Registration of this process."""
    owners: ProcessLiveness
    lease_seconds: float
    work_room: Path
    wake: WorkSignals
    completions: CompletedTasks
    """Used under `integrating` only."""
    integrating: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held during an integration: of two merges at once, one would have to be proved again."""
    turns: CpuTurns = field(default_factory=CpuTurns)
    """CPU turns of its attempts."""
    pace: AttemptOrder = field(default_factory=AttemptOrder)
    poll_seconds: float = 0.25
    """Seconds between looks at the changes of other processes."""
    answers_wait: bool = True
    """True: answers are committed with the attempt's next write. False: each at once."""


@dataclass(slots=True)
class StopSignal:
    """Signal that this process stops serving the run; the first reason counts."""

    reason: Paused | None = None
    broken: bool = False
    """True: a worker failed because of a bug; no further task is claimed."""
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    def stop(self, paused: Paused) -> None:
        """Stop all workers of this process; later reasons are ignored."""
        if self.reason is None:
            self.reason = paused
            self.stopped.set()
