"""Strict decoder of JSON that a model writes: unclear text is never guessed. Pure.

A repeated key, NaN, a number that no float holds, half of a surrogate pair and deep nesting are faults.
"""

import json
import math
import re
from fractions import Fraction
from functools import partial
from typing import NoReturn

MAX_DIGITS = 18
_MAX_DECIMAL = 24
"""Characters of a number with a fraction or an exponent."""
# Strings are matched first, so that brackets inside them do not count.
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_LAST_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"?|,(?=\s*[\]}])', re.DOTALL)


class JsonFault(Exception):  # noqa: N818  a property of a text, not an action
    """The text is no clear JSON value; the message is a sentence about it."""


def decode_json(
    text: str, start: int = 0, *, max_depth: int, is_exact: bool = False, is_lenient: bool = False
) -> tuple[object, int]:
    """Return the JSON value at a place and the place after it, in linear time.

    `is_exact`: a number with a fraction or an exponent becomes a `Fraction`. `is_lenient`: a line feed in a text and a comma
    before a closing bracket, which have one meaning, are read too.

    Raises:
        JsonFault: There is no such value.
    """
    # Checked first: the decoder recurses, and its error would be a crash.
    if _measure_depth(text, start) > max_depth:
        raise JsonFault(f"The JSON is nested more than {max_depth} levels deep.")
    decoder = json.JSONDecoder(
        strict=not is_lenient,
        object_pairs_hook=_require_distinct,
        parse_float=partial(_read_decimal, is_exact=is_exact),
        parse_int=_read_whole,
        parse_constant=_refuse_constant,
    )
    try:
        try:
            value, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError:
            if not is_lenient:
                raise
            # A blank takes the place of each comma, so that positions stay.
            rest = _LAST_COMMA.sub(lambda one: " " if one[0] == "," else one[0], text[start:])
            value, end = decoder.raw_decode(text[:start] + rest, start)
        # Half surrogates cannot be stored; writing the value finds them at any depth.
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise JsonFault(f"The JSON is not valid: {error.msg} ({place}).") from None
    except UnicodeEncodeError:
        raise JsonFault("A text in the JSON holds half of a surrogate pair.") from None
    return value, end


def _measure_depth(text: str, start: int) -> int:
    deepest = depth = 0
    for found in _BRACKETS.finditer(text, start):
        if found[0] in ("[", "{"):
            depth += 1
            deepest = max(deepest, depth)
        elif found[0] in ("]", "}"):
            depth -= 1
    return deepest


def _require_distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        # Decoders differ on the value of a repeated key, so neither is used.
        if key in found:
            raise JsonFault(f"The key {key[:60]!r} occurs twice in one object.")
        found[key] = value
    return found


def _read_whole(literal: str) -> int:
    if len(literal) > MAX_DIGITS:
        _refuse_number(literal)
    return int(literal)


def _read_decimal(literal: str, *, is_exact: bool) -> float | Fraction:
    value = float(literal)
    # A number such as 1e-999 silently becomes zero.
    is_lost = value == 0 and re.search("[1-9]", re.split("[eE]", literal)[0])
    if is_lost or len(literal) > _MAX_DECIMAL or not math.isfinite(value):
        _refuse_number(literal)
    if is_exact:
        return Fraction(literal)
    # Some models write every number with a decimal point.
    return int(value) if value.is_integer() and abs(value) < 10**MAX_DIGITS else value


def _refuse_number(literal: str) -> NoReturn:
    raise JsonFault(f"The number {literal[:30]} is out of range.")


def _refuse_constant(name: str) -> NoReturn:
    raise JsonFault(f"{name} is not a JSON number.")
