"""JSON in the output of programs; lines of other text are skipped. Pure."""

import json
from collections.abc import Iterator, Sequence
from typing import cast

from mimir.domain.json_value import JsonObject, is_object

MAX_LINES = 20_000
MAX_STARTS = 20
"""Places at which one object is searched for."""


def find_object(text: str, *members: str) -> JsonObject | None:
    """Return the last JSON object of a text that has one of the members; None: there is none."""
    whole = _parse(text.strip())
    if isinstance(whole, list):
        # The long form of a program's output lists all its messages.
        found = [one for one in cast("list[object]", whole) if _has(one, members)]
        return cast("JsonObject", found[-1]) if found else None
    if _has(whole, members):
        return cast("JsonObject", whole)
    # The last one counts: a program may print an object of its task before.
    starts = [*_starts(text)][-MAX_STARTS:]
    for at in reversed(starts):
        found_here = _parse(text, at)
        if _has(found_here, members):
            return cast("JsonObject", found_here)
    return None


def read_events(text: str) -> Sequence[JsonObject]:
    """Return the JSON objects that are whole lines."""
    parsed = (_parse(line) for line in text.splitlines() if line.lstrip().startswith("{"))
    return [one for one in parsed if is_object(one)]


def _has(value: object, members: tuple[str, ...]) -> bool:
    return is_object(value) and any(name in value for name in members)


def _starts(text: str) -> Iterator[int]:
    at = 0
    for line in text.splitlines(keepends=True):
        if line.startswith("{"):
            yield at
        at += len(line)


def _parse(text: str, at: int | None = None) -> object:
    """Return the JSON value of a whole text, or of its part from `at` on; None: there is none."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique)
    try:
        return decoder.decode(text) if at is None else decoder.raw_decode(text, at)[0]
    # Deep nesting ends the recursion of the parser.
    except (ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object; two values of one key would let a program say both."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found
