"""Strict parser of tool arguments: unclear arguments are refused, never guessed.

The result is one object of known names and right types, or a `ToolError` that explains the expected arguments.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from mimir.domain.json_value import (
    as_object,
    as_text,
    as_texts,
    as_whole_number,
    is_array,
    is_object,
)
from mimir.domain.message import ToolSpec
from mimir.errors import ToolError
from mimir.tools.calls import schema
from mimir.tools.calls.messages import list_names, nearest, quote_text

MAX_CHARS = 1_000_000
"""Longest text that is parsed."""
MAX_DEPTH = 16
"""Deepest nesting; far below the depth at which the JSON parser runs out of stack."""
MAX_DIGITS = 18

# Strings are matched first, so that brackets inside them do not count.
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class ToolArguments:
    """Checked arguments of one call; the readers never fail if the tool's schema fits."""

    values: Mapping[str, object]
    """In the order of the tool's schema."""

    @property
    def first(self) -> str:
        """The first argument as text, for the title of the call."""
        value = next(iter(self.values.values()), "")
        return " ".join(map(str, value)) if is_array(value) else str(value)

    def has(self, name: str) -> bool:
        """Return whether the model gave this argument."""
        return name in self.values

    def text(self, name: str, default: str = "") -> str:
        """Return a string argument."""
        return as_text(self.values.get(name, default))

    def number(self, name: str, default: int) -> int:
        """Return a whole number."""
        found = as_whole_number(self.values.get(name))
        return default if found is None else found

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings; empty if it is missing."""
        return tuple(as_texts(self.values.get(name)))

    def members(self, name: str) -> Mapping[str, object]:
        """Return an object; empty if it is missing."""
        return as_object(self.values.get(name))


def parse_arguments(raw: str, spec: ToolSpec) -> ToolArguments:
    """Parse the arguments of a call of the tool `spec`; an empty text is `{}`.

    Raises:
        ToolError: The text is not one JSON object of the tool's arguments; `next_step` names these.
    """
    try:
        return ToolArguments(_check_arguments(_parse_object(raw, spec.name), spec))
    except ToolError as error:
        # The model needs the whole signature to correct its call.
        error.next_step = error.next_step or schema.usage(spec.name, spec.input_schema)
        raise


def _parse_object(raw: str, tool: str) -> Mapping[str, object]:
    if len(raw) > MAX_CHARS:
        raise ToolError(
            f"The arguments of {tool} are {len(raw):,} characters long; at most {MAX_CHARS:,} are read.",
            next_step="Send less at once: write a long file in parts.",
        )
    # Checked first: the JSON parser recurses, and its error would be a crash.
    if _depth(raw) > MAX_DEPTH:
        raise ToolError(
            f"The arguments of {tool} are nested more than {MAX_DEPTH} levels deep; nothing was read."
        )
    try:
        # Providers send an empty text for a call without arguments.
        value = json.loads(
            raw if raw.strip() else "{}",
            object_pairs_hook=_unique_pairs,
            parse_constant=_refuse_constant,
            parse_float=_parse_float,
            parse_int=_parse_int,
        )
    except json.JSONDecodeError as error:
        raise ToolError(
            f"The arguments of {tool} are not valid JSON: {error.msg} (line {error.lineno}, column {error.colno}). "
            "Nothing was run."
        ) from None
    if not is_object(value):
        raise ToolError(f"The arguments of {tool} must be one JSON object, such as {{…}}.")
    return value


def _check_arguments(values: Mapping[str, object], spec: ToolSpec) -> Mapping[str, object]:
    known = schema.members(spec.input_schema)
    for name in values:
        if name not in known:
            raise ToolError(
                f"{spec.name} has no argument {quote_text(name)}.{nearest(name, known)}"
            )
    missing = [name for name in as_texts(spec.input_schema.get("required")) if name not in values]
    if missing:
        raise ToolError(f"{spec.name} was called without {list_names(missing)}.")
    # Such text cannot be stored, so the call could not be recorded.
    _require_encodable(values, spec.name)
    return {
        name: schema.check(values[name], known[name], f"argument {name} of {spec.name}")
        for name in known
        if name in values
    }


def _depth(raw: str) -> int:
    """Return the deepest nesting outside strings, in linear time for any text."""
    deepest = depth = 0
    for found in _BRACKETS.finditer(raw):
        match found[0][0]:
            case "[" | "{":
                depth += 1
                deepest = max(deepest, depth)
            case "]" | "}":
                depth -= 1
            case _:
                pass
    return deepest


def _require_encodable(value: object, tool: str) -> None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ToolError(
                f"The arguments of {tool} hold half of a surrogate pair (\\ud800–\\udfff), which is no character.",
                next_step="Write the character itself, or both halves of its escape.",
            ) from None
    elif is_array(value):
        for item in value:
            _require_encodable(item, tool)
    elif is_object(value):
        for item in (*value.keys(), *value.values()):
            _require_encodable(item, tool)


def _unique_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    out: dict[str, object] = {}
    for key, value in pairs:
        # Parsers differ on the value of a repeated key, so neither is used.
        if key in out:
            raise ToolError(
                f"The key {quote_text(key)} stands twice in the arguments; nothing was run."
            )
        out[key] = value
    return out


def _refuse_constant(name: str) -> NoReturn:
    raise ToolError(f"{name} in the arguments is no JSON number; nothing was run.")


def _parse_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ToolError(f"The number {quote_text(text, 40)[1:-1]} in the arguments is too large.")
    # A number such as 1e-999 silently becomes zero.
    if value == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        raise ToolError(f"The number {quote_text(text, 40)[1:-1]} in the arguments is too small.")
    return value


def _parse_int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ToolError(f"The number {quote_text(text, 40)[1:-1]} in the arguments is too large.")
    return int(text)
