"""Drives a run: `for command in decide(snapshot): await apply(command)`, until everything has ended or something says stop.

One coordinator a run, by a lease in the store; workers of any process serve it. The coordinator never works on a task.
"""

from collections.abc import Sequence
from functools import partial
from typing import assert_never

from mimir.domain.event import EventKind
from mimir.domain.ids import task_id
from mimir.domain.scheduling_command import BlockTask, Command, FinishRun, ReleaseTask
from mimir.domain.task_states import TaskStatus
from mimir.scheduling.decide import RunSnapshot, decide
from mimir.scheduling.priority import weights
from mimir.scheduling.run_services import RunServices
from mimir.store.operations import claims, runs
from mimir.store.protocol import Row, WriteOps

_NEWS = frozenset(EventKind) - {EventKind.MODEL_CALLED, EventKind.TOOL_CALLED}
"""Events that may tell of a move: most tell of calls."""


class Coordinator:
    """Keeps one run's snapshot and carries out what `decide` says."""

    def __init__(self, crew: RunServices) -> None:
        self._crew = crew
        self._seen = 0
        self._snapshot: RunSnapshot | None = None

    async def drive(self) -> None:
        """Release and block tasks until every task of the run has ended; then return."""
        crew = self._crew
        with crew.wake.coordinating_here():
            while True:
                moves = crew.wake.moves
                commands = decide(await self._look())
                if _finished(commands):
                    return
                if commands:
                    await self._carry_out(commands)
                crew.wake.mark_decided(moves)
                if not any(isinstance(c, BlockTask) for c in commands):  # more may follow from one
                    await crew.wake.until_moved(moves, crew.poll_seconds)

    async def _look(self) -> RunSnapshot:
        """Bring the snapshot up to the store's events; build it from the rows the first time."""
        run = self._crew.facts.id
        if self._snapshot is None:
            rows, self._seen = await self._crew.store.read(
                lambda reads: (runs.tasks(reads, run), runs.last_seq(reads, run))
            )
            self._snapshot = _snapshot(self._crew, rows)
            return self._snapshot
        look = partial(runs.events, run=run, after=self._seen, kinds=_NEWS)
        for event in await self._crew.store.read(look, brief=True):
            self._seen = event.seq
            to = event.data.get("to")
            if event.task and isinstance(to, str):
                self._snapshot.apply(event.task, TaskStatus(to))
        return self._snapshot

    async def _carry_out(self, commands: Sequence[Command]) -> None:
        run = self._crew.facts.id
        releases, blocks = _parted(commands)

        def work(ops: WriteOps) -> None:
            if releases:
                claims.release_task(ops, run, releases)
            for task, because in blocks:
                claims.block_task(ops, run, task, because)

        await self._crew.store.write(work, durable=False)  # it follows from what is stored
        if self._snapshot:
            for task, _ in releases:
                self._snapshot.note_released(task)
        if releases:
            self._crew.wake.work_available()


def _parted(commands: Sequence[Command]) -> tuple[list[tuple[str, float]], list[tuple[str, str]]]:
    """Part what is to be done: (task, priority) of those released, (task, because) of those blocked."""
    releases: list[tuple[str, float]] = []
    blocks: list[tuple[str, str]] = []
    for command in commands:
        match command:
            case ReleaseTask(task=task, priority=priority):
                releases.append((task, priority))
            case BlockTask(task=task, because=because):
                blocks.append((task, because))
            case FinishRun():
                pass
            case _:
                assert_never(command)
    return releases, blocks


def _finished(commands: Sequence[Command]) -> bool:
    return any(isinstance(c, FinishRun) for c in commands)


def _snapshot(crew: RunServices, rows: Sequence[Row]) -> RunSnapshot:
    run, plan = crew.facts.id, crew.facts.plan
    by_id = {row["id"]: row for row in rows}
    known = {t.id: by_id[task_id(run, t.id)] for t in plan.tasks}
    return RunSnapshot.from_rows(
        plan,
        {t: TaskStatus(str(row["status"])) for t, row in known.items()},
        [t for t, row in known.items() if row.get("released")],
        weights(plan, crew.facts.learned),
    )
