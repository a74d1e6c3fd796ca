"""Strict reader of the one JSON object in a model's answer. Pure.

The object may stand in a fence and between words, but no other brace and no `"key":` may: a second object, or a piece of a broken one,
leaves open which is meant. Such an answer is refused, as is a list around the object. Nothing is repaired.
"""

import re
from collections.abc import Sequence

from mimir.domain.json_value import is_array, is_object
from mimir.domain.strict_json import JsonFault, decode_json
from mimir.errors import AnswerError

MAX_CHARS = 200_000
MAX_DEPTH = 8

_JSON_PIECE = re.compile(r'[{}]|"\s*:')


def parse_object(
    text: str, *, is_exact: bool = False, is_lenient: bool = False
) -> dict[str, object]:
    """Return the one JSON object in `text`; `is_exact` and `is_lenient` as in `decode_json`.

    Raises:
        AnswerError: There is not exactly one complete and clear object. The message tells the model the fault.
    """
    if len(text) > MAX_CHARS:
        raise AnswerError(f"The answer is longer than {MAX_CHARS} characters.")
    start = text.find("{")
    if start < 0:
        raise AnswerError("There is no JSON object in the answer.")
    try:
        value, end = decode_json(
            text, start, max_depth=MAX_DEPTH, is_exact=is_exact, is_lenient=is_lenient
        )
    except JsonFault as fault:
        raise AnswerError(str(fault)) from None
    before, after = text[:start].rstrip(), text[end:].lstrip()
    if any(_JSON_PIECE.search(part) for part in (before, after)):
        raise AnswerError(
            "There is more JSON outside the object: a second one, or a piece of a broken one."
        )
    if before.endswith(("[", ",")) or after.startswith(("]", ",")):
        raise AnswerError("The JSON object is in a list; it must be alone.")
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
