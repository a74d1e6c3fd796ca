"""Benchmark "multi": context of one agent and of many, in three project sizes.

It tests the hypothesis of 95 % less context.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

from mimir_bench.multi.multi_case import MultiCase
from mimir_bench.multi.multi_run import TokenCounts
from mimir_bench.result import BenchResult, FigureRow
from mimir_bench.size import Size
from mimir_bench.subprocesses import ask
from mimir_bench.text_table import grid

NAME = "multi"
SMALL, MEDIUM, LARGE = (
    MultiCase(tasks=5, files=10, workers=3),
    MultiCase(tasks=20, files=50, workers=10),
    MultiCase(tasks=100, files=200, workers=10),
)
CASES: Mapping[Size, tuple[MultiCase, ...]] = {
    "smoke": (SMALL,),
    "usual": (SMALL, MEDIUM, LARGE),
    "large": (SMALL, MEDIUM, LARGE),
}
ALONE, MANY, LESS = "one agent", "PM, workers, QC", "less, in percent"
# Scripted models are always right: an accuracy would measure the script.
SCRIPTED = "n/a (scripted)"


async def run(
    size: Size, *, say: Callable[[str], None], keep: Callable[[BenchResult], None]
) -> BenchResult:
    """Run every case with one agent and with many, all at once.

    Raises:
        UnavailableError: The machine has no sandbox, or a run did not complete.
    """
    cases, done = CASES[size], dict[MultiCase, list[FigureRow]]()

    def result() -> BenchResult:
        return _result([row for case in cases for row in done.get(case, ())])

    async def both(case: MultiCase) -> None:
        say(f"{NAME}: {case}")
        told = json.loads(await ask("mimir_bench.multi.multi_run", json.dumps(asdict(case))))
        one, many = (TokenCounts(**side) for side in told)
        done[case] = [_row(case, ALONE, one), _row(case, MANY, many), _less(case, one, many)]
        keep(result())

    # Virtual time does not depend on load, so that all cases may run at once.
    await asyncio.gather(*map(both, cases))
    return result()


def _result(rows: Sequence[FigureRow]) -> BenchResult:
    # The order of two tasks that wait equally long may differ, and with it later contexts.
    tolerances = {"tokens": 0.01, "largest": 0.01, "seconds": 0.02, "deduplication": 0.01}
    # Its prompt names the programs of the machine, with their versions.
    tolerances["planner_largest"] = 0.01
    less = {"less_tokens": 0.05, "less_largest": 0.05}
    return BenchResult(
        name=NAME, seeds="of each task, its number", rows=tuple(rows), tolerances=tolerances | less
    )


def _row(case: MultiCase, subject: str, counted: TokenCounts) -> FigureRow:
    rate = counted.deduplication
    shared: FigureRow = {} if rate is None else {"deduplication": round(rate, 3)}
    return {
        "case": str(case),
        "who": subject,
        "accuracy": SCRIPTED,
        "calls": counted.calls,
        "conversations": counted.agents,
        "tokens": counted.tokens,
        "largest": counted.largest,
        "planner_largest": counted.planner_largest,
        "seconds": counted.seconds,
        **shared,
    }


def _less(case: MultiCase, one: TokenCounts, many: TokenCounts) -> FigureRow:
    return {
        "case": str(case),
        "who": LESS,
        "less_tokens": _percent(many.tokens, one.tokens),
        "less_largest": _percent(many.largest, one.largest),
    }


def _percent(part: int, whole: int) -> float:
    # Negative if many agents use more; the hypothesis may fail.
    return round(100 * (1 - part / whole), 1)


def lines(result: BenchResult) -> Iterator[str]:
    """Print both sides of each case, and the difference."""
    yield "multi: context of one agent that does everything, and of many that each do one thing"
    yield "tokens: of all that models were sent, by the engine's estimate; seconds: if each answer takes 2 s and nothing else any time"
    yield ""
    rows = [_cells(row) for row in result.rows]
    columns = (
        "case",
        "who",
        "calls",
        "tokens",
        "largest call",
        "of the PM",
        "seconds",
        "duplicates",
        "accuracy",
    )
    yield from grid(columns, rows)
    yield ""
    yield 'hypothesis: "95 % less context"; measured: ' + ", ".join(
        f"{row['less_tokens']} % in all and {row['less_largest']} % in the largest call ({row['case']})"
        for row in result.rows
        if row["who"] == LESS
    )
    yield f"seeds {result.seeds}   hash {result.hash[:16]}"


def _cells(row: FigureRow) -> list[object]:
    if row["who"] == LESS:
        return [row["case"], LESS, "", row["less_tokens"], row["less_largest"], "", "", "", ""]
    rate = row.get("deduplication")
    return [
        row["case"],
        row["who"],
        row["calls"],
        row["tokens"],
        row["largest"],
        row["planner_largest"] or "",
        row["seconds"],
        f"{100 * rate:.0f} %" if isinstance(rate, float) else "-",
        row["accuracy"],
    ]
