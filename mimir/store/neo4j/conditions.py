"""Conditions and orders of a query as Cypher.

Values are always parameters. A name is part of the text only if the property is a promoted one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mimir.store.conditions import ORDERED, Condition, is_ordered
from mimir.store.neo4j.query_library import CypherText, join_texts, query
from mimir.store.protocol import Row, Value
from mimir.store.schema import PROMOTED, PROMOTED_NUMBER

_BY_INDEX = {"=": "is", "in": "is-among", ">": "is-more", ">=": "is-at-least"}


@dataclass(slots=True)
class CypherConditions:
    """Conditions that the server compares, and those that are compared here."""

    indexed: CypherText = field(default_factory=CypherText)
    """Conditions that an index can serve."""
    bound: dict[str, object] = field(default_factory=dict[str, object])
    """Parameters of everything that the server compares."""
    left: list[Condition] = field(default_factory=list[Condition])
    """Conditions that are compared here."""

    def holds(self, row: Row) -> bool:
        """Return whether a row meets the conditions that the server did not compare."""
        return all(is_ordered(row.get(each.name), each.sign, each.value) for each in self.left)


def conditions(wanted: Iterable[Condition]) -> CypherConditions:
    """Return Cypher for all conditions."""
    compiled = CypherConditions()
    pieces: list[CypherText] = []
    others: list[Mapping[str, object]] = []
    for each in wanted:
        sign, compared = _server_form(each)
        # The server orders some texts by UTF-16 units. If one side is ASCII, that is the order of code points too.
        if sign in ORDERED and isinstance(compared, str) and not compared.isascii():
            compiled.left.append(each)
            sign, compared = "there", None
        if sign in _BY_INDEX and (each.name == "id" or each.name in PROMOTED):
            pieces.append(query(_BY_INDEX[sign], property=each.name))
            compiled.bound[f"is_{each.name}"] = compared
        else:
            others.append({"name": each.name, "sign": sign, "value": compared})
    compiled.indexed = join_texts(pieces, "")
    compiled.bound["others"] = others
    return compiled


def order_by(order: Sequence[str]) -> CypherText | None:
    """Return the ORDER BY for numbers and ids, ties by id; None if a text is among them."""
    # The server cannot sort texts by code points.
    if any(name.lstrip("-") not in ("id", *PROMOTED_NUMBER) for name in order):
        return None
    whole = order if "id" in order or "-id" in order else [*order, "id"]
    terms = [
        query("order-down" if name[0] == "-" else "order-up", property=name.lstrip("-"))
        for name in whole
    ]
    return join_texts(terms, ", ")


def sort_rows(rows: Iterable[Row], order: Sequence[str]) -> list[Row]:
    """Sort rows as the protocol defines it: absent values first, ties by id."""
    found = sorted(rows, key=lambda row: str(row["id"]))
    for name in reversed(order):
        bare = name.lstrip("-")
        found.sort(key=lambda row, n=bare: _rank(row.get(n)), reverse=name[0] == "-")
    return found


def _server_form(wanted: Condition) -> tuple[str, object]:
    """Return the sign and the value that `others` of the queries compares."""
    match wanted.sign:
        case "=":
            return ("missing", None) if wanted.value is None else ("=", wanted.value)
        case "!=":
            return ("there", None) if wanted.value is None else ("!=", wanted.value)
        case "in":
            present = [option for option in wanted.options if option is not None]
            return ("in or missing" if len(present) < len(wanted.options) else "in", present)
        case sign:
            return sign, wanted.value


def _rank(given: Value) -> tuple[int, object]:
    """Return the place of a value among values of all types: absent, numbers, texts, lists."""
    match given:
        case None:
            return (0, 0)
        case bool() | int() | float():
            return (1, given)
        case str():
            return (2, given)
        case _:
            return (3, given)
