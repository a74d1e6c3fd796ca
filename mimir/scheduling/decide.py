"""Decisions of the coordinator: from a run's snapshot to commands. Pure.

The snapshot is updated change by change, so the cost of a decision depends on the number of changes.

A task is released as soon as its own dependencies are completed. Of ready tasks whose declared files overlap, the one with the longest
remaining path is released first, and the others wait for it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from mimir.domain.graph import TaskGraph
from mimir.domain.overlap import GlobSet
from mimir.domain.plan import Plan, Task
from mimir.domain.scheduling_command import AwaitInput, BlockTask, Command, FinishRun, ReleaseTask
from mimir.domain.task_states import TERMINAL, TaskStatus


@dataclass(slots=True)
class RunSnapshot:
    """Status of every task, with the indexes that make decisions fast."""

    tasks: Mapping[str, Task]
    priority: Mapping[str, float]
    dependents: Mapping[str, tuple[str, ...]]
    status: dict[str, TaskStatus]
    missing: dict[str, int]
    """Number of dependencies that are not completed yet."""
    open: int
    """Number of tasks that have not ended."""
    released: set[str] = field(default_factory=set[str])
    """Released and not ended."""
    ready: set[str] = field(default_factory=set[str])
    """Pending, with completed dependencies, and not released."""
    doomed: dict[str, str] = field(default_factory=dict[str, str])
    """Pending task → dependency that ended without being completed."""
    declared: set[str] = field(default_factory=set[str])
    """Released tasks that declare `files`; only these can delay another."""
    taken: GlobSet = field(default_factory=GlobSet)
    """Files of these tasks."""
    waiting: set[str] = field(default_factory=set[str])
    """Tasks that wait for an answer of the user: neither running nor ready."""
    alike: dict[tuple[str, ...], list[tuple[float, str]]] = field(
        default_factory=dict[tuple[str, ...], list[tuple[float, str]]], compare=False
    )
    """Files → heap of their tasks, longest remaining path first; removed lazily."""

    @classmethod
    def from_rows(
        cls,
        plan: Plan,
        status: Mapping[str, TaskStatus],
        released: Iterable[str],
        weights: Mapping[str, float],
    ) -> "RunSnapshot":
        """Build a snapshot from the stored status of each task."""
        graph = TaskGraph.from_plan(plan)
        snapshot = cls(
            tasks={t.id: t for t in plan.tasks},
            priority=graph.remaining_path(weights),
            dependents={t.id: tuple(graph.dependents(t.id)) for t in plan.tasks},
            status={t.id: TaskStatus.PENDING for t in plan.tasks},
            missing={t.id: len(set(t.dependencies)) for t in plan.tasks},
            open=len(plan.tasks),
        )
        for task in plan.tasks:
            if not task.dependencies:
                snapshot.note_ready(task.id)
        for task in released:
            snapshot.note_released(task)
        for task, at in status.items():
            snapshot.apply(task, at)
        return snapshot

    def apply(self, task: str, to: TaskStatus) -> None:
        """Apply one change of status."""
        # An event may repeat a status that the snapshot was built from.
        before = self.status[task]
        if before in TERMINAL or before is to:
            return
        self.status[task] = to
        self.ready.discard(task)
        self.doomed.pop(task, None)
        if to not in TERMINAL:
            return
        self.open -= 1
        self.released.discard(task)
        self.waiting.discard(task)
        if task in self.declared:
            self.declared.remove(task)
            self.taken.remove(self.tasks[task].files)
        for dependent in self.dependents[task]:
            self._dependency_ended(dependent, task, completed=to is TaskStatus.COMPLETED)

    def _dependency_ended(self, task: str, dependency: str, *, completed: bool) -> None:
        if self.status[task] is not TaskStatus.PENDING:
            return
        if not completed:
            # The first dependency that failed is reported as the reason.
            self.doomed.setdefault(task, dependency)
            self.ready.discard(task)
            return
        self.missing[task] -= 1
        # A released task may still be pending: no process has claimed it yet.
        if self.missing[task] == 0 and task not in self.released:
            self.note_ready(task)

    def note_ready(self, task: str) -> None:
        """Record that a task can be released."""
        self.ready.add(task)
        waiting = self.alike.setdefault(self.tasks[task].files, [])
        heappush(waiting, (-self.priority[task], task))

    def note_waiting(self, task: str, *, waits: bool) -> None:
        """Record that a task waits for an answer, or no longer waits."""
        if waits and self.status[task] not in TERMINAL:
            self.waiting.add(task)
        else:
            self.waiting.discard(task)

    @property
    def needs_input(self) -> bool:
        """Whether no task can continue without an answer of the user."""
        return bool(self.waiting) and self.released <= self.waiting

    def candidates(self) -> list[str]:
        """Return the ready tasks that a decision must consider, longest remaining path first."""
        first: list[tuple[float, str]] = []
        for files in list(self.alike):
            waiting = self.alike[files]
            while waiting and waiting[0][1] not in self.ready:
                heappop(waiting)
            if not waiting:
                del self.alike[files]
            elif files:
                # Of the tasks that declare the same files only the first can be released.
                first.append(waiting[0])
            else:
                first += [one for one in waiting if one[1] in self.ready]
        return [id for _, id in sorted(first)]

    def note_released(self, task: str) -> None:
        """Record that a task was released."""
        if self.status[task] in TERMINAL:
            return
        self.ready.discard(task)
        self.released.add(task)
        files = self.tasks[task].files
        if files and task not in self.declared:
            self.declared.add(task)
            self.taken.add(files)


def decide(snapshot: RunSnapshot) -> list[Command]:
    """Return the commands that follow; the caller records their effects in the snapshot."""
    blocks: list[Command] = [
        BlockTask(task=t, because=b) for t, b in sorted(snapshot.doomed.items())
    ]
    finish: list[Command] = [FinishRun()] if snapshot.open == 0 else []
    # Only if nothing else can be done: the other tasks never wait for the user.
    commands = [*blocks, *_releases(snapshot), *finish]
    return commands or ([AwaitInput()] if snapshot.needs_input else [])


def _releases(snapshot: RunSnapshot) -> list[Command]:
    """Release every ready task without an overlap, longest remaining path first."""
    out: list[Command] = []
    chosen = GlobSet()
    for id in snapshot.candidates():
        files = snapshot.tasks[id].files
        if snapshot.taken.meets(files) or chosen.meets(files):
            continue
        # Two tasks of the same decision must not overlap either.
        chosen.add(files)
        out.append(ReleaseTask(task=id, priority=snapshot.priority[id]))
    return out
