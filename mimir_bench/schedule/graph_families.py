"""The task graphs that are scheduled, each from its seed. Pure; a duration is what the worker's model takes to answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mimir_bench.seeded_random import Draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One task."""

    seconds: float
    needs: tuple[int, ...] = ()
    """Numbers of earlier jobs."""


Graph = Sequence[Job]
"""In the order of the plan: every job behind those that it needs."""

LONGEST = 60.0
"""Seconds; heavier tails are cut here, below the time limit of a task."""


def layered(draw: Draw) -> Graph:
    """Five layers of eight; each needs two of the layer before."""
    jobs: list[Job] = []
    for layer in range(5):
        before = range(layer * 8 - 8, layer * 8) if layer else range(0)
        jobs += [
            Job(seconds=_even(draw), needs=tuple(sorted(draw.some_of(before, 2 if layer else 0))))
            for _ in range(8)
        ]
    return jobs


def fan(draw: Draw) -> Graph:
    """One, thirty that need it, one that needs them all."""
    middle = [Job(seconds=_even(draw), needs=(0,)) for _ in range(30)]
    last = Job(seconds=_even(draw), needs=tuple(range(1, 31)))
    return [Job(seconds=_even(draw)), *middle, last]


def chain(draw: Draw) -> Graph:
    """Twelve, each after the other."""
    return [Job(seconds=_even(draw), needs=(n - 1,) if n else ()) for n in range(12)]


def diamond(draw: Draw) -> Graph:
    """Six times: one, four that need it, one that needs these."""
    jobs: list[Job] = []
    for _ in range(6):
        top = len(jobs)
        jobs.append(Job(seconds=_even(draw), needs=(top - 1,) if top else ()))
        jobs += [Job(seconds=_even(draw), needs=(top,)) for _ in range(4)]
        jobs.append(Job(seconds=_even(draw), needs=tuple(range(top + 1, top + 5))))
    return jobs


def heavy(draw: Draw) -> Graph:
    """Sixty with durations of a heavy tail (Pareto, exponent 1.5, from 2 s); each needs up to two of the twenty before it."""
    jobs: list[Job] = []
    for n in range(60):
        few = min(n, draw.one_of((0, 1, 1, 2)))
        needs = draw.some_of(range(max(0, n - 20), n), few)
        tail = 2.0 * (draw.whole(1, 10_000) / 10_000) ** (-1 / 1.5)
        jobs.append(Job(seconds=round(min(tail, LONGEST), 1), needs=tuple(sorted(needs))))
    return jobs


def behind(draw: Draw) -> Graph:
    """Eighty that are free, and a chain of twenty that the plan lists last; all equally long."""
    del draw
    free = [Job(seconds=1.0) for _ in range(80)]
    return [*free, *(Job(seconds=1.0, needs=(n - 1,) if n > 80 else ()) for n in range(80, 100))]


HEAVY, BEHIND = "heavy-tailed random", "80 free, then a chain of 20"
FAMILIES: Mapping[str, Callable[[Draw], Graph]] = {
    "layered": layered,
    "fan": fan,
    "chain": chain,
    "diamond": diamond,
    HEAVY: heavy,
    BEHIND: behind,
}


def make(family: str, seed: int) -> Graph:
    """Return a graph of a family."""
    return FAMILIES[family](Draw("schedule", family, seed))


def _even(draw: Draw) -> float:
    return draw.whole(20, 180) / 10
