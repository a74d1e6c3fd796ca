"""The part of JSON Schema that tools use, checked strictly, with messages that say what to send instead. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from mimir.errors import ToolError
from mimir.tools.calls.messages import list_names, nearest, quote_text

Schema = Mapping[str, object]

KEYWORDS = frozenset(
    {"type", "description", "properties", "required", "additionalProperties", "items", "enum"}
    | {"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"}
)
"""What `check` understands; another keyword in a tool's schema would promise a check that is not made."""

_ARTICLE = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def check(value: object, schema: Schema, at: str) -> object:
    """Return `value` if it fits, whole numbers written as 2.0 made integers.

    Args:
        value: As `json.loads` made it.
        schema: Of the keywords in `KEYWORDS`.
        at: What the value is called in a message, such as "argument 'path' of read_file".

    Raises:
        ToolError: It does not fit; the message names the place, what is wanted and what came.
    """
    kind = schema.get("type")
    if isinstance(kind, str):
        value = _typed(value, kind, at)
    allowed = schema.get("enum")
    if allowed is not None and value not in cast("Sequence[object]", allowed):
        names = list_names(str(a) for a in cast("Sequence[object]", allowed))
        raise ToolError(f"The {at} must be one of {names}, not {quote_text(str(value))}.")
    match value:
        case str():
            _bounded(len(value), schema, ("minLength", "maxLength"), f"length of the {at}")
        case bool() | None:
            pass
        case int() | float():
            _bounded(value, schema, ("minimum", "maximum"), at)
        case list():
            return _items(cast("list[object]", value), schema, at)
        case dict():
            return _properties(cast("dict[str, object]", value), schema, at)
        case _:
            pass
    return value


def usage(name: str, schema: Schema) -> str:
    """Return one sentence that says what a tool takes."""
    required = cast("Sequence[str]", schema.get("required", ()))
    parts = [
        f"{key} ({_kind_of(value)}{'' if key in required else ', optional'})"
        for key, value in _members(schema).items()
    ]
    return (
        f"{name} takes {'; '.join(parts)}." if parts else f"{name} takes no arguments: send {{}}."
    )


def _typed(value: object, kind: str, at: str) -> object:
    tests: Mapping[str, Callable[[object], bool]] = {
        "string": lambda v: isinstance(v, str),
        "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
        "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
        "boolean": lambda v: isinstance(v, bool),
        "array": lambda v: isinstance(v, list),
        "object": lambda v: isinstance(v, dict),
        "null": lambda v: v is None,
    }
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if not tests[kind](value):
        raise ToolError(f"The {at} must be {_ARTICLE[kind]}, not {_named(value)}.")
    return value


def _named(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return f"the string {quote_text(value, 40)}"
        case int() | float():
            return f"the number {quote_text(repr(value), 40)[1:-1]}"
        case list():
            return "a list"
        case _:
            return "an object"


def _bounded(size: float, schema: Schema, names: tuple[str, str], what: str) -> None:
    least, most = (cast("float | None", schema.get(n)) for n in names)
    if least is not None and size < least:
        raise ToolError(f"The {what} must be at least {least:,}, not {size:,}.")
    if most is not None and size > most:
        raise ToolError(f"The {what} must be at most {most:,}, not {size:,}.")


def _items(values: list[object], schema: Schema, at: str) -> list[object]:
    _bounded(len(values), schema, ("minItems", "maxItems"), f"number of items of the {at}")
    inner = schema.get("items")
    if not isinstance(inner, Mapping):
        return values
    wanted = cast("Schema", inner)
    return [check(v, wanted, f"item {i} of the {at}") for i, v in enumerate(values, start=1)]


def _properties(values: dict[str, object], schema: Schema, at: str) -> dict[str, object]:
    known = _members(schema)
    other = schema.get("additionalProperties", True)
    missing = [k for k in cast("Sequence[str]", schema.get("required", ())) if k not in values]
    unknown = [k for k in values if k not in known]
    if unknown and other is False:
        raise ToolError(
            f"The {at} may not hold {quote_text(unknown[0])}.{nearest(unknown[0], known)}"
        )
    if missing:
        raise ToolError(f"The {at} must hold {list_names(missing)}.")
    rest: Schema = cast("Schema", other) if isinstance(other, Mapping) else {}
    return {
        k: check(v, known.get(k, rest), f"{quote_text(k, 60)} in the {at}")
        for k, v in values.items()
    }


def _members(schema: Schema) -> Mapping[str, Schema]:
    return cast("Mapping[str, Schema]", schema.get("properties", {}))


def _kind_of(schema: Schema) -> str:
    kind = str(schema.get("type", "any value"))
    items = schema.get("items")
    if kind == "array" and isinstance(items, Mapping):
        return f"list of {_kind_of(cast('Schema', items))}s"
    return {"array": "list", "integer": "whole number"}.get(kind, kind)
