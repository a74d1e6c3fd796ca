"""Changed text of a test file, and edits that make one. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from mimir.domain.value_class import value_class

Step = Literal["expectations", "strict", "statements", "replaced", "end"]
"""Expected values, first statements (strict: beside an equality), whole files, ends."""

ChangedTests = Mapping[str, Mapping[str, bool]]
"""Changed file → name of each of its tests → whether it always reaches an equality."""

MARK = "control"
SUFFIX = "zq7"
"""Appended to expected texts."""
OFFSET = 7919
"""Added to expected numbers."""


_INTEGER = re.compile(r"(\d{1,15})((?:[iu](?:8|16|32|64|128|size))?[lLn]?)")
_FLOAT = re.compile(r"(\d+)(\.\d+\w*)")
STRING = re.compile(r"([\"'`]).*\1", re.DOTALL)


@value_class
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
        return f"{sign}{changed_integer(int(number[1]))}{number[2]}"
    if STRING.fullmatch(text) and not mask[1:-1].strip() and "${" not in text:
        if text[0] == "'" and has_characters:
            return "'b'" if text == "'a'" else "'a'"
        quotes = text[:3] if text.startswith('"""') else text[:1]
        return f"{text.removesuffix(quotes)}{SUFFIX}{quotes}"
    return ""
