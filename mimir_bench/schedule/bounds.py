"""Lower bound of a schedule, and two simple schedules for comparison."""

import heapq

from mimir_bench.schedule.graph_families import Graph


def lower_bound(graph: Graph, workers: int) -> float:
    """Return max(critical path, work ÷ workers): no schedule is shorter."""
    ends: list[float] = []
    for job in graph:
        ends.append(job.seconds + max((ends[n] for n in job.needs), default=0.0))
    return max(max(ends), sum(job.seconds for job in graph) / workers)


def first_come(graph: Graph, workers: int) -> float:
    """Return the duration if ready tasks start in the order of the plan."""
    waiting = [len(job.needs) for job in graph]
    ready = [at for at, count in enumerate(waiting) if not count]
    running: list[tuple[float, int]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < workers:
            # The lowest number first, which is the order of the plan.
            at = heapq.heappop(ready)
            heapq.heappush(running, (now + graph[at].seconds, at))
        now, ended = heapq.heappop(running)
        for at, job in enumerate(graph):
            if ended in job.needs:
                waiting[at] -= 1
                if not waiting[at]:
                    heapq.heappush(ready, at)
    return now


def barriers(graph: Graph, workers: int) -> float:
    """Return the duration level by level: a level starts when the one before has ended."""
    levels: list[int] = []
    for job in graph:
        levels.append(1 + max((levels[n] for n in job.needs), default=-1))
    total = 0.0
    for level in range(max(levels) + 1):
        free = [0.0] * workers
        for at, job in enumerate(graph):
            if levels[at] == level:
                # The next task of a level goes to the worker that is free first.
                heapq.heapreplace(free, free[0] + job.seconds)
        total += max(free)
    return total
