"""Typed access to JSON values; a member of another type counts as absent. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeGuard, TypeVar

T = TypeVar("T")

# A JSON object; its members are JSON values.
JsonObject = Mapping[str, object]
NO_MEMBERS: JsonObject = {}
OMIT_EMPTY = {"omit_empty": True}
"""Metadata of a field that stored JSON has only if it is not empty."""


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Return whether a JSON value is an object."""
    return isinstance(value, Mapping)


def is_array(value: object) -> TypeGuard[Sequence[object]]:
    """Return whether a JSON value is an array."""
    return isinstance(value, list | tuple)


def as_object(value: object) -> JsonObject:
    """Return an object; empty if the value is none."""
    return value if is_object(value) else NO_MEMBERS


def as_array(value: object) -> Sequence[object]:
    """Return an array; empty if the value is none."""
    return value if is_array(value) else ()


def as_text(value: object) -> str:
    """Return a text; empty if the value is none."""
    return value if isinstance(value, str) else ""


def as_number(value: object) -> float | None:
    """Return a number; None if the value is not one, or is a boolean."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def as_whole_number(value: object) -> int | None:
    """Return a whole number; None if the value is not one, or is a boolean."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_objects(value: object) -> list[JsonObject]:
    """Return the objects of an array; empty if the value is no array."""
    return [item for item in as_array(value) if is_object(item)]


def as_texts(value: object) -> list[str]:
    """Return the texts of an array; empty if the value is no array."""
    return [item for item in as_array(value) if isinstance(item, str)]


def as_member(value: object, options: Iterable[T]) -> T | None:
    """Return the option equal to a text, such as a member of a Literal; None if there is none."""
    return next((option for option in options if isinstance(value, str) and option == value), None)
