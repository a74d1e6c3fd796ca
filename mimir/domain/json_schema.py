"""Validation of values by the supported part of JSON Schema 2020-12. Pure.

`pattern` and `format` are notes only: a pattern of an untrusted file could take unbounded time.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mimir.domain.json_value import (
    JsonObject,
    as_array,
    as_number,
    as_object,
    as_text,
    as_texts,
    is_array,
    is_object,
)
from mimir.domain.quoted_text import list_names, nearest, quote_text
from mimir.domain.strict_json import JsonFault, decode_json

MAX_STEPS = 20_000
"""Compared pairs of value and schema; one that refers to itself would have no end."""
MAX_TEXT_DEPTH = 8
"""Deepest nesting of JSON within a text."""
_BOUNDS: Sequence[tuple[str, str, Callable[[float, float], bool]]] = (
    ("minimum", "at least", operator.ge),
    ("maximum", "at most", operator.le),
    ("exclusiveMinimum", "more than", operator.gt),
    ("exclusiveMaximum", "less than", operator.lt),
)


def find_mismatch(value: object, schema: JsonObject, at: str) -> str:
    """Return a sentence about the first mismatch of a value with a schema; empty: it matches.

    `at` names the value, such as "argument 'path' of read_file".
    """
    try:
        return next(_Validation(root=schema).compare(value, schema, at), "")
    except RecursionError:
        return f"The comparison of the {at} with its schema takes too many steps."


def fit_value(value: object, schema: JsonObject) -> object:
    """Return a value in the form of its schema, if its own form has one reading only.

    A key of another case, a quoted number, a word of an enumeration in another form, and null for "not given" have one.
    """
    kind = schema.get("type")
    if is_object(value):
        return _fit_members(value, schema)
    if is_array(value):
        items = as_object(schema.get("items"))
        return [fit_value(one, items) for one in value]
    if not isinstance(value, str):
        return value
    if words := as_texts(schema.get("enum")):
        near = [word for word in words if _stem(word) == _stem(value)]
        return near[0] if len(near) == 1 else value
    is_number = kind in ("number", "integer") and re.fullmatch(
        r"-?\d{1,15}(\.\d{1,9})?", value.strip()
    )
    if is_number or kind in ("boolean", "array", "object"):
        return _decode_text(value, str(kind))
    return value


def _fit_members(value: JsonObject, schema: JsonObject) -> JsonObject:
    known, required = as_object(schema.get("properties")), as_texts(schema.get("required"))
    fitted: dict[str, object] = {}
    for name, one in value.items():
        same = [key for key in known if plain_key(key) == plain_key(name)]
        key = same[0] if len(same) == 1 and same[0] not in (*value, *fitted) else name
        rules = as_object(known.get(key))
        if one is not None or key not in known or key in required or "type" not in rules:
            fitted[key] = fit_value(one, rules)
    return fitted


def _decode_text(text: str, kind: str) -> object:
    """Return the value of a kind that a text holds as JSON; the text itself if there is none."""
    plain = text.strip()
    try:
        value, end = decode_json(
            plain.lower() if kind == "boolean" else plain, max_depth=MAX_TEXT_DEPTH
        )
    except JsonFault:
        return text
    return value if end == len(plain) and _TYPES[kind][1](value) else text


def plain_key(word: str) -> str:
    """Return a key without case and separators: `allowed_tools` is `allowedTools`."""
    return re.sub(r"[-_ ]", "", word).casefold()


def _stem(word: str) -> str:
    return word.strip().casefold().removesuffix("ed")


@dataclass(slots=True, kw_only=True)
class _Validation:
    """One validation with its effort."""

    root: JsonObject
    steps: int = 0

    def compare(self, value: object, schema: object, at: str) -> Iterator[str]:
        """Yield the mismatches."""
        self.steps += 1
        # Raised, not yielded: below `not`, a mismatch would count as a match.
        if self.steps > MAX_STEPS:
            raise RecursionError
        if isinstance(schema, bool):
            yield from () if schema else (f"The {at} is not allowed.",)
            return
        rules = as_object(schema)
        if reference := as_text(rules.get("$ref")):
            yield from self._referred(value, reference, at)
        yield from _simple_mismatches(value, rules, at)
        yield from self._combined(value, rules, at)
        if is_object(value):
            yield from self._object(value, rules, at)
        elif is_array(value):
            yield from self._array(value, rules, at)

    def _referred(self, value: object, reference: str, at: str) -> Iterator[str]:
        target: object = self.root
        for part in reference.removeprefix("#").split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            target = as_object(target).get(name)
        if not isinstance(target, bool) and not is_object(target):
            yield f"The schema of the {at} has no {reference!r}."
            return
        yield from self.compare(value, target, at)

    def _combined(self, value: object, rules: JsonObject, at: str) -> Iterator[str]:
        for part in as_array(rules.get("allOf")):
            yield from self.compare(value, part, at)
        for name in ("anyOf", "oneOf"):
            if name not in rules:
                continue
            matching = [p for p in as_array(rules[name]) if not self._differs(value, p, at)]
            if not matching or (name == "oneOf" and len(matching) > 1):
                yield f"The {at} matches {len(matching)} schemas of {name}."
        if "not" in rules and not self._differs(value, rules["not"], at):
            yield f"The {at} matches a schema that it must not match."

    def _differs(self, value: object, schema: object, at: str) -> bool:
        return any(True for _ in self.compare(value, schema, at))

    def _object(self, value: JsonObject, rules: JsonObject, at: str) -> Iterator[str]:
        known = as_object(rules.get("properties"))
        others = rules.get("additionalProperties", True)
        for name in value if others is False else ():
            if name not in known:
                yield f"The {at} may not hold {quote_text(name)}.{nearest(name, known)}"
        # Members of `properties` are optional unless they are required.
        if missing := [name for name in as_texts(rules.get("required")) if name not in value]:
            yield f"The {at} must hold {list_names(missing)}."
        for name, one in value.items():
            inner = f"{quote_text(name, 60)} in the {at}"
            yield from self.compare(one, known.get(name, others), inner)
        yield from _sizes(len(value), rules, "Properties", f"number of members of the {at}")

    def _array(self, value: Sequence[object], rules: JsonObject, at: str) -> Iterator[str]:
        yield from _sizes(len(value), rules, "Items", f"number of items of the {at}")
        # `items` applies to the items after the first ones.
        first = as_array(rules.get("prefixItems"))
        others = rules.get("items", True)
        for place, one in enumerate(value):
            schema = first[place] if place < len(first) else others
            yield from self.compare(one, schema, f"item {place + 1} of the {at}")
        texts = [repr(one) for one in value]
        if rules.get("uniqueItems") is True and len(set(texts)) < len(texts):
            yield f"The {at} has equal items."


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Fraction) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | float | Fraction) and _is_number(value) and value % 1 == 0


_TYPES: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "object": ("an object", is_object),
    "array": ("a list", is_array),
    "string": ("a string", lambda value: isinstance(value, str)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "null": ("null", lambda value: value is None),
    "number": ("a number", _is_number),
    "integer": (
        "a whole number",
        _is_whole,
    ),
}
"""Name of each JSON type in a message, and its test."""


def _simple_mismatches(value: object, rules: JsonObject, at: str) -> Iterator[str]:
    kinds = as_array(rules["type"]) or [rules["type"]] if "type" in rules else []
    known = [_TYPES[str(kind)] for kind in kinds if str(kind) in _TYPES]
    if kinds and not any(is_kind(value) for _, is_kind in known):
        nouns = " or ".join(noun for noun, _ in known) or "of a known type"
        yield f"The {at} must be {nouns}, not {_describe(value)}."
    for name in ("enum", "const"):
        allowed = as_array(rules.get(name)) if name == "enum" else [rules.get(name)]
        if name in rules and not any(_equal(value, one) for one in allowed):
            names = list_names(map(str, allowed))
            yield f"The {at} must be one of {names}, not {quote_text(str(value))}."
    if isinstance(value, str):
        yield from _sizes(len(value), rules, "Length", f"length of the {at}")
    elif isinstance(value, int | float | Fraction) and not isinstance(value, bool):
        yield from _out_of_bounds(float(value) if isinstance(value, Fraction) else value, rules, at)


def _sizes(size: int, rules: JsonObject, noun: str, quantity: str) -> Iterator[str]:
    bounds = {"minimum": rules.get(f"min{noun}"), "maximum": rules.get(f"max{noun}")}
    return _out_of_bounds(size, bounds, quantity)


def _out_of_bounds(size: float, rules: JsonObject, quantity: str) -> Iterator[str]:
    for name, words, holds in _BOUNDS:
        bound = as_number(rules.get(name))
        if bound is not None and not holds(size, bound):
            yield f"The {quantity} must be {words} {bound:,}, not {size:,}."


def _describe(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return f"the string {quote_text(value, 40)}"
        case int() | float() | Fraction():
            return f"the number {quote_text(str(value), 40)[1:-1]}"
        case list():
            return "a list"
        case _:
            return "an object"


def _equal(one: object, other: object) -> bool:
    # In Python, True equals 1.
    return one == other and isinstance(one, bool) is isinstance(other, bool)
