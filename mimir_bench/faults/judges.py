"""Scripted judges: none reads the work, so that only the engine is measured."""

from collections.abc import Mapping
from typing import Literal

from mimir_bench.seeded_random import SeededRandom

Judge = Literal["always", "random", "half"]
JUDGES: Mapping[Judge, str] = {
    "always": "a QC that always answers PASS 100 with quotes that stand in its sources",
    "random": "a QC that answers PASS or FAIL at random, whatever it is shown",
    "half": "a QC that finds every second fault, and never blames right work",
}
_PASS: Mapping[str, object] = {"verdict": {"auto": "pass", "score": 100}, "repeat": "forever"}
_FAIL: Mapping[str, object] = {"verdict": {"auto": "fail"}, "repeat": "forever"}


def turn(judge: Judge, draw: SeededRandom, *, is_clean: bool) -> Mapping[str, object]:
    """Return the judge's answer to one deliverable."""
    match judge:
        case "always":
            return _PASS
        case "random":
            return _PASS if draw.chance(50) else _FAIL
        case "half":
            return _PASS if is_clean or draw.chance(50) else _FAIL
