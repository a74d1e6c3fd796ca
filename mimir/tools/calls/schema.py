"""Strict validator of the part of JSON Schema that tools use."""

from collections.abc import Mapping, Sequence

from mimir.domain.json_value import as_number, as_object, as_texts, is_array, is_object
from mimir.errors import ToolError
from mimir.tools.calls.messages import list_names, nearest, quote_text

Schema = Mapping[str, object]

KEYWORDS = frozenset(
    {"type", "description", "properties", "required", "additionalProperties", "items", "enum"}
    | {"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"}
)
"""The supported keywords; any other keyword in a schema would not be checked."""

_TYPES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "string": ("a string", (str,)),
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", (bool,)),
    "array": ("a list", (list,)),
    "object": ("an object", (dict,)),
    "null": ("null", (type(None),)),
}
"""The name of each JSON type in a message, and its Python types."""


def check(value: object, schema: Schema, at: str) -> object:
    """Return `value` if it fits the schema; a whole number written as 2.0 becomes an integer.

    `at` names the value in a message, such as "argument 'path' of read_file".

    Raises:
        ToolError: The value does not fit; the message names its place, the expected and the actual value.
    """
    kind = schema.get("type")
    if isinstance(kind, str):
        value = _require_type(value, kind, at)
    allowed = schema.get("enum")
    if is_array(allowed) and value not in allowed:
        names = list_names(map(str, allowed))
        raise ToolError(f"The {at} must be one of {names}, not {quote_text(str(value))}.")
    if is_array(value):
        return _check_items(value, schema, at)
    if is_object(value):
        return _check_properties(value, schema, at)
    if isinstance(value, str):
        _require_bounds(len(value), schema, ("minLength", "maxLength"), f"length of the {at}")
    elif (number := as_number(value)) is not None:
        _require_bounds(number, schema, ("minimum", "maximum"), at)
    return value


def usage(name: str, schema: Schema) -> str:
    """Return one sentence that lists the arguments of a tool."""
    required = as_texts(schema.get("required"))
    parts = [
        f"{key} ({_kind_of(value)}{'' if key in required else ', optional'})"
        for key, value in members(schema).items()
    ]
    return (
        f"{name} takes {'; '.join(parts)}." if parts else f"{name} takes no arguments: send {{}}."
    )


def _require_type(value: object, kind: str, at: str) -> object:
    noun, types = _TYPES[kind]
    # Some models write every number with a decimal point.
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    # In Python, True and False are integers too.
    if not isinstance(value, types) or (isinstance(value, bool) and kind != "boolean"):
        raise ToolError(f"The {at} must be {noun}, not {_describe(value)}.")
    return value


def _describe(value: object) -> str:
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


def _require_bounds(size: float, schema: Schema, names: tuple[str, str], what: str) -> None:
    least, most = (as_number(schema.get(n)) for n in names)
    if least is not None and size < least:
        raise ToolError(f"The {what} must be at least {least:,}, not {size:,}.")
    if most is not None and size > most:
        raise ToolError(f"The {what} must be at most {most:,}, not {size:,}.")


def _check_items(values: Sequence[object], schema: Schema, at: str) -> Sequence[object]:
    _require_bounds(len(values), schema, ("minItems", "maxItems"), f"number of items of the {at}")
    inner = schema.get("items")
    if not is_object(inner):
        return values
    return [check(v, inner, f"item {i} of the {at}") for i, v in enumerate(values, start=1)]


def _check_properties(
    values: Mapping[str, object], schema: Schema, at: str
) -> Mapping[str, object]:
    known = members(schema)
    other = schema.get("additionalProperties", True)
    missing = [k for k in as_texts(schema.get("required")) if k not in values]
    unknown = [k for k in values if k not in known]
    if unknown and other is False:
        raise ToolError(
            f"The {at} may not hold {quote_text(unknown[0])}.{nearest(unknown[0], known)}"
        )
    if missing:
        raise ToolError(f"The {at} must hold {list_names(missing)}.")
    # `true` and a missing keyword permit any value.
    rest = as_object(other)
    return {
        k: check(v, known.get(k, rest), f"{quote_text(k, 60)} in the {at}")
        for k, v in values.items()
    }


def members(schema: Schema) -> Mapping[str, Schema]:
    """Return the schema of each member of an object."""
    return {name: as_object(one) for name, one in as_object(schema.get("properties")).items()}


def _kind_of(schema: Schema) -> str:
    kind = str(schema.get("type", "any value"))
    items = schema.get("items")
    if kind == "array" and is_object(items):
        return f"list of {_kind_of(items)}s"
    return {"array": "list", "integer": "whole number"}.get(kind, kind)
