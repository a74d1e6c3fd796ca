"""Figures with goals: collection and output. Deterministic.

A count is equal in two runs; a ratio differs a little. The inputs of a ratio are notes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mimir.domain.json_value import as_number
from mimir_bench.result import BenchResult, Cell, FigureRow, row_name
from mimir_bench.text_table import grid

COUNT, RATIO = "count", "ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Upper limit of a figure."""

    figure: str
    most: float
    of: str = ""
    """Start of the figure's subject; empty: every subject."""


@dataclass(slots=True, kw_only=True)
class Figures:
    """Collector of the figures of one benchmark."""

    name: str
    seeds: str
    tolerance: float
    """Share by which a ratio may differ between two runs."""
    goals: Sequence[Goal] = ()
    rows: list[FigureRow] = field(default_factory=list[FigureRow])
    aside: dict[str, Cell] = field(default_factory=dict[str, Cell])

    def count(self, figure: str, value: int, *, of: str = "") -> None:
        """Add a figure that is equal in every run."""
        self.rows.append({"figure": figure, "of": of, COUNT: value})

    def ratio(self, figure: str, value: float, *, of: str = "") -> None:
        """Add a figure that depends on the machine."""
        # Three digits: more would only show the noise of the machine.
        self.rows.append({"figure": figure, "of": of, RATIO: round(value, 3)})

    def note(self, name: str, value: float | str) -> None:
        """Add an input of a ratio; notes are not compared."""
        self.aside[name] = round(value, 3) if isinstance(value, float) else value

    def result(self) -> BenchResult:
        """Return the result so far."""
        return BenchResult(
            name=self.name,
            seeds=self.seeds,
            rows=tuple(self.rows),
            tolerances={RATIO: self.tolerance},
            limits=dict(self._limits()),
            aside=dict(self.aside),
        )

    def _limits(self) -> Iterator[tuple[str, float]]:
        for row in self.rows:
            for goal in self.goals:
                # A goal may hold for the engine only, not for the schedules it is compared with.
                if goal.figure == row["figure"] and str(row["of"]).startswith(goal.of):
                    yield row_name(row), goal.most


def lines(result: BenchResult, title: str) -> Iterator[str]:
    """Print figures with their goals, and the notes."""
    yield f"{result.name}: {title}"
    yield ""
    rows = [_cells(row, result.limits.get(row_name(row))) for row in result.rows]
    yield from grid(("figure", "of", "value", "goal", ""), rows)
    yield ""
    for name, value in result.aside.items():
        yield f"  {name}: {value}"
    yield f"seeds {result.seeds}   hash {result.hash[:16]}"


def _cells(row: FigureRow, most: float | None) -> Sequence[object]:
    value = as_number(row.get(COUNT, row.get(RATIO))) or 0.0
    shown = f"{value}" if COUNT in row else f"{value:.2f}" if value < 100 else f"{value:.0f}"
    goal = ("", "") if most is None else (f"<= {most:g}", "met" if value <= most else "missed")
    return row["figure"], row["of"], shown, *goal
