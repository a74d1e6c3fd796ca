"""JSON form of flat dataclasses: stored names are the field names in camel case. Pure."""

import types
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin

from mimir.domain.json_value import JsonObject
from mimir.errors import StoreError

T = TypeVar("T")


def encode_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON values."""
    return {_stored_name(field.name): getattr(value, field.name) for field in fields(value)}


def decode_fields(kind: type[T], values: JsonObject, name: str) -> T:
    """Read the form of `encode_fields`; a `StoreError` names the wrong member of `name`."""
    members: dict[str, object] = {}
    for field in fields(kind):  # pyright: ignore[reportArgumentType]  callers pass dataclasses
        stored = _stored_name(field.name)
        if stored not in values and field.default is not MISSING:
            continue
        value = values.get(stored)
        if not _has_type(value, field.type):
            raise StoreError(f"{name} has {value!r} for {stored}.")
        members[field.name] = value
    return kind(**members)


@cache
def _stored_name(field: str) -> str:
    first, *more = field.split("_")
    return first + "".join(word.capitalize() for word in more)


def _has_type(value: object, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if isinstance(kind, types.UnionType):
        return any(_has_type(value, part) for part in get_args(kind))
    # JSON writes a whole float as 3.0 or 3; True is an int for Python only.
    return type(value) is kind or (kind is float and type(value) is int)
