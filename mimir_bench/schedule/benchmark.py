"""Benchmark "schedule": task graphs, their measured schedules and the lower bound."""

import asyncio
import json
import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

from mimir_bench.figures import Figures, Goal
from mimir_bench.result import BenchResult
from mimir_bench.schedule.bounds import barriers, first_come, lower_bound
from mimir_bench.schedule.graph_families import BEHIND, FAMILIES, HEAVY, make
from mimir_bench.schedule.schedule_run import ScheduleCase
from mimir_bench.size import Size
from mimir_bench.subprocesses import ask

NAME = "schedule"
TITLE = "how long a run takes over how long it must take: max(critical path, work / workers)"
MIDDLE, LATE = "median", "p95"
ENGINE = "mimir"


def _goal(figure: str, family: str, most: float) -> Goal:
    return Goal(figure=f"{family}, {figure}", most=most, of=ENGINE)


GOALS = (
    # Goals for the two families in which the order of the tasks matters most.
    _goal(MIDDLE, BEHIND, 1.07),
    _goal(LATE, BEHIND, 1.07),
    _goal(MIDDLE, HEAVY, 1.02),
    _goal(LATE, HEAVY, 1.10),
)
WORKERS = (3, 10)
SEEDS: Mapping[Size, Mapping[str, int]] = {
    "smoke": {"diamond": 1, BEHIND: 1},
    "usual": dict.fromkeys(FAMILIES, 1) | {HEAVY: 10},
    "large": dict.fromkeys(FAMILIES, 20) | {HEAVY: 100, BEHIND: 1, "chain": 5},
}
"""Number of seeds of each family, from 1."""


async def run(
    size: Size, *, say: Callable[[str], None], keep: Callable[[BenchResult], None]
) -> BenchResult:
    """Run the graphs.

    Raises:
        UnavailableError: The machine has no sandbox, or a run did not complete.
    """
    seeds = SEEDS[size]
    text = ", ".join(f"{family} 1-{last}" for family, last in seeds.items())
    figures = Figures(name=NAME, seeds=text, tolerance=0.02, goals=GOALS)
    # It starts first and waits most of its time, so that it adds none to the whole.
    real = asyncio.ensure_future(_real(say)) if size != "smoke" else None
    for family, last in seeds.items():
        say(f"{NAME}: {family}, seeds 1-{last}")
        cases = [
            ScheduleCase(family=family, seed=seed, workers=workers)
            for seed in range(1, last + 1)
            for workers in WORKERS
        ]
        took = dict(zip(cases, await _seconds(cases), strict=True))
        for workers in WORKERS:
            mine = {case: took[case] for case in cases if case.workers == workers}
            _report(figures, family, list(mine), list(mine.values()))
        keep(figures.result())
    if real:
        name = f"{BEHIND}, 10 workers, a second a task, the engine's own work and the other runs' included"
        figures.note(name, await real)
    return figures.result()


async def _real(say: Callable[[str], None]) -> float:
    """Run a graph in real time, next to the other runs: it mostly waits."""
    say(f"{NAME}: {BEHIND}, on the machine's own clock")
    case = ScheduleCase(family=BEHIND, seed=1, workers=10)
    return (await _seconds([case], real=True))[0] / _lower_bound(case)


async def _seconds(cases: Sequence[ScheduleCase], *, real: bool = False) -> list[float]:
    """Return the duration of each run; one process for each core runs them."""
    parts = min(len(os.sched_getaffinity(0)), len(cases))
    # Every n-th case: neighbours cost alike, so that the processes end together.
    shares = [cases[n::parts] for n in range(parts)]
    orders = [json.dumps({"cases": [asdict(c) for c in share], "real": real}) for share in shares]
    answers = await asyncio.gather(
        *(ask("mimir_bench.schedule.schedule_run", order) for order in orders)
    )
    took: list[float] = [0.0] * len(cases)
    for n, text in enumerate(answers):
        took[n::parts] = json.loads(text)
    return took


def _lower_bound(case: ScheduleCase) -> float:
    return lower_bound(make(case.family, case.seed), case.workers)


def _report(
    figures: Figures, family: str, cases: Sequence[ScheduleCase], took: Sequence[float]
) -> None:
    ours = [seconds / _lower_bound(case) for case, seconds in zip(cases, took, strict=True)]
    workers = f"{cases[0].workers} workers"
    figures.ratio(f"{family}, {MIDDLE}", statistics.median(ours), of=f"{ENGINE}, {workers}")
    # A percentile of one run would only repeat the median.
    if len(ours) > 1:
        figures.ratio(f"{family}, {LATE}", _late(ours), of=f"{ENGINE}, {workers}")
    # Simple schedules are computed, not run: they show how hard the graph is.
    for name, schedule in (("first come", first_come), ("level by level", barriers)):
        theirs = [schedule(make(c.family, c.seed), c.workers) / _lower_bound(c) for c in cases]
        figures.ratio(f"{family}, {MIDDLE}", statistics.median(theirs), of=f"{name}, {workers}")


def _late(values: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]
