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


def text_field(row: Row, name: str, default: str = "") -> str:
    """Return a text."""
    value = row.get(name)
    if value is None:
        return default
    return value if isinstance(value, str) else _wrong(row, name, "a text")


def int_field(row: Row, name: str, default: int = 0) -> int:
    """Return a whole number."""
    value = row.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        _wrong(row, name, "a whole number")
    return value


def maybe_whole(row: Row, name: str) -> int | None:
    """Return a whole number; None if it is absent."""
    return None if row.get(name) is None else int_field(row, name)


def float_field(row: Row, name: str, default: float = 0.0) -> float:
    """Return a number."""
    value = row.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        _wrong(row, name, "a number")
    return value


def bool_field(row: Row, name: str, *, default: bool = False) -> bool:
    """Return true or false."""
    value = row.get(name)
    if value is None:
        return default
    return value if isinstance(value, bool) else _wrong(row, name, "true or false")


def text_list_field(row: Row, name: str) -> list[str]:
    """Return a list of texts; empty if it is absent."""
    value = row.get(name)
    if value is None:
        return []
    return list(value) if isinstance(value, list) else _wrong(row, name, "a list")


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
