"""Printed tables of planted faults."""

from collections.abc import Iterator, Mapping, Sequence

from mimir.domain.json_value import as_number
from mimir_bench.faults.judges import JUDGES
from mimir_bench.faults.outcome_counts import ALL, CHECKED, JUDGED
from mimir_bench.result import BenchResult, FigureRow
from mimir_bench.text_table import grid, share

_NAMED = {
    "missed": "not detected",
    "not shown": "completed, because every check of the plan passes on this work",
    "refused": "right work refused",
}
LOW = 0.6
"""Operators below this share are marked, and their missed faults listed."""


def lines(result: BenchResult) -> Iterator[str]:
    """Print a result."""
    yield "faults: wrong work that the engine did not call completed"
    yield "wrong: by hidden tests that the engine never sees; detected: wrong, and the run is not completed; interval: Wilson, 95 %"
    for judge, words in JUDGES.items():
        for kind in (CHECKED, JUDGED):
            rows = [r for r in result.rows if (r["judge"], r["families"]) == (judge, kind)]
            if rows:
                yield ""
                yield f"Families {kind}, judged by {words}:"
                yield from _tables(rows)
    yield ""
    yield f"seeds {result.seeds}   hash {result.hash[:16]}"


def _tables(rows: Sequence[FigureRow]) -> Iterator[str]:
    operators = [r for r in rows if r["table"] == "operators"]
    yield from _detections("operator", operators)
    if beyond := [r for r in rows if r["table"] == "beyond"]:
        yield ""
        yield "Work on which every check of the plan passes, by the same commands without the engine:"
        yield from _detections("operator", beyond)
    for row in rows:
        if row["table"] == "clean":
            yield _clean(row)
    families = [r for r in rows if r["table"] == "families"]
    if len(families) > 1:
        yield from _detections("family", families)
    for row in rows:
        if row["table"] in _NAMED:
            yield from _named_lines(row)


def _detections(first: str, rows: Sequence[FigureRow]) -> Iterator[str]:
    # Only mechanisms that stopped something get a column.
    catchers = list(dict.fromkeys(name for row in rows for name in _counts(row, "caught")))
    cells = [
        [
            row[first],
            row["wrong"],
            row["detected"],
            share(_number(row, "detected"), _number(row, "wrong")),
            _interval(row),
            *(_counts(row, "caught").get(name, "") for name in catchers),
            "below 60 %" if _is_low(row) else "",
        ]
        for row in rows
    ]
    yield ""
    yield from grid([first, "wrong", "detected", "share", "interval", *catchers, ""], cells)


def _clean(row: FigureRow) -> str:
    right, alarms = _number(row, "right"), _number(row, "false_alarms")
    return (
        f"right work refused: {alarms} of {right} ({share(alarms, right)}, interval {_interval(row)}"
        f"{_because(_counts(row, 'caught'))})"
    )


def _because(counts: Mapping[str, int]) -> str:
    return f"; by {', '.join(counts)}" if counts else ""


def _named_lines(row: FigureRow) -> Iterator[str]:
    missed = _counts(row, "missed")
    if missed:
        yield ""
        yield f"{_NAMED[str(row['table'])]} (operator / family / variant):"
        yield from (f"  {count:>4}  {name}" for name, count in missed.items())


def _is_low(row: FigureRow) -> bool:
    wrong = _number(row, "wrong")
    # The sum of all operators is no operator that could be marked.
    is_all = row.get("operator") == ALL
    return bool(wrong) and not is_all and _number(row, "detected") < LOW * wrong


def _interval(row: FigureRow) -> str:
    return f"{100 * _number(row, 'low'):.0f}-{100 * _number(row, 'high'):.0f} %"


def _number(row: FigureRow, name: str) -> float:
    return as_number(row[name]) or 0


def _counts(row: FigureRow, name: str) -> Mapping[str, int]:
    value = row[name]
    return value if isinstance(value, Mapping) else {}
