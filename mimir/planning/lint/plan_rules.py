"""What is wrong with the tasks together: ids, dependencies, cycles, task 0, files that two of them write."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

from mimir.domain.globs import has_wildcard
from mimir.domain.graph import TaskGraph
from mimir.domain.overlap import overlap
from mimir.domain.plan import Plan, Task
from mimir.planning.format.diagnostics import (
    START,
    PlanFinding,
    SourceMap,
    make_finding,
    quote_excerpt,
)
from mimir.planning.lint.task_rules import did_you_mean, hint_names

MAX_OVERLAPS = 50
MAX_HINTS = 50
"""Unknown dependencies for which the nearest task is looked for; each costs a walk over all ids."""
_MAX_COMPARED = 20_000
"""Pairs of globs; in a plan with more, some overlaps are not named."""
_TASK_0 = re.compile(r"(?:task[-_ ]?)?0+(?:\.\d+)*", re.IGNORECASE)


def check_structure(plan: Plan, places: SourceMap) -> Iterator[PlanFinding]:
    """Yield what is wrong with the plan as a whole."""
    if not plan.tasks:
        yield make_finding(
            "plan-empty",
            "There is no task in this plan.",
            START,
            suggestion="Begin each task with a heading or a line **Task ID:** task-1.",
        )
        return
    yield from _duplicates(plan, places)
    yield from _dependencies(plan, places)
    graph = TaskGraph.from_plan(_without_self(plan))
    ring = graph.cycle()
    numbers = _numbers(plan)
    if ring is not None:
        yield make_finding(
            "plan-cycle",
            f"These tasks wait for each other: {' -> '.join(ring)}.",
            places.position_of(numbers[ring[0]], "dependencies"),
            suggestion="Take out one of these dependencies.",
        )
    yield from _task_0(plan, places, graph)
    if ring is None:
        yield from _overlaps(plan, places, graph)


def is_task_0(id: str) -> bool:
    """True for the id of the task that validates the environment."""
    return _TASK_0.fullmatch(id) is not None


def _without_self(plan: Plan) -> Plan:
    tasks = tuple(
        replace(task, dependencies=tuple(d for d in task.dependencies if d != task.id))
        for task in plan.tasks
    )
    return replace(plan, tasks=tasks)


def _numbers(plan: Plan) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for n, task in enumerate(plan.tasks):
        numbers.setdefault(task.id, n)
    return numbers


def _duplicates(plan: Plan, places: SourceMap) -> Iterator[PlanFinding]:
    first: dict[str, int] = {}
    for n, task in enumerate(plan.tasks):
        if task.id and task.id in first:
            line = places.position_of(first[task.id], "id").line
            yield make_finding(
                "task-duplicate",
                f"There are two tasks {quote_excerpt(task.id)}; the first is on line {line}.",
                places.position_of(n, "id"),
                suggestion="Give one of them another id.",
            )
        first.setdefault(task.id, n)


def _dependencies(plan: Plan, places: SourceMap) -> Iterator[PlanFinding]:
    known = {task.id for task in plan.tasks if task.id}
    hints = MAX_HINTS
    for n, task in enumerate(plan.tasks):
        for item, id in enumerate(task.dependencies):
            at = places.position_of(n, "dependencies", item)
            if id == task.id:
                yield make_finding(
                    "dependency-self",
                    f"Task {task.id} depends on itself.",
                    at,
                    suggestion="Take it out.",
                )
            elif id not in known:
                hints -= 1
                yield make_finding(
                    "dependency-unknown",
                    f"Task {task.id} depends on {quote_excerpt(id)}, which is not in the plan.",
                    at,
                    suggestion=(did_you_mean(id, known) or hint_names(known)) if hints >= 0 else "",
                )


def _task_0(plan: Plan, places: SourceMap, graph: TaskGraph) -> Iterator[PlanFinding]:
    zero = next((task for task in plan.tasks if is_task_0(task.id)), None)
    if zero is None:
        yield make_finding(
            "task-0-missing",
            "There is no task 0 that validates the environment.",
            places.position_of(0),
            suggestion="Add task-0 with hold checks on the unchanged tree.",
        )
        return
    for n, task in enumerate(plan.tasks):
        if not task.dependencies and not is_task_0(task.id):
            yield make_finding(
                "task-0-skipped",
                f"Task {task.id} depends on nothing, not even on {zero.id}.",
                places.position_of(n, "dependencies"),
                suggestion=f"Add {zero.id} to its dependencies.",
            )


# Files.


def _overlaps(plan: Plan, places: SourceMap, graph: TaskGraph) -> Iterator[PlanFinding]:
    """Yield pairs of tasks that may run at the same time and write the same files, at most `MAX_OVERLAPS`."""
    above = _ancestors(graph)
    rank = {id: n for n, id in enumerate(graph.topological())}
    tasks = {task.id: task for task in plan.tasks if task.files}
    numbers = _numbers(plan)
    seen: set[tuple[str, str]] = set()
    for a, b, glob in _meetings(list(tasks.values()), rank):
        pair = (a, b) if rank[a] < rank[b] else (b, a)
        related = above[pair[1]] >> rank[pair[0]] & 1
        if pair in seen or related or a == b:
            continue
        seen.add(pair)
        second = max(pair, key=lambda id: numbers[id])
        other = pair[0] if second == pair[1] else pair[1]
        yield make_finding(
            "files-overlap",
            f"Tasks {other} and {second} may run at the same time, and both write {quote_excerpt(glob)}.",
            places.position_of(numbers[second], "files"),
            suggestion="Let one depend on the other, or give them different files.",
        )
        if len(seen) >= MAX_OVERLAPS:
            return


def _ancestors(graph: TaskGraph) -> dict[str, int]:
    """Return for each task the set of those it waits for, as bits by topological rank."""
    order = graph.topological()
    rank = {id: n for n, id in enumerate(order)}
    above: dict[str, int] = {}
    for id in order:
        bits = 0
        for dependency in graph.dependencies(id):
            bits |= above[dependency] | 1 << rank[dependency]
        above[id] = bits
    return above


def _meetings(tasks: Sequence[Task], rank: dict[str, int]) -> Iterator[tuple[str, str, str]]:
    """Yield pairs of tasks with a glob in common, or globs that meet; all pairs where there are few.

    Of many tasks that write one and the same path only neighbours in the order are compared: if all neighbours are related, all are.
    """
    by_path: dict[str, list[str]] = defaultdict(list)
    wild: list[tuple[str, str]] = []
    for task in tasks:
        for glob in dict.fromkeys(task.files):
            by_path[glob].append(task.id)
            if has_wildcard(glob) or glob.endswith("/"):
                wild.append((task.id, glob))
    for glob, ids in by_path.items():
        ids.sort(key=lambda id: rank[id])
        near = len(ids) if len(ids) <= 20 else 2
        for n, a in enumerate(ids):
            for b in ids[n + 1 : n + near]:
                yield a, b, glob
    paths = [(id, glob) for glob, ids in by_path.items() for id in ids[:20]]
    for (a, glob), (b, other) in islice(product(wild, paths), _MAX_COMPARED):
        if a != b and glob != other and overlap(glob, other):
            yield a, b, glob
    yield from _folders(by_path)


def _folders(by_path: dict[str, list[str]]) -> Iterator[tuple[str, str, str]]:
    """Yield pairs where one task writes a folder, and the other something in it."""
    for path, ids in by_path.items():
        parts = path.split("/")
        for n in range(1, min(len(parts), 20)):
            for a in by_path.get("/".join(parts[:n]), ())[:20]:
                for b in ids[:20]:
                    if a != b:
                        yield a, b, path
