"""Recorded order of attempts, kept while their work is done again: merges depend on it.

An attempt starts after the merges that it started from in the recording. It merges after the attempts that merged before it, and after
those that started from the earlier run branch have started. An order that cannot be kept (fewer agents, a task that ends differently)
is abandoned; the next requests show whether that matters.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

from mimir.domain.event import Event, EventKind
from mimir.domain.task_states import TERMINAL, TaskStatus
from mimir.domain.value_class import value_class
from mimir.recordings.format.recording import RecordedRun
from mimir.scheduling.attempt_order import AttemptOrder

Attempt = tuple[str, int]
"""(task, number)."""
PATIENCE_SECONDS = 5.0
"""Limit for the wait of all attempts while an agent is free; then the order is abandoned."""
_AT_REST = frozenset(status.value for status in (*TERMINAL, TaskStatus.PREPARING_RETRY))


@value_class
class RecordedOrder:
    """Order in which attempts started and merged."""

    landings: tuple[Attempt, ...] = ()
    """Attempts that merged or had a merge conflict, in order."""
    moved: frozenset[int] = frozenset()
    """Places of those that moved the run branch."""
    floors: Mapping[Attempt, int]
    """Attempt → number of landings that it started from."""
    width: int = 1
    """Most attempts at once."""


def order_of(run: RecordedRun, tasks: Collection[str]) -> RecordedOrder:
    """Return the recorded order of some tasks."""
    landings: list[Attempt] = []
    moved: set[int] = set()
    heads: dict[object, int] = {str(run.pinned.get("baseCommit")): 0}
    for event in run.events:
        commit = event.data.get("commit") if event.kind is EventKind.TASK_COMPLETED else ""
        if event.task not in tasks or not (commit or event.data.get("onto")):
            continue
        if commit:
            moved.add(len(landings))
        landings.append((event.task, event.attempt))
        if commit:
            heads[commit] = len(landings)
    floors = {
        one: heads[facts.base]
        for one, facts in run.attempts.items()
        if one[0] in tasks and facts.base in heads
    }
    return RecordedOrder(
        landings=tuple(landings),
        moved=frozenset(moved),
        floors=floors,
        width=_width(event for event in run.events if event.task in tasks),
    )


def _width(events: Iterable[Event]) -> int:
    """Return the most tasks that were executed at once."""
    busy: set[str] = set()
    most = 1
    for event in events:
        to = event.data.get("to")
        if to == TaskStatus.WORKER_EXECUTING.value:
            busy.add(event.task)
        elif to in _AT_REST:
            busy.discard(event.task)
        most = max(most, len(busy))
    return most


class RecordedAttemptOrder(AttemptOrder):
    """Keeps the attempts of one process in a recorded order while that is possible."""

    def __init__(self, order: RecordedOrder, agents: int) -> None:
        self._order = order
        self._agents = agents
        self._places = {one: place for place, one in enumerate(order.landings)}
        self._held: set[Attempt] = set()
        self._waiting: dict[Attempt, Callable[[], bool]] = {}
        """Attempt → whether it may continue."""
        self._begun: set[Attempt] = set()
        self._over: set[Attempt] = set()
        self._changes = 0
        self._bell = asyncio.Event()
        self._is_kept = True

    async def before_start(self, task: str, attempt: int) -> None:
        """Wait for the merges that the attempt started from."""
        one = (task, attempt)
        self._held.add(one)
        self._changes += 1
        before = self._order.landings[: self._order.floors.get(one, 0)]
        await self._until(one, lambda: self._over.issuperset(before))

    def started(self, task: str, attempt: int) -> None:
        """Note that the attempt has read the head of the run branch."""
        self._begun.add((task, attempt))
        self._ring()

    async def before_merge(self, task: str, attempt: int) -> None:
        """Wait for the earlier merges, and for the attempts that started before them."""
        one = (task, attempt)
        place = self._places.get(one)
        if place is None:
            return
        before = self._order.landings[:place]
        early = {
            other
            for other, floor in self._order.floors.items()
            if place in self._order.moved and floor <= place
        }
        await self._until(
            one,
            lambda: self._over.issuperset(before) and early <= (self._begun | self._over | {one}),
        )

    def done(self, task: str, attempt: int) -> None:
        """Note that no attempt needs to wait for it."""
        one = (task, attempt)
        self._held.discard(one)
        self._over.add(one)
        self._ring()

    async def _until(self, one: Attempt, is_due: Callable[[], bool]) -> None:
        self._waiting[one] = is_due
        try:
            while self._is_kept and not is_due():
                # Taken before the check, which may ring it and set another one.
                bell = self._bell
                self._check_deadlock()
                await bell.wait()
        finally:
            del self._waiting[one]

    def _ring(self) -> None:
        self._changes += 1
        # A new bell each time: an event that stays set would not wait again.
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()

    def _check_deadlock(self) -> None:
        """Abandon the order if all attempts wait: at once, or later if an agent is free."""
        # One attempt that works, or that is due, can still let the others continue.
        if self._waiting.keys() != self._held or any(due() for due in self._waiting.values()):
            return
        if len(self._held) >= self._agents:
            self._abandon()
        else:
            # A free agent may claim a task that the others wait for.
            loop, seen = asyncio.get_running_loop(), self._changes
            loop.call_later(PATIENCE_SECONDS, lambda: seen == self._changes and self._abandon())

    def _abandon(self) -> None:
        self._is_kept = False
        self._ring()
