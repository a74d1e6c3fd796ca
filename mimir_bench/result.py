"""Results of benchmarks: rows of figures with a hash, and their differences.

The texts of a row name it; its numbers are its figures. Figures with a tolerance and notes depend
on the machine or the time, and are not hashed.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from mimir.domain.json_value import as_array, as_objects, is_array, is_object
from mimir.errors import UsageError

SCHEMA = 1
Cell = str | int | float | Mapping[str, int]
FigureRow = Mapping[str, Cell]
Older = Mapping[str, Sequence[FigureRow]]
"""Benchmark → rows of an older document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    """Figures of one benchmark."""

    name: str
    seeds: str
    """As printed, such as "1-20"."""
    rows: tuple[FigureRow, ...]
    tolerances: Mapping[str, float] = field(default_factory=dict[str, float])
    """Figure → allowed difference: a share of the old value, its limit or 1; absent: 0."""
    limits: Mapping[str, float] = field(default_factory=dict[str, float])
    """Name of a row → upper limit of its figure."""
    aside: Mapping[str, Cell] = field(default_factory=dict[str, Cell])
    """Notes on this run: not compared and not hashed."""

    @property
    def hash(self) -> str:
        """SHA-256 over name, seeds and rows, without figures that have a tolerance."""
        exact = [{k: v for k, v in row.items() if k not in self.tolerances} for row in self.rows]
        content = {"name": self.name, "seeds": self.seeds, "rows": exact}
        # NaN has no JSON form and is unequal to itself; it would make equal results differ.
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def as_json(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "name": self.name,
            "seeds": self.seeds,
            "hash": self.hash,
            "rows": list(self.rows),
            "tolerances": dict(self.tolerances),
            "limits": dict(self.limits),
            "aside": dict(self.aside),
        }


def document(results: Sequence[BenchResult]) -> dict[str, object]:
    """Return the output of `mimir bench --json`."""
    return {"schema": SCHEMA, "benchmarks": [result.as_json() for result in results]}


def older(text: str) -> Older:
    """Parse an older document.

    Raises:
        UsageError: The text is not the output of `mimir bench --json`.
    """
    try:
        # json.loads accepts NaN and Infinity otherwise.
        value = json.loads(text, parse_constant=_no_number)
        if value["schema"] != SCHEMA:
            raise ValueError(f"schema {value['schema']!r}")
        listed = as_objects(value["benchmarks"])
        # `as_objects` drops other values, which would look like benchmarks that are missing.
        if len(listed) != len(value["benchmarks"]):
            raise ValueError("its benchmarks are not objects")
        return {str(one["name"]): _rows(one["rows"]) for one in listed}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else error
        raise UsageError(
            f"The older file cannot be compared with: {why}.",
            next_step="Write one with: mimir bench --json > OLD.json",
        ) from error


def _rows(value: object) -> Sequence[FigureRow]:
    rows = [row for row in as_array(value) if _is_row(row)]
    if not is_array(value) or len(rows) < len(value):
        raise ValueError("its rows are not those of a benchmark")
    return rows


def _is_row(value: object) -> TypeGuard[FigureRow]:
    return is_object(value) and all(map(_is_cell, value.values()))


def _is_cell(value: object) -> bool:
    if is_object(value):
        return all(type(number) is int for number in value.values())
    # An infinite number would be within the tolerance of any other.
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is no figure")


def differences(old: Older, results: Sequence[BenchResult]) -> list[str]:
    """Return the differences from an older document that exceed the tolerances."""
    found: list[str] = []
    for result in results:
        before = old.get(result.name)
        if before is None:
            found.append(f"{result.name}: it is not in the older file")
        else:
            found += _compare(result, before)
    return found


def _compare(result: BenchResult, before: Sequence[FigureRow]) -> Iterator[str]:
    old = {row_name(row): row for row in before}
    new = {row_name(row): row for row in result.rows}
    # In the order of the older file; new rows follow.
    for name in [*old, *(n for n in new if n not in old)]:
        if name not in new or name not in old:
            where = "only in the older file" if name in old else "not in the older file"
            yield f"{result.name}: {name}: {where}"
            continue
        # A share of a value near zero would allow no difference at all.
        scale = max(result.limits.get(name, 0.0), 1.0)
        yield from (
            f"{result.name}: {name}: {figure}: {old[name].get(figure)} before, {value} now"
            for figure, value in new[name].items()
            if not _is_within(
                old[name].get(figure), value, result.tolerances.get(figure, 0.0), scale
            )
        )


def row_name(row: FigureRow) -> str:
    """Return the name of a row: its texts."""
    return ", ".join(value for value in row.values() if isinstance(value, str))


def _is_within(old: Cell | None, new: Cell, tolerance: float, scale: float) -> bool:
    # Older files may have another type: a text is never near a number.
    if isinstance(old, int | float) and isinstance(new, int | float):
        return abs(new - old) <= tolerance * max(abs(old), scale)
    return old == new
