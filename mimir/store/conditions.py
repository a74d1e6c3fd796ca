"""Conditions of a query: parsed and compared in memory; each store translates them."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, cast

from mimir.errors import StoreError
from mimir.store.protocol import Value, Where
from mimir.store.schema import property_name, value

ORDERED = ("<", "<=", ">", ">=")


class Condition(NamedTuple):
    """Comparison of one property."""

    name: str
    sign: str
    """`=`, `!=`, `in`, `<`, `<=`, `>` or `>=`."""
    value: Value = None
    """None: the property is absent."""
    options: tuple[Value, ...] = ()
    """Of the sign `in`."""


def parse(where: Where) -> list[Condition]:
    """Return the conditions of a query, checked.

    Raises:
        StoreError: A name or a condition is invalid.
    """
    return [_condition(name, wanted) for name, wanted in where.items()]


def require_order(order: Sequence[str]) -> list[str]:
    """Return the properties that an order names, without its signs.

    Raises:
        StoreError: A name is not that of a property.
    """
    return [_require_name(name.lstrip("-")) for name in order]


def matches(value_of: Callable[[str], Value], wanted: Iterable[Condition]) -> bool:
    """Return whether the properties of a node meet all conditions."""
    return all(_is_met(value_of(each.name), each) for each in wanted)


def is_ordered(given: Value, sign: str, limit: Value) -> bool:
    """Return whether two numbers, or two texts, are in this order."""
    # Numbers and texts are never in an order, as in every store.
    if _kind(given) != _kind(limit):
        return False
    here, there = cast("float", given), cast("float", limit)  # or two texts
    return {"<": here < there, "<=": here <= there, ">": here > there, ">=": here >= there}[sign]


def _is_met(given: Value, wanted: Condition) -> bool:
    match wanted.sign:
        case "=":
            return _is_same(given, wanted.value)
        case "!=":
            return not _is_same(given, wanted.value)
        case "in":
            return any(_is_same(given, option) for option in wanted.options)
        case _:
            return is_ordered(given, wanted.sign, wanted.value)


def _condition(name: str, wanted: object) -> Condition:
    _require_name(name)
    if not isinstance(wanted, tuple):
        return Condition(name, "=", value(wanted))
    match cast("tuple[object, ...]", wanted):
        case ("in", options) if isinstance(options, list | tuple | set | frozenset):
            listed = tuple(value(option) for option in cast("Iterable[object]", options))
            return Condition(name, "in", options=listed)
        case ("!=", other):
            return Condition(name, "!=", value(other))
        case (str() as sign, limit) if sign in ORDERED:
            given = value(limit)
            if isinstance(given, bool) or not isinstance(given, str | int | float):
                raise StoreError(f"{name!r} cannot be compared with {limit!r} by {sign!r}.")
            return Condition(name, sign, given)
        case condition:
            raise StoreError(f"{str(condition)[:80]!r} is not a condition for {name!r}.")


def _require_name(name: str) -> str:
    return name if name == "id" else property_name(name)


def _is_same(given: Value, other: Value) -> bool:
    return _kind(given) == _kind(other) and given == other


def _kind(given: object) -> str:
    """Return the kind of values that a value may be compared with."""
    match given:
        case None:
            return "nothing"
        case bool():  # before numbers: to Python, True equals 1
            return "flag"
        case int() | float():
            return "number"
        case str():
            return "text"
        case _:
            return "list"
