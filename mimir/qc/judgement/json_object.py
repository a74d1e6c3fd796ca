"""Strict reader of the one JSON object in a model's answer. Pure.

The object may stand in a fence and between words, but no other brace and no `"key":` may: a second object, or a piece of a broken one,
leaves open which is meant. Such an answer is refused, as is a list around the object. Nothing is repaired.
"""

import json
import re
from collections.abc import Sequence
from fractions import Fraction

from mimir.domain.json_value import is_array, is_object
from mimir.errors import AnswerError

MAX_CHARS = 200_000
MAX_DEPTH = 8
_MAX_NUMBER_CHARS = 24
_MAX_EXPONENT = 6

_STRUCTURE = re.compile(r'["{}\[\]]')
_JSON_PIECE = re.compile(r'[{}]|"\s*:')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)


def parse_object(text: str) -> dict[str, object]:
    """Return the one JSON object in `text`, in linear time; numbers are exact `Fraction`s.

    Raises:
        AnswerError: There is not exactly one complete object, or it holds a duplicate key, NaN, Infinity, a number out of range, half
            a surrogate pair, or more than `MAX_DEPTH` levels. The message tells the model which.
    """
    if len(text) > MAX_CHARS:
        raise AnswerError(f"The answer is longer than {MAX_CHARS} characters.")
    start = text.find("{")
    if start < 0:
        raise AnswerError("There is no JSON object in the answer.")
    end = _end(text, start)
    _require_alone(text[:start].rstrip(), text[end:].lstrip())
    return _decode(text[start:end])


def _end(text: str, start: int) -> int:
    """Return the end of the object that opens at `start`."""
    depth, at = 0, start
    # A scan of its own bounds the depth before anything is parsed.
    while found := _STRUCTURE.search(text, at):
        sign, at = found.group(), found.end()
        if sign == '"':
            string = _STRING.match(text, found.start())
            if string is None:
                break
            at = string.end()
        elif sign in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                raise AnswerError(f"The JSON object is nested more than {MAX_DEPTH} levels deep.")
        else:
            depth -= 1
            if depth == 0:
                return at
    raise AnswerError(
        "The JSON object is not complete: it is cut off, or a quote or brace is missing."
    )


def _require_alone(before: str, after: str) -> None:
    if any(_JSON_PIECE.search(text) for text in (before, after)):
        raise AnswerError(
            "There is more JSON outside the object: a second one, or a piece of a broken one."
        )
    if before.endswith(("[", ",")) or after.startswith(("]", ",")):
        raise AnswerError("The JSON object is in a list; it must be alone.")


def _decode(body: str) -> dict[str, object]:
    try:
        value: object = json.loads(
            body,
            # `json` keeps the last of two equal keys: a second "verdict" would win silently.
            object_pairs_hook=_require_distinct,
            parse_float=_number,
            parse_int=_number,
            parse_constant=_refuse,
        )
    except json.JSONDecodeError as error:
        raise AnswerError(f"The JSON is not valid: {error.msg} (character {error.pos}).") from None
    try:
        # Half surrogates cannot be stored as UTF-8; writing the value finds them at any depth.
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise AnswerError("A text in the JSON holds half of a surrogate pair.") from None
    return as_object(value, "The answer")


def as_object(value: object, what: str) -> dict[str, object]:
    """Return an object, or raise `AnswerError` for another value."""
    if not is_object(value):
        raise AnswerError(f"{what} must be a JSON object.")
    return dict(value)


def as_list(value: object, what: str) -> Sequence[object]:
    """Return a list, or raise `AnswerError` for another value."""
    if not is_array(value):
        raise AnswerError(f"{what} must be a list.")
    return value


def _require_distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise AnswerError(f"The key {key[:60]!r} occurs twice in one object.")
        found[key] = value
    return found


def _number(literal: str) -> Fraction:
    """Read a number exactly."""
    # Bounded first: a fraction of 1e999999 would fill the memory.
    exponent = re.search(r"[eE]([+-]?\d+)$", literal)
    too_far = exponent is not None and abs(int(exponent[1][:_MAX_NUMBER_CHARS])) > _MAX_EXPONENT
    if len(literal) > _MAX_NUMBER_CHARS or too_far:
        raise AnswerError(f"The number {literal[:30]} is out of range.")
    return Fraction(literal)


def _refuse(constant: str) -> object:
    raise AnswerError(f"{constant} is not a JSON number.")
