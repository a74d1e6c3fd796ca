"""Figures of trials in a readable form."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import cast

Line = Mapping[str, object]


def print_figures(lines: Sequence[Line]) -> None:
    """Print the figures of each kind of trial, store by store."""

    def key(line: Line) -> tuple[str, str]:
        return str(line["what"]), str(line["store"])

    for (what, store), group in groupby(sorted(lines, key=key), key):
        print(f"\n{what} on {store}")
        for name, value in figures(list(group)):
            print(f"  {name:<34} {value}")


def figures(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """Return (name, value) of the figures of trials of one kind."""
    kills = _sum(lines, "kills")
    resumes = [float(str(s)) for line in lines for s in _list(line["resumes"])]
    again = _sum(lines, "asked_again")
    told = [
        ("trials", str(len(lines))),
        ("of them not reached", str(sum(not line["reached"] for line in lines))),
        ("kills", str(kills)),
        ("trials with a problem", str(sum(bool(line["problems"]) for line in lines))),
        ("lost", str(_sum(lines, "lost"))),
        ("doubled", str(_sum(lines, "doubled"))),
        ("model calls made again", f"{again} ({again / max(1, kills):.3f} a kill)"),
        ("effects in a workspace made again", str(_sum(lines, "run_again"))),
    ]
    if resumes:
        told.append(("mean time to resume", f"{sum(resumes) / len(resumes):.2f} s"))
    measured = sorted({name for line in lines for name in _dict(line["more"])})
    for name in measured:
        values = [
            float(str(_dict(line["more"])[name])) for line in lines if name in _dict(line["more"])
        ]
        told.append((name, f"mean {sum(values) / len(values):.2f}, most {max(values):.2f}"))
    return told


def _sum(lines: Sequence[Line], name: str) -> int:
    return sum(int(str(line[name])) for line in lines)


def _list(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def _dict(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}
