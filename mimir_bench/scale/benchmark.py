"""Benchmark "scale": claims of ten workers in one and in five processes, for each store."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict

from mimir_bench.figures import Figures, Goal
from mimir_bench.result import BenchResult
from mimir_bench.scale.scale_run import ScaleOrder, ScaleResult
from mimir_bench.size import Size
from mimir_bench.subprocesses import ask

NAME = "scale"
TITLE = "claims of ten workers on free tasks, whose models answer within 0.6 s"
CONFLICTS = "claims that found nothing, in percent"
MIDDLE, LATE = "claim p50, ms", "claim p99, ms"
IDLE = "worker idle time, in percent"
GOALS = (
    Goal(figure=CONFLICTS, most=1.0),
    Goal(figure=LATE, most=50.0),
    Goal(figure=IDLE, most=5.0),
)
EMBEDDED, SERVER = "SQLite", "Neo4j"
_TOLERANCE = 1.0
"""Share of the figure or its goal: of a hundred claims, one failure is a percent."""


async def run(
    size: Size, *, store: str, say: Callable[[str], None], keep: Callable[[BenchResult], None]
) -> BenchResult:
    """Run the benchmark; an empty `store` means that no Neo4j server is measured.

    Raises:
        UnavailableError: No sandbox, no server, or a run did not complete.
    """
    figures = Figures(
        name=NAME, seeds="none: all tasks are alike", tolerance=_TOLERANCE, goals=GOALS
    )
    tasks, several = (20, 2) if size == "smoke" else (100, 5)
    for name, uri in ((EMBEDDED, ""), (SERVER, store)):
        if name == SERVER and not uri:
            figures.note(SERVER, "not measured: no server named (--store neo4j://HOST:7687)")
            continue
        for processes in (1, several):
            said = f"{name}, {processes} process{'es' if processes > 1 else ''}"
            say(f"{NAME}: {said}, {tasks} tasks")
            # Ten workers in every case: only their distribution over processes differs.
            order = ScaleOrder(tasks=tasks, processes=processes, workers=10 // processes, store=uri)
            told = json.loads(await ask("mimir_bench.scale.scale_run", json.dumps(asdict(order))))
            _report(figures, said, ScaleResult(**told))
            keep(figures.result())
    return figures.result()


def _report(figures: Figures, of: str, seen: ScaleResult) -> None:
    figures.count("tasks completed", seen.completed, of=of)
    figures.count("tasks claimed", seen.granted, of=of)
    figures.ratio(CONFLICTS, 100 * (seen.tries - seen.granted) / seen.tries, of=of)
    figures.ratio(MIDDLE, _share(seen.claims_milliseconds, 0.5), of=of)
    figures.ratio(LATE, _share(seen.claims_milliseconds, 0.99), of=of)
    figures.ratio(IDLE, 100 * seen.idle, of=of)
    figures.note(f"{of}: QC, tasks a second", seen.completed / seen.seconds)
    figures.note(f"{of}: claims timed", len(seen.claims_milliseconds))


def _share(values: Sequence[float], share: float) -> float:
    """Return the quantile of a share."""
    # The nearest rank: a value that was really measured, not one between two.
    return sorted(values)[math.ceil(share * len(values)) - 1]
