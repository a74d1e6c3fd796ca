"""Codec between stored rows and typed records, driven by the fields of the record class.

A field is stored under its name in camelCase, and JSON text under that name with `Json` at its end. `Property` names exceptions.
The type of a field decides how it is read: a wrong type is an error, an absent property is the field's default.
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Annotated, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin

from mimir.domain import json_value
from mimir.domain.value_class import value_class
from mimir.errors import StoreError
from mimir.store import codec
from mimir.store.protocol import Row, Value
from mimir.store.schema import NodeLabel, pack, unpack

T = TypeVar("T")
R = TypeVar("R", bound="StoredRecord")

_Convert = Callable[[object], object]


class StoredRecord:
    """Base of every record: a frozen, slotted dataclass of properties of one node."""

    __slots__ = ()
    label: ClassVar[NodeLabel]
    """Label of the node."""
    is_partial: ClassVar[bool] = False
    """True: a projection; a query reads these properties alone."""
    skips_none: ClassVar[bool] = False
    """True: a field that is None is not written. False: it removes the property."""

    def __init_subclass__(
        cls,
        label: NodeLabel | None = None,
        is_partial: bool | None = None,
        skips_none: bool | None = None,
    ) -> None:
        given = {"label": label, "is_partial": is_partial, "skips_none": skips_none}
        # A class with slots is created twice; the second time its arguments are gone, and its attributes stay.
        for name, value in given.items():
            if value is not None:
                setattr(cls, name, value)

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """Read a record.

        Raises:
            StoreError: Properties are missing or of a wrong type; the message counts and names them.
        """
        return decode(cls, row)


@value_class
class Property:
    """Stored form of a field that differs from the rule."""

    name: str = ""
    """Stored name. Empty: the field's name in camelCase."""
    is_tolerant: bool = False
    """True: a value of a wrong type counts as absent. The audit compares such values itself."""


# Text of a record under audit: empty if the stored value is not a text.
TolerantText = Annotated[str, Property(is_tolerant=True)]


@dataclass(frozen=True, slots=True)
class PackedJson:
    """JSON text of one property, decoded on demand, because it may be large."""

    text: str = ""
    """JSON. Empty: the property is absent."""
    node: str = field(default="", compare=False)
    """Id of the node, for error messages."""
    property: str = field(default="", compare=False)
    """Stored name, for error messages."""

    @classmethod
    def pack(cls, value: object) -> "PackedJson":
        """Write a value of the domain as JSON text.

        Raises:
            StoreError: It has no JSON form.
        """
        return cls(pack(codec.encode(value)))

    def __bool__(self) -> bool:
        """Return whether the property is present."""
        return bool(self.text)

    def decode(self, kind: type[T]) -> T:
        """Read a value of the domain.

        Raises:
            StoreError: The text is absent, or has another form.
        """
        try:
            return codec.decode(kind, unpack(self.text))
        except StoreError as error:
            raise self._unreadable(error) from error

    def mapping(self) -> Mapping[str, object]:
        """Read a JSON object; empty if the property is absent.

        Raises:
            StoreError: It is not a JSON object.
        """
        return dict(self.decode(Mapping[str, object])) if self.text else {}

    def texts(self) -> tuple[str, ...]:
        """Read a JSON array of texts; empty if the property is absent.

        Raises:
            StoreError: It is not an array of texts.
        """
        return self.decode(tuple[str, ...]) if self.text else ()

    def _unreadable(self, error: StoreError) -> StoreError:
        return StoreError(
            f"Property {self.property!r} of {self.node!r} cannot be read: {error}",
            next_step="Find the change: mimir verify",
        )


# JSON property that is absent.
ABSENT = PackedJson()
_DEFAULT, _REQUIRED = object(), object()


@value_class
class _Entry:
    """One row of a record's table: a field and its property."""

    field: str
    stored: str
    convert: _Convert
    when_absent: object
    """Value of the field if the property is absent; `_DEFAULT` and `_REQUIRED` are marks."""
    is_tolerant: bool
    is_json: bool


class _InvalidValueError(Exception):
    """A stored value has another type than its field."""


def decode(kind: type[R], row: Row) -> R:
    """Read a record.

    Raises:
        StoreError: Properties are missing or of a wrong type; the message counts and names them.
    """
    # All errors of a row are named at once, so that a repair needs one look.
    values: dict[str, object] = {}
    errors: list[str] = []
    for entry in _table(kind):
        given = row.get(entry.stored)
        if given is None:
            if entry.when_absent is _REQUIRED:
                errors.append(f"Property {entry.stored!r} is missing.")
            elif entry.when_absent is not _DEFAULT:
                values[entry.field] = entry.when_absent
            continue
        try:
            value = entry.convert(given)
        except _InvalidValueError as error:
            if not entry.is_tolerant:
                errors.append(
                    f"Property {entry.stored!r} must be {error}, not {str(given)[:80]!r}."
                )
            continue
        if entry.is_json:
            value = PackedJson(str(value), str(row.get("id")), entry.stored)
        values[entry.field] = value
    if errors:
        raise _invalid_record(kind, row, errors)
    return kind(**values)


def decode_all(kind: type[R], rows: typing.Iterable[Row]) -> list[R]:
    """Read records in order.

    Raises:
        StoreError: One of them is invalid.
    """
    return [decode(kind, row) for row in rows]


def encode(*records: StoredRecord) -> dict[str, Value]:
    """Write records as properties of one node; None removes one, unless skipped."""
    properties: dict[str, Value] = {}
    for record in records:
        for entry in _table(type(record)):
            value = _plain(getattr(record, entry.field))
            if value is not None or not record.skips_none:
                properties[entry.stored] = value
    return properties


def stored_names(kind: type[StoredRecord]) -> tuple[str, ...]:
    """Return the stored names of a record's fields, in their order."""
    return tuple(entry.stored for entry in _table(kind))


def selection(kind: type[StoredRecord]) -> tuple[str, ...]:
    """Return the properties that a query selects for a record; empty: all."""
    return stored_names(kind) if kind.is_partial else ()


def _invalid_record(kind: type[StoredRecord], row: Row, errors: list[str]) -> StoreError:
    count = f"{len(errors)} error{'s' if len(errors) > 1 else ''}"
    noun = kind.label.value.lower()
    return StoreError(
        f"The stored record of {noun} {str(row.get('id'))!r} is invalid ({count}). {' '.join(errors)}",
        next_step="Find the change: mimir verify",
    )


@cache
def _table(kind: type[StoredRecord]) -> tuple[_Entry, ...]:
    """Return the table of a record class; it is made once."""
    # Computed once per class: the type hints of a class are slow to resolve.
    if not dataclasses.is_dataclass(kind):
        raise StoreError(f"{kind.__name__} is not a record.")
    hints = typing.get_type_hints(kind, include_extras=True)
    return tuple(_entry(each, hints[each.name]) for each in dataclasses.fields(kind))


def _entry(each: "dataclasses.Field[typing.Any]", hint: object) -> _Entry:
    kind, prop = hint, Property()
    if get_origin(hint) is Annotated:
        kind, *extras = get_args(hint)
        prop = next((extra for extra in extras if isinstance(extra, Property)), prop)
    is_json = kind is PackedJson
    stored = prop.name or _camel_case(each.name) + ("Json" if is_json else "")
    return _Entry(
        field=each.name,
        stored=stored,
        convert=_converter(kind),
        when_absent=_when_absent(each, kind),
        is_tolerant=prop.is_tolerant,
        is_json=is_json,
    )


def _when_absent(each: "dataclasses.Field[typing.Any]", kind: object) -> object:
    if each.default is not dataclasses.MISSING:
        return _DEFAULT
    if kind is PackedJson:
        return ABSENT
    return None if type(None) in get_args(kind) else _REQUIRED


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _converter(kind: object) -> _Convert:
    """Return the converter of a field's type."""
    # An optional field has the converter of its type: an absent value never reaches it.
    if kind in _CONVERTERS:
        return _CONVERTERS[kind]
    if get_origin(kind) in (Union, types.UnionType):
        (present,) = (part for part in get_args(kind) if part is not type(None))
        return _converter(present)
    if get_origin(kind) is Literal:
        return _member_converter({option: option for option in get_args(kind)})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _member_converter({member.value: member for member in kind})
    raise StoreError(f"A record cannot have a field of type {kind}.")


def _text(given: object) -> object:
    if not isinstance(given, str):
        raise _InvalidValueError("a text")
    return given


def _whole_number(given: object) -> object:
    if isinstance(given, bool) or not isinstance(given, int):
        raise _InvalidValueError("a whole number")
    return given


def _number(given: object) -> object:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise _InvalidValueError("a number")
    return given


def _flag(given: object) -> object:
    if not isinstance(given, bool):
        raise _InvalidValueError("true or false")
    return given


def _texts(given: object) -> object:
    items, texts = json_value.as_array(given), json_value.as_texts(given)
    if not isinstance(given, list) or len(texts) != len(items):
        raise _InvalidValueError("a list of texts")
    return tuple(texts)


def _as_stored(given: object) -> object:
    return given


def _member_converter(members: Mapping[object, object]) -> _Convert:
    def convert(given: object) -> object:
        # A list is not hashable; it is never a member.
        if not isinstance(given, str) or given not in members:
            raise _InvalidValueError(f"one of {', '.join(sorted(map(str, members)))}")
        return members[given]

    return convert


_CONVERTERS: Mapping[object, _Convert] = {
    str: _text,
    int: _whole_number,
    float: _number,
    bool: _flag,
    tuple[str, ...]: _texts,
    PackedJson: _text,
    object: _as_stored,
}


def _plain(value: object) -> Value:
    """Return the value of a field in its stored form."""
    # Tuples are stored as lists of texts.
    if json_value.is_array(value):
        return json_value.as_texts(value)
    match value:
        case PackedJson():
            return value.text or None
        case Enum():
            return str(value.value)
        case None | str() | bool() | int() | float():
            return value
        case _:
            raise StoreError(f"A {type(value).__name__} cannot be stored as a property.")
