"""The task graph: order, readiness, blocked tasks and longest paths. Pure.

Each query is linear in tasks and dependencies, without recursion. An unchecked plan works too:
unknown dependencies are left out, and tasks of one id are one node.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mimir.domain.plan import Plan


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """Ids of tasks and the dependencies between them, in the plan's order."""

    ids: tuple[str, ...]
    """Each id once."""
    _dependencies: Mapping[str, tuple[str, ...]]
    _dependents: Mapping[str, tuple[str, ...]]

    @classmethod
    def from_plan(cls, plan: Plan) -> "TaskGraph":
        """Return the graph of a plan's tasks."""
        # Dictionaries, not sets: they keep the order of the plan.
        wanted: dict[str, dict[str, None]] = {task.id: {} for task in plan.tasks}
        for task in plan.tasks:
            wanted[task.id].update({d: None for d in task.dependencies if d in wanted})
        dependents: dict[str, list[str]] = {id: [] for id in wanted}
        for id, dependencies in wanted.items():
            for dependency in dependencies:
                dependents[dependency].append(id)
        return cls(
            tuple(wanted),
            {id: tuple(dependencies) for id, dependencies in wanted.items()},
            {id: tuple(waiting) for id, waiting in dependents.items()},
        )

    def dependencies(self, id: str) -> tuple[str, ...]:
        """Return the tasks that `id` waits for, as written, each once."""
        return self._dependencies[id]

    def dependents(self, id: str) -> tuple[str, ...]:
        """Return the tasks that wait for `id`, in the plan's order."""
        return self._dependents[id]

    def ready(self, done: Collection[str]) -> tuple[str, ...]:
        """Return the open tasks whose dependencies are all done, in the plan's order."""
        finished = frozenset(done)
        return tuple(
            id
            for id in self.ids
            if id not in finished and finished.issuperset(self.dependencies(id))
        )

    def downstream(self, id: str) -> frozenset[str]:
        """Return all direct and indirect dependents; a failure of `id` blocks exactly these."""
        return self._reach(id, self._dependents)

    def upstream(self, id: str) -> frozenset[str]:
        """Return all direct and indirect dependencies of `id`."""
        return self._reach(id, self._dependencies)

    def _reach(self, id: str, edges: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
        found: set[str] = set()
        open_ends = list(edges[id])
        while open_ends:
            here = open_ends.pop()
            if here not in found:
                found.add(here)
                open_ends.extend(edges[here])
        return frozenset(found)

    def _sorted(self) -> tuple[str, ...]:
        """Return the ids, dependencies first, without those in or after a cycle."""
        waiting = {id: len(self.dependencies(id)) for id in self.ids}
        free = [id for id in self.ids if not waiting[id]]
        for id in free:  # grows while it is walked
            for dependent in self.dependents(id):
                waiting[dependent] -= 1
                if not waiting[dependent]:
                    free.append(dependent)
        return tuple(free)

    def topological(self) -> tuple[str, ...]:
        """Return the ids, each after its dependencies; raise ValueError if there is a cycle."""
        order = self._sorted()
        if len(order) < len(self.ids):
            raise ValueError(f"The tasks wait for each other: {' -> '.join(self.cycle() or ())}")
        return order

    def cycle(self) -> tuple[str, ...] | None:
        """Return a cycle such as (a, b, a): a waits for b, b for a. None: there is none."""
        stuck = set(self.ids) - set(self._sorted())
        if not stuck:
            return None
        # Each stuck task waits for a stuck task, so following dependencies must return.
        here = next(id for id in self.ids if id in stuck)
        seen: dict[str, int] = {}
        path: list[str] = []
        while here not in seen:
            seen[here] = len(path)
            path.append(here)
            here = next(d for d in self.dependencies(here) if d in stuck)
        ring = path[seen[here] :]
        rank = {id: number for number, id in enumerate(self.ids)}
        first = min(range(len(ring)), key=lambda number: rank[ring[number]])
        return (*ring[first:], *ring[:first], ring[first])

    def remaining_path(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Return the weight of the heaviest path from each task to an end, itself included.

        A task without weight weighs 1. Raises ValueError if the graph has a cycle.
        """
        remaining: dict[str, float] = {}
        for id in reversed(self.topological()):
            behind = max((remaining[d] for d in self.dependents(id)), default=0.0)
            remaining[id] = weights.get(id, 1.0) + behind
        return remaining
