"""Read operations of the Neo4j store, over one transaction of the driver."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from mimir.store import schema
from mimir.store.conditions import Condition, parse, require_order
from mimir.store.neo4j.conditions import CypherConditions, conditions, order_by, sort_rows
from mimir.store.neo4j.query_library import CypherText, combine_queries, query, types
from mimir.store.protocol import Direction, Row, Value, Where
from mimir.store.row_fields import object_field
from mimir.store.unit_of_work import DumpItem, ReadUnit

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Record, Result

_LABELS = [label.value for label in schema.NodeLabel]
_TYPES = [edge.value for edge in schema.EdgeType]
_HIDDEN = "_store"
# Parameters of a query that the index for claims answers.
_TO_CLAIM = frozenset(f"is_{name}" for name in ("runId", "claimState", "priority"))
_STEPS: Mapping[Direction, str] = {"out": "step-out", "in": "step-in", "both": "step-both"}


class Neo4jReads(ReadUnit):
    """Read operations of one transaction."""

    # The full-text index cuts longer words.
    longest_word = 250

    def __init__(self, transaction: "ManagedTransaction", store: str, now: str) -> None:
        """Begin; `store` is the name of the store in the database, `now` its time."""
        super().__init__()
        self._transaction = transaction
        self._store = store
        self._now = now
        # Statements that were sent.
        self.statements = 0

    def now(self) -> str:
        """Return the server's time at the begin of the transaction, or when it got the lock."""
        if self._is_over:
            self._prepare()
        return self._now

    def get(self, label: str, id: str, /) -> Row | None:
        """Return one node; None if there is none."""
        text = query("get", label=schema.label_name(label))
        record = self._run(text, id=id).single() if schema.is_id(id) else None
        return None if record is None else _row(record)

    def first_of(
        self, label: str, any_of: Sequence[Where], /, *, order: Sequence[str], limit: int
    ) -> list[Row]:
        """Return the first nodes of each condition, in no order."""
        require_order(order)
        wanted, by = [conditions(parse(where)) for where in any_of], order_by(order)
        to_claim = wanted and all(_is_to_claim(label, each) for each in wanted)
        if by is None or limit <= 0 or not to_claim:
            return super().first_of(label, any_of, order=order, limit=limit)
        # Claims are the most frequent query: all of its conditions are one statement.
        self._prepare(label)
        texts = [_query_for("first-to-claim", label, each, order=by) for each in wanted]
        bound = {f"q{n}_{k}": v for n, each in enumerate(wanted) for k, v in each.bound.items()}
        rows = _rows(self._run(combine_queries(texts), limit=limit, **bound))
        return list({row["id"]: row for row in rows}.values())

    def _find(
        self,
        label: str,
        wanted: Sequence[Condition],
        order: Sequence[str],
        limit: int | None,
        only: Sequence[str],
    ) -> list[Row]:
        asked = conditions(wanted)
        if limit is not None and not asked.left:
            rows = self._first(label, asked, order, limit)
        elif only and not asked.left:
            rows = sort_rows(self._named(label, asked, (*only, *order)), order)
        else:
            found = _rows(self._run(_query_for("find", label, asked), **asked.bound))
            rows = sort_rows((row for row in found if asked.holds(row)), order)[:limit]
        return [object_field(row, only) for row in rows] if only else rows

    def _counts(
        self, label: str, by: str, wanted: Sequence[Condition]
    ) -> Iterator[tuple[str, int]]:
        asked = conditions(wanted)
        if asked.left:
            yield from ((_text(r.get(by)), 1) for r in self._find(label, wanted, (), None, ()))
            return
        for record in self._run(_query_for("counts", label, asked), by=by, **asked.bound):
            yield _text(cast("Value", record["value"])), cast("int", record["number"])

    def _step(self, ids: Sequence[str], kinds: Sequence[str], direction: Direction) -> set[str]:
        text = query(_STEPS[direction], types=types(kinds))
        return {str(record["id"]) for record in self._run(text, ids=ids)}

    def _edges(self, ids: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        for record in self._run(query("edges-among"), ids=ids):
            yield str(record["source"]), str(record["type"]), str(record["target"])

    def _labels(self, ids: Sequence[str]) -> Iterator[tuple[str, str]]:
        for record in self._run(query("labels-of"), ids=ids, labels=_LABELS):
            yield str(record["id"]), str(record["label"])

    def _search(self, label: str, question: str, limit: int) -> list[tuple[str, float]]:
        found = self._run(query("search", label=label), question=question, limit=limit)
        return [(str(record["id"]), float(record["score"])) for record in found]

    def _dump(self) -> Iterator[DumpItem]:
        for label in sorted(_LABELS):
            for record in self._run(query("dump-nodes", label=label)):
                yield label, _row(record)
        for record in self._run(query("dump-edges"), types=_TYPES):
            yield str(record["source"]), str(record["type"]), str(record["target"])

    def _run(self, text: CypherText, **bound: object) -> "Result":
        if self._is_over:
            self._prepare()
        self.statements += 1
        # The text is made by the query library alone, from closed sets.
        return self._transaction.run(str(text), {"store": self._store, **bound})  # pyright: ignore[reportArgumentType]

    def _first(
        self, label: str, wanted: CypherConditions, order: Sequence[str], limit: int
    ) -> list[Row]:
        by = order_by(order)
        if by is not None:
            name = "first-to-claim" if _is_to_claim(label, wanted) else "first"
            text = _query_for(name, label, wanted, order=by)
            return _rows(self._run(text, limit=limit, **wanted.bound))
        # The server cannot sort texts: the ids are sorted here, and only the first rows are read.
        keyed = self._named(label, wanted, order)
        ids = [row["id"] for row in sort_rows(keyed, order)[:limit]]
        rows = {row["id"]: row for row in _rows(self._run(query("these", label=label), ids=ids))}
        return [rows[id] for id in ids]

    def _named(self, label: str, wanted: CypherConditions, names: Sequence[str]) -> list[Row]:
        """Read the id and these properties of each node; names may have the sign of an order."""
        keys = require_order(names)
        found = self._run(_query_for("keys", label, wanted), names=keys, **wanted.bound)
        rows: list[Row] = []
        for record in found:
            values = zip(keys, cast("list[Value]", record["keys"]), strict=True)
            rows.append({**{k: v for k, v in values if v is not None}, "id": str(record["id"])})
        return rows


def _is_to_claim(label: str, wanted: CypherConditions) -> bool:
    """Return whether the index for claims answers a query."""
    return label == schema.NodeLabel.TASK and not wanted.left and wanted.bound.keys() >= _TO_CLAIM


def _query_for(name: str, label: str, wanted: CypherConditions, **pieces: CypherText) -> CypherText:
    """Return a query with its conditions."""
    # The server plans each text once, so all other conditions are one text with parameters.
    others = query("others") if wanted.bound["others"] else CypherText()
    return query(name, label=label, indexed=wanted.indexed, others=others, **pieces)


def _rows(found: "Result") -> list[Row]:
    return [_row(record) for record in found]


def _row(record: "Record") -> Row:
    row = cast("dict[str, Value]", record["row"])
    row.pop(_HIDDEN, None)
    return row


def row_of(found: "Record") -> Row | None:
    """Return the row of a record, without the store's own property; None if there is none."""
    return None if found["row"] is None else _row(found)


def _text(value: Value) -> str:
    """Return a value as `counts` names it."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        case _:
            return str(value)
