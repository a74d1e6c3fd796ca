"""Changed text of a test file, and edits that make one. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Step = Literal["expectations", "strict", "statements", "replaced", "end"]
"""Expected values, first statements (strict: beside an equality), whole files, ends."""

ChangedTests = Mapping[str, Mapping[str, bool]]
"""Changed file → name of each of its tests → whether it always reaches an equality."""

MARK = "control"
SUFFIX = "zq7"
"""Appended to expected texts."""
OFFSET = 7919
"""Added to expected numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One replacement in a text."""

    start: int
    end: int
    """`start`: nothing is removed."""
    text: str


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with all edits; of two that overlap the first one counts."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        if edit.start < at:
            continue
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join((*parts, text[at:]))


def changed_integer(number: int) -> int:
    """Return a neighbour of a number, which fits wherever the number does."""
    return number + 1 if number < 127 else number - 1
