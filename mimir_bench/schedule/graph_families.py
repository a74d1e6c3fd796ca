"""Families of task graphs, generated from seeds.

The duration of a task is the response time of the worker's model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mimir_bench.seeded_random import SeededRandom


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedTask:
    """A task with its duration."""

    seconds: float
    needs: tuple[int, ...] = ()
    """Numbers of earlier tasks."""


Graph = Sequence[TimedTask]
"""In the order of the plan: each task follows its dependencies."""

LONGEST = 60.0
"""Maximum in seconds, below the time limit of a task."""


def layered_graph(draw: SeededRandom) -> Graph:
    """Return five layers of eight tasks; each depends on two of the layer before."""
    jobs: list[TimedTask] = []
    for layer in range(5):
        before = range(layer * 8 - 8, layer * 8) if layer else range(0)
        jobs += [
            TimedTask(
                seconds=_even(draw), needs=tuple(sorted(draw.some_of(before, 2 if layer else 0)))
            )
            for _ in range(8)
        ]
    return jobs


def fan(draw: SeededRandom) -> Graph:
    """Return one task, thirty that depend on it, and one that depends on these."""
    middle = [TimedTask(seconds=_even(draw), needs=(0,)) for _ in range(30)]
    last = TimedTask(seconds=_even(draw), needs=tuple(range(1, 31)))
    return [TimedTask(seconds=_even(draw)), *middle, last]


def chain(draw: SeededRandom) -> Graph:
    """Return a chain of twelve tasks."""
    return [TimedTask(seconds=_even(draw), needs=(n - 1,) if n else ()) for n in range(12)]


def diamond(draw: SeededRandom) -> Graph:
    """Return six diamonds in sequence: one task, four parallel ones, and one after these."""
    jobs: list[TimedTask] = []
    for _ in range(6):
        top = len(jobs)
        jobs.append(TimedTask(seconds=_even(draw), needs=(top - 1,) if top else ()))
        jobs += [TimedTask(seconds=_even(draw), needs=(top,)) for _ in range(4)]
        jobs.append(TimedTask(seconds=_even(draw), needs=tuple(range(top + 1, top + 5))))
    return jobs


def heavy(draw: SeededRandom) -> Graph:
    """Return sixty tasks with durations of a heavy tail: Pareto, exponent 1.5, from 2 s.

    Each depends on up to two of the twenty tasks before it.
    """
    jobs: list[TimedTask] = []
    for n in range(60):
        # One dependency on average; the first tasks cannot have as many.
        few = min(n, draw.one_of((0, 1, 1, 2)))
        needs = draw.some_of(range(max(0, n - 20), n), few)
        # Inverse of Pareto's distribution function; the draw starts at 1, so that it is finite.
        tail = 2.0 * (draw.whole(1, 10_000) / 10_000) ** (-1 / 1.5)
        # Rounded, because the last digits of a power differ between machines.
        jobs.append(TimedTask(seconds=round(min(tail, LONGEST), 1), needs=tuple(sorted(needs))))
    return jobs


def late_chain_graph(draw: SeededRandom) -> Graph:
    """Return eighty independent tasks, and a chain of twenty at the end of the plan."""
    # This graph has no random part; the parameter belongs to the table of families.
    del draw
    free = [TimedTask(seconds=1.0) for _ in range(80)]
    return [
        *free,
        *(TimedTask(seconds=1.0, needs=(n - 1,) if n > 80 else ()) for n in range(80, 100)),
    ]


HEAVY, BEHIND = "heavy-tailed random", "80 free, then a chain of 20"
FAMILIES: Mapping[str, Callable[[SeededRandom], Graph]] = {
    "layered": layered_graph,
    "fan": fan,
    "chain": chain,
    "diamond": diamond,
    HEAVY: heavy,
    BEHIND: late_chain_graph,
}


def make(family: str, seed: int) -> Graph:
    """Return the graph of a family and seed."""
    return FAMILIES[family](SeededRandom("schedule", family, seed))


def _even(draw: SeededRandom) -> float:
    return draw.whole(20, 180) / 10
