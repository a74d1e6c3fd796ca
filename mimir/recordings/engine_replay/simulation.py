"""Simulation of a recorded run: a temporary store, recorded time, turns in recorded order.

The actor of the next recorded event has the turn; all others wait at their next access to the store. One actor acts at a time, so each
reads the same values as in the recorded run.
"""

import asyncio
import contextlib
from bisect import bisect_left
from collections.abc import Callable, Generator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeVar

from mimir.domain.clock import moment
from mimir.domain.event import Event, EventKind
from mimir.errors import RecordingMiss
from mimir.recordings.engine_replay.differences import (
    ReplayDifference,
    describe_event_difference,
    event_label,
    is_same_step,
)
from mimir.recordings.format.recording import RecordedRun
from mimir.store.operations import record_loading, runs
from mimir.store.protocol import GraphStore, ReadOps, WriteOps

T = TypeVar("T")
Actor = tuple[str, int]
"""(task, attempt); ("", 0): the end of the run."""
RUN: Actor = ("", 0)
ACTOR: ContextVar[Actor | None] = ContextVar("actor", default=None)
"""Actor of the current task. None: the replay itself, which never waits."""
Pass = Literal["start", "reads"]


@dataclass(kw_only=True)
class EventCursor:
    """Recorded events, and the next one to be replayed."""

    recorded: RecordedRun
    is_older: bool
    """True: another version recorded the run; its requests and texts are not compared."""
    at: int = 0
    differences: list[ReplayDifference] = field(default_factory=list[ReplayDifference])
    holders: dict[str, str] = field(default_factory=dict[str, str])
    """Task → process that claimed it."""
    _places: dict[Actor, list[int]] = field(default_factory=dict[Actor, list[int]])

    def __post_init__(self) -> None:
        for at, event in enumerate(self.recorded.events):
            # A lease is taken by another process, not by the attempt.
            if event.kind is not EventKind.LEASE_TAKEN:
                self._places.setdefault((event.task, event.attempt), []).append(at)

    @property
    def next(self) -> Event | None:
        """Next event; None: all are replayed."""
        events = self.recorded.events
        return events[self.at] if self.at < len(events) else None

    @property
    def time(self) -> str:
        """Time of the next event, otherwise of the last."""
        events = self.recorded.events
        return events[min(self.at, len(events) - 1)].at if events else ""

    def next_event_of(self, actor: Actor) -> Event | None:
        """Return the next event of an actor."""
        own = self._places.get(actor, ())
        at = bisect_left(own, self.at)
        return self.recorded.events[own[at]] if at < len(own) else None

    def differ(self, where: str, detail: str) -> None:
        """Record a difference."""
        self.differences.append(ReplayDifference(where=where, detail=detail))

    def take(self, now: Sequence[Event]) -> None:
        """Compare replayed events with the recorded ones, and advance.

        Raises:
            RecordingMiss: The engine took another step than the recorded one.
        """
        for event in now:
            expected = self.next
            where = f"event {expected.seq} ({event_label(expected)})" if expected else "the end"
            detail = (
                describe_event_difference(expected, event, is_older=self.is_older)
                if expected
                else f"replayed {event_label(event)}"
            )
            if detail:
                self.differ(where, detail)
            if expected is None or not is_same_step(expected, event):
                raise RecordingMiss(f"{where}: {detail}")
            if event.kind in (EventKind.ATTEMPT_STARTED, EventKind.LEASE_TAKEN):
                self.holders[event.task] = str(event.data.get("owner") or "")
            self.at += 1


class RecordedClock:
    """Clock of a replay: the time of the next event, and the recorded seconds of each attempt."""

    def __init__(self, cursor: EventCursor) -> None:
        self._cursor = cursor
        self._asked: set[Actor] = set()

    def now(self) -> datetime:
        """Return the time of the next event."""
        time = self._cursor.time
        return moment(time) if time else datetime(2000, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        """Return the seconds of an attempt: 0 while it works, all of them once it has answered."""
        actor = ACTOR.get()
        # The first reading of an actor is the start of its stopwatch.
        if actor is None or actor not in self._asked:
            self._asked |= {actor} if actor else set()
            return 0.0
        # By actor: one that only reads may be ahead of the others.
        event = self._cursor.next_event_of(actor)
        if event is None:
            return 0.0
        left = event.data.get("secondsLeft") if event.kind is EventKind.BREAKER_TRIPPED else None
        # The time limit tripped: the remaining seconds give the elapsed ones.
        if isinstance(left, int | float):
            return self._minutes(event.task) * 60 - left
        if event.kind in _ANSWERS:
            facts = self._cursor.recorded.attempts.get((event.task, event.attempt))
            return (facts.seconds or 0.0) if facts else 0.0
        return 0.0

    def restart(self, actor: Actor) -> None:
        """Count again from 0: another process has the attempt."""
        self._asked.discard(actor)

    def _minutes(self, task: str) -> float:
        plan = self._cursor.recorded.plan
        return plan.task(task).time_limit_minutes if plan else 0.0


_ANSWERS = (EventKind.WORK_ANSWERED, EventKind.TASK_RETRIED, EventKind.TASK_FAILED)


class Simulation:
    """Store in which every actor waits for its turn."""

    def __init__(
        self, inner: GraphStore, cursor: EventCursor, owner: Callable[[], Actor | None]
    ) -> None:
        """Wrap a store; `owner` returns the actor of the next event (None: the replay itself)."""
        self._inner = inner
        self._cursor = cursor
        self._owner = owner
        self._passes: dict[Actor, Pass] = {}
        self._waiting: dict[Actor, list[asyncio.Future[None]]] = {}
        self._yielded: asyncio.Future[None] | None = None

    @property
    def uri(self) -> str:
        """Address without a file."""
        return "replay:"

    async def init(self) -> None:
        """Create the store."""
        await self._inner.init()

    async def close(self) -> None:
        """Close the store."""
        await self._inner.close()

    async def read(self, work: Callable[[ReadOps], T], /, *, brief: bool = False) -> T:
        """Read at the turn of the actor."""
        await self._for_turn(writes=False)
        return await self._inner.read(work, brief=brief)

    async def write(self, work: Callable[[WriteOps], T], /, *, durable: bool = True) -> T:
        """Write at the turn of the actor; the new events must be the recorded ones."""
        actor = ACTOR.get()
        await self._for_turn(writes=True)
        run = self._cursor.recorded.id

        def watched(ops: WriteOps) -> tuple[T, list[Event]]:
            # In the same transaction: events of another actor must not count as this one's.
            before = _last_event(ops, run)
            value = work(ops)
            is_changed = _last_event(ops, run) > before
            return value, runs.events(ops, run, after=before) if is_changed else []

        value, events = await self._inner.write(watched, durable=durable)
        if events:
            self._cursor.take(events)
        if actor is not None:
            self._step_done(actor)
        return value

    async def act(self, actor: Actor, work: "asyncio.Future[None]") -> None:
        """Let an actor act until the next event belongs to another one, or it has ended."""
        while self._owner() == actor and not work.done():
            await self._wait_for_step(actor, work)

    async def let(self, actor: Actor, work: "asyncio.Future[None]", step: Pass) -> None:
        """Let an actor act before its turn: to its first write (`start`), or to read (`reads`)."""
        self._passes[actor] = step
        while actor in self._passes and not work.done():
            await self._wait_for_step(actor, work)
        self._passes.pop(actor, None)

    async def _wait_for_step(self, actor: Actor, work: "asyncio.Future[None]") -> None:
        self._yielded = asyncio.get_running_loop().create_future()
        for waiting in self._waiting.pop(actor, []):
            if not waiting.done():
                waiting.set_result(None)
        # The actor may also end without another access to the store.
        await asyncio.wait((self._yielded, work), return_when=asyncio.FIRST_COMPLETED)

    async def _for_turn(self, *, writes: bool) -> None:
        actor = ACTOR.get()
        if actor is None:
            return
        while self._owner() != actor:
            given = self._passes.get(actor)
            if given == "start" or (given == "reads" and not writes):
                return
            # It reads ahead only until its first write.
            if given == "reads":
                del self._passes[actor]
                self._wake()
            # A list: one actor can have several tasks at the store.
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(actor, []).append(waiting)
            await waiting

    def _step_done(self, actor: Actor) -> None:
        if self._passes.get(actor) == "start":
            del self._passes[actor]
        self._wake()

    def _wake(self) -> None:
        if self._yielded is not None and not self._yielded.done():
            self._yielded.set_result(None)


def _last_event(reads: ReadOps, run: str) -> int:
    record = record_loading.find_run(reads, run)
    return record.last_event if record else 0


@contextlib.contextmanager
def acting_as(actor: Actor) -> Generator[None]:
    """Make `actor` the actor of all tasks that are started in the block."""
    token = ACTOR.set(actor)
    try:
        yield
    finally:
        ACTOR.reset(token)
