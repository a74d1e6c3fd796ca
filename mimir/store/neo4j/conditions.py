"""Conditions of the store's protocol as Cypher. Values are always parameters; a name stands in the text only if it is a promoted one.

The server compares texts by UTF-16 units in some places and by code points in others. So `<` and its kin are left over for `holds`,
which compares as every store does, where a text is more than ASCII.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from mimir.errors import StoreError
from mimir.store.neo4j.query_library import CypherText, join_texts, query
from mimir.store.protocol import Row, Value, Where
from mimir.store.schema import PROMOTED, PROMOTED_NUMBER, property_name, value

_BY_INDEX = {"=": "is", "in": "is-among", ">": "is-more", ">=": "is-at-least"}
_ORDERED = ("<", "<=", ">", ">=")


@dataclass(slots=True)
class CypherConditions:
    """What the server compares, and what is left to compare here."""

    indexed: CypherText = field(default_factory=CypherText)
    """Conditions that an index may serve."""
    bound: dict[str, object] = field(default_factory=dict[str, object])
    """Parameters of all that the server compares."""
    left: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """(name, sign, text)."""

    def holds(self, row: Row) -> bool:
        """Tell whether a row meets what the server did not compare."""
        return all(_ordered(row.get(name), sign, limit) for name, sign, limit in self.left)


def conditions(where: Where, *, indexed: bool = True) -> CypherConditions:
    """Return the condition that all of `where` holds.

    Args:
        where: As in the protocol.
        indexed: False: no index is wanted, the node is found already.

    Raises:
        StoreError: One of them is none, or its name cannot be that of a property.
    """
    made = CypherConditions()
    pieces: list[CypherText] = []
    others: list[Mapping[str, object]] = []
    for name, wanted in where.items():
        sign, compared = _condition(name, wanted)
        # Where one side is ASCII, both of the server's orders are ours.
        if sign in _ORDERED and isinstance(compared, str) and not compared.isascii():
            made.left.append((name, sign, compared))
            sign, compared = "there", None
        if indexed and sign in _BY_INDEX and (name == "id" or name in PROMOTED):
            pieces.append(query(_BY_INDEX[sign], property=name))
            made.bound[f"is_{name}"] = compared
        else:
            others.append({"name": name, "sign": sign, "value": compared})
    made.indexed = join_texts(pieces, "")
    made.bound["others"] = others
    return made


def matches(row: Row, where: Where) -> bool:
    """Tell whether a row that was read meets all conditions, as the server would.

    Raises:
        StoreError: One of them is none.
    """
    compared = [(row.get(name), *_condition(name, wanted)) for name, wanted in where.items()]
    return all(_meets(given, sign, wanted) for given, sign, wanted in compared)


def order_by(order: Sequence[str]) -> CypherText | None:
    """Return the ORDER BY of numbers and ids, ties by id; None: texts are among them, the server cannot sort those."""
    if any(name.lstrip("-") not in ("id", *PROMOTED_NUMBER) for name in order):
        return None
    whole = order if "id" in order or "-id" in order else [*order, "id"]
    terms = [
        query("order-down" if name[0] == "-" else "order-up", property=name.lstrip("-"))
        for name in whole
    ]
    return join_texts(terms, ", ")


def names_of(order: Sequence[str]) -> list[str]:
    """Return the properties that an order names, checked.

    Raises:
        StoreError: One of them cannot be the name of a property.
    """
    bare = [name.lstrip("-") for name in order]
    return [name if name == "id" else property_name(name) for name in bare]


def sort_rows(rows: Iterable[Row], order: Sequence[str]) -> list[Row]:
    """Sort rows as the protocol says: what is not there first, ties by id."""
    found = sorted(rows, key=lambda row: cast("str", row["id"]))
    for name in reversed(order):
        bare = name.lstrip("-")
        found.sort(key=lambda row, n=bare: _rank(row.get(n)), reverse=name[0] == "-")
    return found


def _condition(name: str, wanted: object) -> tuple[str, object]:
    """Return the sign and the value of a condition, checked."""
    if name != "id":
        property_name(name)
    if not isinstance(wanted, tuple):
        given = value(wanted)
        return ("missing", None) if given is None else ("=", given)
    match cast("tuple[object, ...]", wanted):
        case ("in", options) if isinstance(options, list | tuple | set | frozenset):
            listed = [value(option) for option in cast("Iterable[object]", options)]
            known = [option for option in listed if option is not None]
            return ("in or missing" if len(known) < len(listed) else "in", known)
        case ("!=", other):
            given = value(other)
            return ("there", None) if given is None else ("!=", given)
        case (str() as sign, limit) if sign in _ORDERED:
            given = value(limit)
            if isinstance(given, bool) or not isinstance(given, str | int | float):
                raise StoreError(f"{limit!r} cannot be compared with {sign}.")
            return sign, given
        case condition:
            raise StoreError(f"{str(condition)[:80]!r} is no condition for {name!r}.")


def _meets(given: Value, sign: str, wanted: object) -> bool:
    match sign:
        case "=":
            return _same(given, wanted)
        case "!=":
            return not _same(given, wanted)
        case "there":
            return given is not None
        case "missing":
            return given is None
        case "in" | "in or missing":
            known = any(_same(given, one) for one in cast("list[object]", wanted))
            return known or (sign == "in or missing" and given is None)
        case _:
            return _ordered(given, sign, wanted)


def _ordered(given: Value, sign: str, limit: object) -> bool:
    if _kind(given) != _kind(limit):
        return False
    here, there = cast("float", given), cast("float", limit)  # or two texts
    return {"<": here < there, "<=": here <= there, ">": here > there, ">=": here >= there}[sign]


def _same(given: Value, other: object) -> bool:
    return _kind(given) == _kind(other) and given == other


def _kind(given: object) -> str:
    """Return what a value may be compared with: True is not 1."""
    match given:
        case None:
            return "nothing"
        case bool():
            return "flag"
        case int() | float():
            return "number"
        case str():
            return "text"
        case _:
            return "list"


def _rank(given: Value) -> tuple[int, object]:
    """Put values of different types in some fixed order: nothing, numbers, texts, lists."""
    match given:
        case None:
            return (0, 0)
        case bool() | int() | float():
            return (1, given)
        case str():
            return (2, given)
        case _:
            return (3, given)
