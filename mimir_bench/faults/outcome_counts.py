"""Counts of outcomes: detected faults, the mechanisms, and refused right work."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from mimir_bench.faults.fault_outcome import CATCHERS, FaultOutcome
from mimir_bench.faults.judges import JUDGES
from mimir_bench.faults.operators import ALL_OPERATORS, is_honest
from mimir_bench.intervals import wilson
from mimir_bench.result import Cell, FigureRow

ALL = "all"
CHECKED, JUDGED = "with checks", "without checks"


def rows(outcomes: Sequence[FaultOutcome], unchecked: Sequence[str]) -> tuple[FigureRow, ...]:
    """Return the rows of every table.

    Args:
        outcomes: Outcomes of all runs.
        unchecked: Families without checks; they are counted separately.
    """
    found: list[FigureRow] = []
    for judge in JUDGES:
        for kind in (CHECKED, JUDGED):
            heard = [
                o
                for o in outcomes
                if o.judge == judge and (o.family in unchecked) == (kind == JUDGED)
            ]
            found += _tables(heard, judge, kind)
    return tuple(found)


def _tables(outcomes: Sequence[FaultOutcome], judge: str, kind: str) -> Iterator[FigureRow]:
    faults = [o for o in outcomes if not is_honest(o.operator)]
    clean = [o for o in outcomes if is_honest(o.operator)]
    named: dict[str, Cell] = {"judge": judge, "families": kind}
    if faults:
        yield from _detections("operators", [o for o in faults if o.shown], named)
        yield from _detections("beyond", [o for o in faults if not o.shown], named)
        shown = [o for o in faults if o.shown]
        for family in dict.fromkeys(o.family for o in shown):
            mine = [o for o in shown if o.family == family]
            yield {**named, "table": "families", "family": family, **_detection(mine)}
        yield {**named, "table": "missed", "missed": _count_names(shown, _is_missed, _what)}
        if beyond := _count_names(faults, _is_beyond, _what):
            yield {**named, "table": "not shown", "missed": beyond}
    if clean:
        yield {**named, "table": "clean", **_alarms(clean)}
        refused = _count_names(clean, _is_refused, _what)
        if refused:
            yield {**named, "table": "refused", "missed": refused}


def _detections(
    table: str, outcomes: Sequence[FaultOutcome], named: Mapping[str, Cell]
) -> Iterator[FigureRow]:
    for operator in ALL_OPERATORS if outcomes else ():
        if mine := [o for o in outcomes if o.operator == operator]:
            yield {**named, "table": table, "operator": operator, **_detection(mine)}
    if outcomes:
        yield {**named, "table": table, "operator": ALL, **_detection(outcomes)}


def _detection(outcomes: Sequence[FaultOutcome]) -> dict[str, Cell]:
    wrong = [o for o in outcomes if o.wrong]
    # Only wrong work counts: an operator may by chance leave the work right.
    detected = [o for o in wrong if not o.completed]
    low, high = wilson(len(detected), len(wrong))
    return {
        "runs": len(outcomes),
        "wrong": len(wrong),
        "detected": len(detected),
        "low": round(low, 4),
        "high": round(high, 4),
        "caught": _count_catchers(detected),
    }


def _alarms(outcomes: Sequence[FaultOutcome]) -> dict[str, Cell]:
    right = [o for o in outcomes if not o.wrong]
    alarms = [o for o in right if not o.completed]
    low, high = wilson(len(alarms), len(right))
    return {
        "runs": len(outcomes),
        "right": len(right),
        "false_alarms": len(alarms),
        "low": round(low, 4),
        "high": round(high, 4),
        "caught": _count_catchers(alarms),
    }


def _count_catchers(outcomes: Sequence[FaultOutcome]) -> dict[str, int]:
    counts = Counter(o.caught for o in outcomes)
    return {name: counts[name] for name in CATCHERS if counts[name]}


def _count_names(
    outcomes: Sequence[FaultOutcome],
    which: Callable[[FaultOutcome], bool],
    name: Callable[[FaultOutcome], str],
) -> dict[str, int]:
    return dict(sorted(Counter(name(o) for o in outcomes if which(o)).items()))


def _is_missed(outcome: FaultOutcome) -> bool:
    return outcome.wrong and outcome.completed


def _is_beyond(outcome: FaultOutcome) -> bool:
    return outcome.wrong and outcome.completed and not outcome.shown


def _is_refused(outcome: FaultOutcome) -> bool:
    return not outcome.wrong and not outcome.completed


def _what(outcome: FaultOutcome) -> str:
    return f"{outcome.operator} / {outcome.family} / {outcome.version}"
