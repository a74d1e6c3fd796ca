"""Codec between frozen values of `mimir.domain` and JSON values, without loss.

Reading is strict: an unknown field, another type or a missing field is an error. A field with a default may be missing, because an earlier
version did not write it.
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache
from typing import Literal, TypeVar, Union, cast, get_args, get_origin

from mimir.domain import json_value
from mimir.errors import StoreError

T = TypeVar("T")
_Read = Callable[[object], object]


def encode(value: object) -> object:
    """Return a value as JSON values: fractions are texts, tuples are lists.

    Raises:
        StoreError: It holds something that is not a value of the domain.
    """
    match value:
        case Enum():
            return value.value
        case None | str() | bool() | int() | float():
            return value
        case Fraction():
            return str(value)
        case _ if json_value.is_array(value):
            return [encode(part) for part in value]
        case _ if json_value.is_object(value):
            return {str(k): encode(v) for k, v in value.items()}
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            members = {f: getattr(value, f.name) for f in dataclasses.fields(value)}
            # Values of earlier versions, and their hashes, have no such member.
            return {
                f.name: encode(part)
                for f, part in members.items()
                if part or not f.metadata.get("omit_empty")
            }
        case _:
            raise StoreError(f"A {type(value).__name__} cannot be stored as JSON.")


def decode(kind: type[T], value: object) -> T:
    """Return the value of this type that `encode` wrote.

    Raises:
        StoreError: It has another form; the message names the field.
    """
    return cast("T", _reader(kind)(value))


@cache
def _reader(kind: object) -> _Read:
    """Return the reader of a type."""
    # Cached: a plan of ten thousand tasks is read by the same few readers.
    origin, parts = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and origin is None:
        return _of_class(kind)
    if origin is Literal:
        return _one_of(parts)
    if origin in (Union, types.UnionType):
        return _first_of(parts)
    if origin is tuple:
        return _tuple_of(parts)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return lambda value: dict(_require_object(value))
    raise StoreError(f"{kind} cannot be read from JSON.")


def _of_class(kind: type[object]) -> _Read:
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind)
    if kind is Fraction:
        return _fraction
    if issubclass(kind, Enum):
        return _one_of(tuple(kind))
    if kind is str:
        return lambda value: _intern_text(_require_type(str, value))
    if kind in (int, bool, type(None)):
        return lambda value: _require_type(kind, value)
    if kind is float:
        return lambda value: (
            _require_type(int, value) if type(value) is int else _require_type(float, value)
        )
    if kind is object:
        return lambda value: value
    raise StoreError(f"{kind.__name__} cannot be read from JSON.")


def _require_type(kind: type[T], value: object) -> T:
    # Exact types: to Python, True is an int too.
    if type(value) is not kind or not isinstance(value, kind):
        raise StoreError(f"{str(value)[:80]!r} is no {kind.__name__}.")
    return value


def _require_object(value: object) -> json_value.JsonObject:
    _require_type(dict, value)
    return json_value.as_object(value)


def _require_array(value: object) -> Sequence[object]:
    _require_type(list, value)
    return json_value.as_array(value)


def _intern_text(text: str) -> str:
    """Return a text; equal short texts are one object."""
    # Many tasks of a plan have texts in common, such as their roles.
    return _intern_short(text) if len(text) < _SHORT else text


@lru_cache(maxsize=256)
def _intern_short(text: str) -> str:
    return text


_SHORT = 100
_known_fraction = lru_cache(maxsize=256)(Fraction)


def _fraction(value: object) -> object:
    try:
        return _known_fraction(_require_type(str, value))
    except (ValueError, ZeroDivisionError) as error:
        raise StoreError(f"{str(value)[:80]!r} is no fraction.") from error


def _one_of(options: tuple[object, ...]) -> _Read:
    by_value = {encode(option): option for option in options}

    def read(value: object) -> object:
        if not isinstance(value, str) or value not in by_value:
            raise StoreError(f"{str(value)[:80]!r} is none of {sorted(map(str, by_value))}.")
        return by_value[value]

    return read


def _first_of(kinds: tuple[object, ...]) -> _Read:
    # The error text is kept, not the error: its traceback would hold this frame in a cycle.
    readers = [_reader(kind) for kind in kinds if kind is not type(None)]
    may_be_none = type(None) in kinds

    def read(value: object) -> object:
        if value is None and may_be_none:
            return None
        message = ""
        for reader in readers:
            try:
                return reader(value)
            except StoreError as error:
                message = str(error)
        raise StoreError(message)

    return read


def _tuple_of(parts: tuple[object, ...]) -> _Read:
    if len(parts) == 2 and parts[1] is Ellipsis:
        each = _reader(parts[0])
        return lambda value: tuple(each(part) for part in _require_array(value))
    readers = [_reader(part) for part in parts]

    def read(value: object) -> object:
        given = _require_array(value)
        if len(given) != len(readers):
            raise StoreError(f"{len(given)} values where {len(readers)} were written.")
        return tuple(reader(v) for reader, v in zip(readers, given, strict=True))

    return read


def _dataclass(kind: type) -> _Read:
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    readers = {field.name: _reader(hints[field.name]) for field in fields}
    needed = {
        field.name
        for field in fields
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }

    def read(value: object) -> object:
        given = _require_object(value)
        if different := sorted((given.keys() - readers.keys()) | (needed - given.keys())):
            raise StoreError(f"{kind.__name__}: field {different[0]!r} is unknown or missing.")
        values: dict[str, object] = {}
        for name in given:
            try:
                values[name] = readers[name](given[name])
            except StoreError as error:
                raise StoreError(f"{kind.__name__}.{name}: {error}") from error
        return kind(**values)

    return read
