"""Rules for all tasks together: ids, dependencies, cycles, overlapping files. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

from mimir.domain.finding import Finding, quote_excerpt
from mimir.domain.globs import has_wildcard
from mimir.domain.graph import TaskGraph
from mimir.domain.overlap import overlap
from mimir.domain.plan import Plan, Task
from mimir.planning.format.diagnostics import SourceMap, make_finding
from mimir.planning.lint.file_rules import check_files, is_task_0
from mimir.planning.lint.task_rules import did_you_mean, hint_names

MAX_OVERLAPS = 50
MAX_HINTS = 50
"""Unknown dependencies that get a suggestion; each one compares all ids."""
# Pairs of globs that are compared; in a larger plan some overlaps are not found.
_MAX_COMPARED = 20_000


def check_structure(plan: Plan, places: SourceMap) -> Iterator[Finding]:
    """Yield the findings of the plan as a whole."""
    if not plan.tasks:
        hint = "Begin each task with a heading or a line **Task ID:** task-1."
        yield make_finding("plan-empty", "The plan has no task.", suggestion=hint)
        return
    numbers: dict[str, int] = {}
    for n, task in enumerate(plan.tasks):
        first = numbers.setdefault(task.id, n)
        if task.id and first != n:
            line = places.position_of(first, "id").line
            yield make_finding(
                "task-duplicate",
                f"Task {quote_excerpt(task.id)} is defined twice, first on line {line}.",
                places.position_of(n, "id"),
                "Give one of the tasks another id.",
            )
    yield from _dependencies(plan, places)
    # A dependency on itself has its own finding; as a cycle it would hide all other cycles.
    graph = TaskGraph.from_plan(_without_self(plan))
    cycle = graph.cycle()
    if cycle is not None:
        yield make_finding(
            "plan-cycle",
            f"These tasks depend on each other: {' -> '.join(cycle)}.",
            places.position_of(numbers[cycle[0]], "dependencies"),
            "Remove one of these dependencies.",
        )
    # Overlaps need a topological order, which a cycle makes impossible.
    yield from _task_0(plan, places)
    yield from check_files(plan, places)
    if cycle is None:
        yield from _overlaps(plan, places, graph, numbers)


def _without_self(plan: Plan) -> Plan:
    tasks = tuple(
        replace(task, dependencies=tuple(d for d in task.dependencies if d != task.id))
        for task in plan.tasks
    )
    return replace(plan, tasks=tasks)


def _dependencies(plan: Plan, places: SourceMap) -> Iterator[Finding]:
    known = {task.id for task in plan.tasks if task.id}
    hints = MAX_HINTS
    for n, task in enumerate(plan.tasks):
        name = quote_excerpt(task.id)
        for item, id in enumerate(task.dependencies):
            at = places.position_of(n, "dependencies", item)
            if id == task.id:
                message = f"Task {name} depends on itself."
                yield make_finding("dependency-self", message, at, "Remove the dependency.")
            elif id not in known:
                # Each suggestion compares all ids: unlimited, they take quadratic time.
                hints -= 1
                hint = (did_you_mean(id, known) or hint_names(known)) if hints >= 0 else ""
                message = f"Task {name} depends on unknown task {quote_excerpt(id)}."
                yield make_finding("dependency-unknown", message, at, hint)


def _task_0(plan: Plan, places: SourceMap) -> Iterator[Finding]:
    zero = next((task.id for task in plan.tasks if is_task_0(task.id)), None)
    if zero is None:
        yield make_finding(
            "task-0-missing",
            "The plan has no task 0 that validates the environment.",
            places.position_of(0),
            "Add task-0 with hold checks on the unchanged tree.",
        )
        return
    for n, task in enumerate(plan.tasks):
        if not task.dependencies and not is_task_0(task.id):
            yield make_finding(
                "task-0-skipped",
                f"Task {quote_excerpt(task.id)} has no dependencies, not even on {zero}.",
                places.position_of(n, "dependencies"),
                f"Add {zero} to its dependencies.",
            )


# Files.


def _overlaps(
    plan: Plan, places: SourceMap, graph: TaskGraph, numbers: dict[str, int]
) -> Iterator[Finding]:
    """Yield pairs of independent tasks that write the same files, at most `MAX_OVERLAPS`."""
    rank = {id: n for n, id in enumerate(graph.topological())}
    above = _ancestors(graph, rank)
    tasks = {task.id: task for task in plan.tasks if task.files}
    seen: set[tuple[str, str]] = set()
    for a, b, glob in _common_files(list(tasks.values()), rank):
        pair = (a, b) if rank[a] < rank[b] else (b, a)
        # Related tasks never run at the same time, so that they may share files.
        related = above[pair[1]] >> rank[pair[0]] & 1
        if pair in seen or related or a == b:
            continue
        seen.add(pair)
        first, second = sorted(pair, key=lambda id: numbers[id])
        yield make_finding(
            "files-overlap",
            f"Tasks {first} and {second} may run at the same time, and both write {quote_excerpt(glob)}.",
            places.position_of(numbers[second], "files"),
            "Make one depend on the other, or give them different files.",
        )
        if len(seen) >= MAX_OVERLAPS:
            return


def _ancestors(graph: TaskGraph, rank: dict[str, int]) -> dict[str, int]:
    """Return all direct and indirect dependencies of each task, as bits by topological rank."""
    above: dict[str, int] = {}
    for id in rank:
        bits = 0
        for dependency in graph.dependencies(id):
            # One integer for each task: a union of ten thousand ancestors is one operation.
            bits |= above[dependency] | 1 << rank[dependency]
        above[id] = bits
    return above


def _common_files(tasks: Sequence[Task], rank: dict[str, int]) -> Iterator[tuple[str, str, str]]:
    """Yield pairs of tasks with an equal or overlapping glob."""
    by_path: dict[str, list[str]] = defaultdict(list)
    wild: list[tuple[str, str]] = []
    for task in tasks:
        for glob in dict.fromkeys(task.files):
            by_path[glob].append(task.id)
            if has_wildcard(glob) or glob.endswith("/"):
                wild.append((task.id, glob))
    for glob, ids in by_path.items():
        ids.sort(key=lambda id: rank[id])
        # Of many tasks neighbours suffice: if all neighbours are related, all pairs are.
        near = len(ids) if len(ids) <= 20 else 2
        for n, a in enumerate(ids):
            for b in ids[n + 1 : n + near]:
                yield a, b, glob
    # Of many writers of one path, twenty suffice to show an overlap with another glob.
    paths = [(id, glob) for glob, ids in by_path.items() for id in ids[:20]]
    for (a, glob), (b, other) in islice(product(wild, paths), _MAX_COMPARED):
        if a != b and glob != other and overlap(glob, other):
            yield a, b, glob
    yield from _common_folders(by_path)


def _common_folders(by_path: dict[str, list[str]]) -> Iterator[tuple[str, str, str]]:
    """Yield pairs of which one task writes a folder and the other a path inside it."""
    for path, ids in by_path.items():
        parts = path.split("/")
        # Deeper folders are not compared; the bound keeps a path of many slashes cheap.
        for n in range(1, min(len(parts), 20)):
            for a, b in product(by_path.get("/".join(parts[:n]), ())[:20], ids[:20]):
                if a != b:
                    yield a, b, path
