"""Coordinator of a run: it applies the decisions of `decide` until every task has ended.

A task is released when its preambles are pinned, too. Of tasks whose files overlap, the order of `decide` holds, whichever is pinned first.
One process coordinates a run, by a lease; workers of any process serve it. The coordinator never works on a task.
"""

from collections.abc import Sequence
from functools import partial

from mimir.domain.event import EventKind
from mimir.domain.scheduling_command import (
    AwaitInput,
    BlockTask,
    Command,
    FinishRun,
    ReleaseTask,
)
from mimir.domain.task_states import TaskStatus
from mimir.scheduling import input_pause
from mimir.scheduling.decide import RunSnapshot, decide
from mimir.scheduling.priority import weights
from mimir.scheduling.run_services import RunServices
from mimir.store.operations import claim_candidates, claims, runs
from mimir.store.operations.record_loading import load_tasks
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.records.task_records import TaskProgressRecord

# Most events are calls, and a call never changes a status.
_STATUS_EVENTS = frozenset(EventKind) - {EventKind.MODEL_CALLED, EventKind.TOOL_CALLED}


_QUESTION_EVENTS = (EventKind.QUESTION_ASKED, EventKind.QUESTION_CLOSED)


class Coordinator:
    """Snapshot of one run, with the writes that `decide` asks for."""

    def __init__(self, services: RunServices) -> None:
        self._services = services
        self._last_event = 0
        self._snapshot: RunSnapshot | None = None

    async def drive(self) -> None:
        """Release and block tasks until every task of the run has ended."""
        services = self._services
        with services.wake.coordinating_here():
            while True:
                # Read before the snapshot: a move during the decision is not missed.
                moves = services.wake.moves
                snapshot = await self._refresh()
                if snapshot.waiting:
                    await self._expire_questions()
                decided = decide(snapshot)
                commands = [command for command in decided if self._is_prepared(command)]
                if any(isinstance(command, FinishRun) for command in commands):
                    return
                if any(isinstance(command, AwaitInput) for command in commands):
                    await self._pause_for_input()
                if commands:
                    await self._apply(commands)
                services.wake.mark_decided(moves)
                # A blocked task may block its dependents: decide again at once.
                if not any(isinstance(command, BlockTask) for command in commands):
                    await services.wake.until_moved(moves, services.poll_seconds)

    def _is_prepared(self, command: Command) -> bool:
        """Return whether the preambles that a command needs are pinned: those of its task, or all."""
        facts = self._services.facts
        match command:
            case ReleaseTask():
                return facts.has_preambles(facts.tasks[command.task])
            case AwaitInput():
                # A pause would end the calls that make the others.
                return all(map(facts.has_preambles, facts.tasks.values()))
            case _:
                return True

    async def _pause_for_input(self) -> None:
        """Pause the run and raise `Paused`, unless an answer has just come or a question expires."""
        services = self._services
        pause = partial(input_pause.pause_for_input, run=services.facts.id, owner=services.owner)
        paused = await services.store.write(pause)
        if paused is not None:
            raise paused

    async def _expire_questions(self) -> None:
        """Let the defaults of questions hold whose time is over; tasks continue at the next look."""
        services, run = self._services, self._services.facts.id
        # A read first: nearly always nothing is due.
        if await services.store.read(partial(input_pause.find_due, run=run), brief=True):
            await services.store.write(partial(input_pause.expire_due, run=run))

    async def _refresh(self) -> RunSnapshot:
        """Apply the new events to the snapshot; the first call builds it from the tasks."""
        run = self._services.facts.id
        if self._snapshot is None:

            def load(reads: ReadOps) -> tuple[list[TaskProgressRecord], int]:
                return load_tasks(reads, run, TaskProgressRecord), runs.last_seq(reads, run)

            tasks, self._last_event = await self._services.store.read(load)
            self._snapshot = _make_snapshot(self._services, tasks)
            return self._snapshot
        load_events = partial(runs.events, run=run, after=self._last_event, kinds=_STATUS_EVENTS)
        for event in await self._services.store.read(load_events, brief=True):
            self._last_event = event.seq
            to = event.data.get("to")
            if event.task and isinstance(to, str):
                self._snapshot.apply(event.task, TaskStatus(to))
            if event.kind in _QUESTION_EVENTS and event.data.get("blocking") is True:
                waits = event.kind is EventKind.QUESTION_ASKED
                self._snapshot.note_waiting(event.task, waits=waits)
        return self._snapshot

    async def _apply(self, commands: Sequence[Command]) -> None:
        run = self._services.facts.id
        releases = [(one.task, one.priority) for one in commands if isinstance(one, ReleaseTask)]
        blocks = [(one.task, one.because) for one in commands if isinstance(one, BlockTask)]

        def work(ops: WriteOps) -> None:
            if releases:
                claims.release_task(ops, run, releases)
            for task, because in blocks:
                claims.block_task(ops, run, task, because)

        # Not durable: the same decision follows again from the stored records.
        await self._services.store.write(work, durable=False)
        if self._snapshot:
            for task, _ in releases:
                self._snapshot.note_released(task)
        if releases:
            self._services.wake.work_available()


def _make_snapshot(services: RunServices, tasks: Sequence[TaskProgressRecord]) -> RunSnapshot:
    plan = services.facts.plan
    by_id = {task.task_id: task for task in tasks}
    known = [by_id[task.id] for task in plan.tasks]
    snapshot = RunSnapshot.from_rows(
        plan,
        {task.task_id: task.status for task in known},
        [task.task_id for task in known if task.released],
        weights(plan, services.facts.learned),
    )
    # From the tasks and not from events: a resumed run reads only new events.
    for task in known:
        snapshot.note_waiting(task.task_id, waits=task.claim_state == claim_candidates.WAITING)
    return snapshot
