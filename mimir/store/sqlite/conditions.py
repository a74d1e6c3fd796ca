"""Conditions and orders of the store's protocol as SQL. Values are always bound; names are checked before they stand in the text.

A property stands in a column (promoted), in the JSON of the small ones, or, when it is a long text, in a table of its own. Comparing
is strict about types: true is not 1, a list is not its JSON text, and a text is never greater than a number.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, cast

from mimir.errors import StoreError
from mimir.store.protocol import Value, Where
from mimir.store.schema import LONG_TEXT, PROMOTED, pack, property_name, value


class SqlText(NamedTuple):
    """A piece of SQL with what is bound in it."""

    text: str
    bound: tuple[object, ...] = ()


class SqlProperties(Protocol):
    """What of a node is compared with conditions."""

    @property
    def columns(self) -> Mapping[str, Value]:
        """Promoted properties that are there."""
        ...

    @property
    def small(self) -> Mapping[str, Value]:
        """Small ones."""
        ...

    @property
    def texts(self) -> Mapping[str, str]:
        """Long texts, kept apart."""
        ...


_NEVER = SqlText("0")
_ORDERED = ("<", "<=", ">", ">=")


def is_long(text: str) -> bool:
    """Tell whether a text is kept apart: it is long, or holds a NUL, at which SQLite's JSON functions would cut it."""
    return len(text) >= LONG_TEXT or "\0" in text


def in_column(name: str) -> bool:
    """Tell whether a property has a column of its own."""
    return name == "id" or name in PROMOTED


def conditions(where: Where) -> SqlText:
    """Return the condition that all of `where` holds, ready to follow `AND`; empty for an empty `where`."""
    parts = [_condition(name, wanted) for name, wanted in where.items()]
    return SqlText(
        "".join(f" AND {part.text}" for part in parts),
        tuple(b for part in parts for b in part.bound),
    )


def held_by(node: SqlProperties, where: Where) -> bool | None:
    """Tell whether a node meets all of `where`, as SQL would; None: SQL must be asked."""
    answers = [_held(node, name, wanted) for name, wanted in where.items()]
    return None if None in answers else all(answers)


def order_by(order: Sequence[str]) -> str:
    """Return the ORDER BY for these names, ties by id."""
    terms = [_expression(name.lstrip("-")) + (" DESC" if name[0] == "-" else "") for name in order]
    if "id" not in order and "-id" not in order:
        terms.append("n.id")
    return " ORDER BY " + ", ".join(terms)


def group_expressions(name: str) -> str:
    """Return the two expressions to count by: the value, and its JSON type (NULL for a column)."""
    return f"{_expression(name)}, {_type(name)}"


def _condition(name: str, wanted: object) -> SqlText:
    if not isinstance(wanted, tuple):
        return _equal(name, value(wanted))
    match cast("tuple[object, ...]", wanted):
        case ("in", options) if isinstance(options, list | tuple | set | frozenset):
            return _among(name, [value(o) for o in cast("Iterable[object]", options)])
        case ("!=", other):
            same = _equal(name, value(other))
            return SqlText(f"({same.text}) IS NOT TRUE", same.bound)
        case (str() as sign, limit) if sign in _ORDERED:
            return _compared(name, sign, value(limit))
        case condition:
            raise StoreError(f"{str(condition)[:80]!r} is no condition for {name!r}.")


def _held(node: SqlProperties, name: str, wanted: object) -> bool | None:
    if not isinstance(wanted, tuple):
        return _is(node, name, value(wanted))
    match cast("tuple[object, ...]", wanted):
        case ("in", options) if isinstance(options, list | tuple | set | frozenset):
            answers = [_is(node, name, value(o)) for o in cast("Iterable[object]", options)]
            return None if None in answers else any(answers)
        case ("!=", other):
            same = _is(node, name, value(other))
            return None if same is None else not same
        case _:
            return None


def _is(node: SqlProperties, name: str, wanted: Value) -> bool | None:
    """Compare as `_equal` does. Ids, lists and fractions are left to SQL, which has ways of its own to read them."""
    if name == "id" or isinstance(wanted, list | float):
        return None
    if in_column(name):
        held = node.columns.get(name)
        return held is None if wanted is None else held == wanted and not isinstance(wanted, bool)
    held = node.small.get(property_name(name))
    match wanted:
        case None:
            return held is None and name not in node.texts
        case str() if is_long(wanted):
            return node.texts.get(name) == wanted
        case bool() | str():
            return type(held) is type(wanted) and held == wanted
        case int():
            return None if isinstance(held, float) else type(held) is int and held == wanted


def _expression(name: str) -> str:
    """Return the SQL of a property's value; NULL where it is not there."""
    if in_column(name):
        return f'n."{name}"'
    property_name(name)
    return f"coalesce({_small(name)}, {_long(name)})"


def _type(name: str) -> str:
    return "NULL" if in_column(name) else f"json_type(n.props, '$.{name}')"


def _small(name: str) -> str:
    return f"json_extract(n.props, '$.{property_name(name)}')"


def _long(name: str) -> str:
    return (
        f"(SELECT t.value FROM texts t WHERE t.node = n.key AND t.name = '{property_name(name)}')"
    )


def _equal(name: str, wanted: Value) -> SqlText:
    if wanted is None:
        return SqlText(f"{_expression(name)} IS NULL")
    if in_column(name):
        bindable = isinstance(wanted, str | int | float) and not isinstance(wanted, bool)
        return SqlText(f'n."{name}" = ?', (wanted,)) if bindable else _NEVER
    kind = _type(name)
    match wanted:
        case bool():
            return SqlText(f"{kind} = ?", ("true" if wanted else "false",))
        case str() if is_long(wanted):
            return SqlText(f"{_long(name)} = ?", (wanted,))
        case str():
            return SqlText(f"({_small(name)} = ? AND {kind} = 'text')", (wanted,))
        case list():
            return SqlText(f"({_small(name)} = ? AND {kind} = 'array')", (pack(wanted),))
        case _:
            return SqlText(f"({_small(name)} = ? AND {kind} IN ('integer', 'real'))", (wanted,))


def _among(name: str, options: Sequence[Value]) -> SqlText:
    """Short texts go in as one bound list, so that a thousand of them cost one place and the index is used."""
    short = [o for o in options if isinstance(o, str) and not is_long(o)]
    parts = [_equal(name, o) for o in options if not (isinstance(o, str) and not is_long(o))]
    if short:
        listed = "IN (SELECT value FROM json_each(?))"
        text = f'n."{name}" {listed}' if in_column(name) else (
            f"({_small(name)} {listed} AND {_type(name)} = 'text')"
        )  # fmt: skip
        parts.append(SqlText(text, (json.dumps(short),)))
    if not parts:
        return _NEVER
    if len(parts) == 1:
        return parts[0]
    joined = " OR ".join(part.text for part in parts)
    return SqlText(f"({joined})", tuple(b for part in parts for b in part.bound))


def _compared(name: str, sign: str, limit: Value) -> SqlText:
    expression = _expression(name)
    match limit:
        case bool() | list() | None:
            raise StoreError(f"{name!r} cannot be compared with {limit!r} by {sign!r}.")
        case str():
            is_array = "" if in_column(name) else f" AND {_type(name)} IS NOT 'array'"
            return SqlText(
                f"({expression} {sign} ? AND typeof({expression}) = 'text'{is_array})", (limit,)
            )
        case _:
            kinds = f"typeof({expression})" if in_column(name) else _type(name)
            return SqlText(f"({expression} {sign} ? AND {kinds} IN ('integer', 'real'))", (limit,))
