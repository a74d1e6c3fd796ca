"""Validation of an answer by the supported part of JSON Schema 2020-12. Pure.

`pattern` and `format` are notes only: a pattern of an untrusted file could take unbounded time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mimir.domain.json_value import JsonObject, as_array, as_object, as_text, is_array, is_object

MAX_STEPS = 20_000
"""Compared pairs of value and schema; one that refers to itself would have no end."""


def find_mismatch(value: object, schema: JsonObject) -> str:
    """Return the first place where a value does not match a schema; empty: it matches."""
    try:
        return next(_Validation(root=schema).compare(value, schema, "the answer"), "")
    except RecursionError:
        return "the comparison with the schema takes too many steps"


@dataclass(slots=True, kw_only=True)
class _Validation:
    """One validation with its effort."""

    root: JsonObject
    steps: int = 0

    def compare(self, value: object, schema: object, at: str) -> Iterator[str]:
        """Yield what does not match."""
        self.steps += 1
        # Raised, not yielded: below `not`, a mismatch would count as a match.
        if self.steps > MAX_STEPS:
            raise RecursionError
        if isinstance(schema, bool):
            yield from () if schema else (f"{at} is not allowed",)
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
            yield f"the schema has no {reference!r}"
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
                yield f"{at} matches {len(matching)} schemas of {name}"
        if "not" in rules and not self._differs(value, rules["not"], at):
            yield f"{at} matches a schema that it must not match"

    def _differs(self, value: object, schema: object, at: str) -> bool:
        return any(True for _ in self.compare(value, schema, at))

    def _object(self, value: JsonObject, rules: JsonObject, at: str) -> Iterator[str]:
        known = as_object(rules.get("properties"))
        # Members of `properties` are optional unless they are required.
        for name in as_array(rules.get("required")):
            if name not in value:
                yield f"{at} has no {name!r}"
        others = rules.get("additionalProperties", True)
        for name, one in value.items():
            inner = f"{at}.{name[:60]}" if at != "the answer" else name[:60]
            yield from self.compare(one, known.get(name, others), inner)
        yield from _bounds(len(value), rules, ("minProperties", "maxProperties"), f"{at}: members")

    def _array(self, value: Sequence[object], rules: JsonObject, at: str) -> Iterator[str]:
        # `items` holds for what follows the first items.
        first = as_array(rules.get("prefixItems"))
        others = rules.get("items", True)
        for place, one in enumerate(value):
            schema = first[place] if place < len(first) else others
            yield from self.compare(one, schema, f"{at}[{place}]")
        yield from _bounds(len(value), rules, ("minItems", "maxItems"), f"{at}: items")
        texts = [repr(one) for one in value]
        if rules.get("uniqueItems") is True and len(set(texts)) < len(texts):
            yield f"{at} has equal items"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[object], bool]] = {
    "object": is_object,
    "array": is_array,
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": lambda value: _is_number(value) and float(str(value)).is_integer(),
}


def _simple_mismatches(value: object, rules: JsonObject, at: str) -> Iterator[str]:
    if "type" in rules:
        given = rules["type"]
        names = [given] if isinstance(given, str) else as_array(given)
        if not any(_TYPES.get(str(name), lambda _: False)(value) for name in names):
            yield f"{at} is no {' or '.join(map(str, names))}"
    if "enum" in rules and not any(_equal(value, one) for one in as_array(rules["enum"])):
        yield f"{at} is none of the values of enum"
    if "const" in rules and not _equal(value, rules["const"]):
        yield f"{at} is not the value of const"
    if isinstance(value, str):
        yield from _bounds(len(value), rules, ("minLength", "maxLength"), f"{at}: characters")
    if _is_number(value):
        size = float(str(value))
        yield from _bounds(size, rules, ("minimum", "maximum"), at)
        low, high = rules.get("exclusiveMinimum"), rules.get("exclusiveMaximum")
        if (isinstance(low, int | float) and size <= low) or (
            isinstance(high, int | float) and size >= high
        ):
            yield f"{at} is out of its bounds"


def _bounds(size: float, rules: JsonObject, names: tuple[str, str], what: str) -> Iterator[str]:
    low, high = (rules.get(name) for name in names)
    if isinstance(low, int | float) and size < low:
        yield f"{what} are fewer than {low}" if ": " in what else f"{what} is less than {low}"
    if isinstance(high, int | float) and size > high:
        yield f"{what} are more than {high}" if ": " in what else f"{what} is more than {high}"


def _equal(one: object, other: object) -> bool:
    # In Python, True equals 1.
    return one == other and isinstance(one, bool) is isinstance(other, bool)
