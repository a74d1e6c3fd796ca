"""Conditions and orders of a query as SQL.

A promoted property has a column of its own. A small property is a member of the JSON object in `props`. A long text is a row of `texts`.
"""

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mimir.store.conditions import Condition
from mimir.store.protocol import Value
from mimir.store.schema import LONG_TEXT, PROMOTED, pack, property_name


class SqlText(NamedTuple):
    """SQL with the values that are bound in it."""

    text: str
    bound: tuple[object, ...] = ()


_NEVER = SqlText("0")
_LISTED = "IN (SELECT value FROM json_each(?))"


def is_long(text: str) -> bool:
    """Return whether a text is stored in `texts`."""
    # At a NUL, the JSON functions of SQLite would cut the text.
    return len(text) >= LONG_TEXT or "\0" in text


def in_column(name: str) -> bool:
    """Return whether a property has a column of its own."""
    return name == "id" or name in PROMOTED


def conditions(wanted: Iterable[Condition]) -> SqlText:
    """Return SQL for all conditions, to be put after another one; empty if there are none."""
    parts = [_condition(each) for each in wanted]
    return SqlText(
        "".join(f" AND {part.text}" for part in parts),
        tuple(value for part in parts for value in part.bound),
    )


def order_by(order: Sequence[str]) -> str:
    """Return the ORDER BY for these names, ties by id."""
    terms = [_expression(name.lstrip("-")) + (" DESC" if name[0] == "-" else "") for name in order]
    if "id" not in order and "-id" not in order:
        terms.append("n.id")
    return " ORDER BY " + ", ".join(terms)


def group_expressions(name: str) -> str:
    """Return the expressions to count by: the value and its JSON type (NULL: a column)."""
    return f"{_expression(name)}, {_type(name)}"


def _condition(wanted: Condition) -> SqlText:
    name, sign, value, options = wanted
    match sign:
        case "=":
            return _equal_sql(name, value)
        case "!=":
            same = _equal_sql(name, value)
            return SqlText(f"({same.text}) IS NOT TRUE", same.bound)
        case "in":
            return _among_sql(name, options)
        case _:
            return _comparison_sql(name, sign, value)


def _expression(name: str) -> str:
    """Return the SQL of a property's value; NULL if it is absent."""
    return f'n."{name}"' if in_column(name) else f"coalesce({_small(name)}, {_long(name)})"


def _type(name: str) -> str:
    return "NULL" if in_column(name) else f"json_type(n.props, '$.{name}')"


def _small(name: str) -> str:
    return f"json_extract(n.props, '$.{property_name(name)}')"


def _long(name: str) -> str:
    return (
        f"(SELECT t.value FROM texts t WHERE t.node = n.key AND t.name = '{property_name(name)}')"
    )


def _equal_sql(name: str, wanted: Value) -> SqlText:
    if wanted is None:
        return SqlText(f"{_expression(name)} IS NULL")
    if in_column(name):
        can_be_equal = isinstance(wanted, str | int | float) and not isinstance(wanted, bool)
        return SqlText(f'n."{name}" = ?', (wanted,)) if can_be_equal else _NEVER
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


def _among_sql(name: str, options: Sequence[Value]) -> SqlText:
    # Short texts are bound as one list: a thousand of them take one place, and the index is used.
    short = [option for option in options if isinstance(option, str) and not is_long(option)]
    parts = [_equal_sql(name, o) for o in options if not isinstance(o, str) or is_long(o)]
    if short:
        text = f"({_small(name)} {_LISTED} AND {_type(name)} = 'text')"
        text = f'n."{name}" {_LISTED}' if in_column(name) else text
        parts.append(SqlText(text, (json.dumps(short),)))
    if len(parts) < 2:
        return parts[0] if parts else _NEVER
    joined = " OR ".join(part.text for part in parts)
    return SqlText(f"({joined})", tuple(value for part in parts for value in part.bound))


def _comparison_sql(name: str, sign: str, limit: Value) -> SqlText:
    expression = _expression(name)
    if isinstance(limit, str):
        is_text = "" if in_column(name) else f" AND {_type(name)} IS NOT 'array'"
        kinds = f"typeof({expression}) = 'text'{is_text}"
    else:
        kind = f"typeof({expression})" if in_column(name) else _type(name)
        kinds = f"{kind} IN ('integer', 'real')"
    return SqlText(f"({expression} {sign} ? AND {kinds})", (limit,))
