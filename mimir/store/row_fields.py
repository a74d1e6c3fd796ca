"""Typed readers of a row: an absent property has a default, a wrong type is an error."""

from collections.abc import Iterable, Mapping
from typing import Never

from mimir.domain.json_value import is_object
from mimir.errors import StoreError
from mimir.store.protocol import Row
from mimir.store.schema import unpack


def object_field(row: Row, names: Iterable[str]) -> Row:
    """Return a row with its id and these properties alone."""
    return {name: row[name] for name in ("id", *names) if name in row}


def text_field(row: Row, name: str) -> str:
    """Return a text; empty if it is absent."""
    value = row.get(name)
    if not (value is None or isinstance(value, str)):
        _wrong(row, name, "a text")
    return value or ""


def int_field(row: Row, name: str) -> int:
    """Return a whole number; 0 if it is absent."""
    return maybe_whole(row, name) or 0


def maybe_whole(row: Row, name: str) -> int | None:
    """Return a whole number; None if it is absent."""
    value = row.get(name)
    if isinstance(value, bool) or not (value is None or isinstance(value, int)):
        _wrong(row, name, "a whole number")
    return value


def float_field(row: Row, name: str) -> float:
    """Return a number; 0 if it is absent."""
    value = row.get(name)
    if isinstance(value, bool) or not (value is None or isinstance(value, int | float)):
        _wrong(row, name, "a number")
    return value or 0.0


def bool_field(row: Row, name: str) -> bool:
    """Return true or false; false if it is absent."""
    value = row.get(name)
    if not (value is None or isinstance(value, bool)):
        _wrong(row, name, "true or false")
    return value or False


def text_list_field(row: Row, name: str) -> list[str]:
    """Return a list of texts; empty if it is absent."""
    value = row.get(name)
    if not (value is None or isinstance(value, list)):
        _wrong(row, name, "a list")
    return list(value or ())


def json_field(row: Row, name: str) -> Mapping[str, object]:
    """Return a JSON object of a property whose name ends in `Json`; empty if it is absent."""
    packed = text_field(row, name)
    if not packed:
        return {}
    value = unpack(packed)
    if not is_object(value):
        raise StoreError(f"Property {name!r} of {row.get('id')!r} is no JSON object.")
    return value


def _wrong(row: Row, name: str, wanted: str) -> Never:
    # The value is cut: a damaged one may be large.
    raise StoreError(
        f"Property {name!r} of {row.get('id')!r} is not {wanted}: {str(row.get(name))[:80]!r}."
    )
