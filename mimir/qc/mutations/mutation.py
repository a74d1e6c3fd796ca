"""Changed text of a test file, and edits that make one. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Step = Literal["expectations", "strict", "statements", "replaced", "end", "detached"]
"""Expected values, first statements (strict: next to an equality), ends, exit codes."""

Place = tuple[int, int]
"""Start and end in a text."""
ChangedTests = Mapping[str, Mapping[str, bool]]
"""Changed file → name of each of its tests → whether it always reaches an equality."""

MARK = "control"
SUFFIX = "zq7"
"""Appended to expected texts."""
OFFSET = 7919
"""Added to expected numbers."""


_INTEGER = re.compile(r"(\d{1,15})((?:[iu](?:8|16|32|64|128|size))?[lLn]?)")
_FLOAT = re.compile(r"(\d+)(\.\d+)(?:[eE][-+]?\d+)?([a-zA-Z_]\w*)?")
STRING = re.compile(r"([\"'`]).*\1", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in a text."""

    place: Place
    """Both ends may be equal: nothing is removed."""
    text: str


def insert(at: int, text: str) -> Edit:
    """Return the edit that inserts a text."""
    return Edit((at, at), text)


def apply_edits(text: str, edits: Iterable[Edit], start: int = 0) -> str:
    """Return a text from `start` on with all edits; of two that overlap the first one counts."""
    parts: list[str] = []
    at = start
    for edit in sorted(edits, key=lambda one: one.place):
        if edit.place[0] >= at:
            parts += [text[at : edit.place[0]], edit.text]
            at = edit.place[1]
    return "".join((*parts, text[at:]))


def apply_inside(text: str, place: Place, edits: Iterable[Edit]) -> str:
    """Return a part of a text with the edits inside it."""
    start, end = place
    inner = (one for one in edits if start <= one.place[0] and one.place[1] <= end)
    return apply_edits(text[:end], inner, start)


def changed_integer(number: int) -> int:
    """Return a neighbour of a number, which fits in each place of the number."""
    return number + 1 if number < 127 else number - 1


def other_literal(text: str, mask: str, *, has_characters: bool = True) -> str:
    """Return another literal of the same type; empty: the text is no literal.

    `has_characters`: in the language, single quotes hold one character.
    """
    if text in ("true", "false"):
        return "false" if text == "true" else "true"
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    if number := _INTEGER.fullmatch(digits):
        return f"{sign}{changed_integer(int(number[1]))}{number[2]}"
    if number := _FLOAT.fullmatch(digits):
        # Another exponent may leave the range of the type, and a neighbour may round to the same value.
        other = int(number[1]) + 1 if int(number[1]) < 100 else 1
        return f"{sign}{other}{number[2]}{number[3] or ''}"
    if STRING.fullmatch(text) and not mask[1:-1].strip() and "${" not in text:
        if text[0] == "'" and has_characters:
            return "'b'" if text == "'a'" else "'a'"
        quotes = text[:3] if text.startswith('"""') else text[:1]
        return f"{text.removesuffix(quotes)}{SUFFIX}{quotes}"
    return ""
