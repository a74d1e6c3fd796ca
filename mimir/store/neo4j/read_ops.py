"""Rows of the Neo4j store: the verbs of `Reads` over one transaction."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from mimir.errors import StoreError
from mimir.store import schema
from mimir.store.neo4j.conditions import CypherConditions, conditions, names_of, order_by, sort_rows
from mimir.store.neo4j.query_library import CypherText, combine_queries, query, types
from mimir.store.protocol import Direction, Row, Value, Where, reachable_ids
from mimir.store.row_fields import object_field

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Record, Result

_LABELS = [label.value for label in schema.NodeLabel]
_TYPES = [edge.value for edge in schema.EdgeType]
_HIDDEN = "_store"
_TO_CLAIM = frozenset(f"is_{name}" for name in ("runId", "claimState", "priority"))
"""Parameters of a question that the index for claims answers."""
ROWS_AT_ONCE = 500
"""Of one statement that deletes."""
_MOST_WORDS = 64
_LONGEST_WORD = 250
"""Of a search; the index cuts longer ones."""
_STEPS: Mapping[Direction, str] = {"out": "step-out", "in": "step-in", "both": "step-both"}


class Neo4jReads:
    """Verbs that change nothing. Lives as long as its transaction; used after that, it refuses."""

    def __init__(self, transaction: "ManagedTransaction", store: str, now: str) -> None:
        """Begin.

        Args:
            transaction: The driver's.
            store: Which store of the database.
            now: Its time, for the whole transaction.
        """
        self._transaction = transaction
        self._store = store
        self._now = now
        self._over = False
        self.statements = 0
        """How many were made."""

    def end(self) -> None:
        """Refuse every further verb: the transaction is over."""
        self._over = True

    def now(self) -> str:
        """Return the server's time, as it was when the transaction began (a writing one: when it had the lock)."""
        self._must_go_on()
        return self._now

    def get(self, label: str, id: str, /) -> Row | None:
        """Return one node, or None."""
        text = query("get", label=schema.label_name(label))
        return _one(self._run(text, id=id)) if schema.is_id(id) else None

    def find(
        self,
        label: str,
        where: Where,
        /,
        *,
        order: Sequence[str] = (),
        limit: int | None = None,
        only: Sequence[str] = (),
    ) -> list[Row]:
        """Return nodes that match all of `where`."""
        names_of(order)
        label, wanted = schema.label_name(label), conditions(where)
        if limit is not None and limit <= 0:
            return []
        if limit is not None and not wanted.left:
            rows = self._first(label, wanted, order, limit)
        elif only and not wanted.left:
            rows = sort_rows(self._named(label, wanted, (*only, *order)), order)
        else:
            found = self._run(_asking("find", label, wanted), **wanted.bound)
            rows = sort_rows((row for row in _rows(found) if wanted.holds(row)), order)[:limit]
        return [object_field(row, only) for row in rows] if only else rows

    def first_of(
        self, label: str, any_of: Sequence[Where], /, *, order: Sequence[str], limit: int
    ) -> list[Row]:
        """Return of each condition the first nodes, in no order; those to claim by one statement."""
        names_of(order)
        wanted, by = [conditions(where) for where in any_of], order_by(order)
        to_claim = wanted and all(_is_to_claim(label, one) for one in wanted)
        if by is None or limit <= 0 or not to_claim:
            rows = [
                row for where in any_of for row in self.find(label, where, order=order, limit=limit)
            ]
        else:
            texts = [_asking("first-to-claim", label, one, order=by) for one in wanted]
            bound = {f"q{n}_{k}": v for n, one in enumerate(wanted) for k, v in one.bound.items()}
            rows = _rows(self._run(combine_queries(texts), limit=limit, **bound))
        return list({row["id"]: row for row in rows}.values())

    def counts(self, label: str, by: str, where: Where, /) -> dict[str, int]:
        """Count nodes by one property."""
        label, wanted = schema.label_name(label), conditions(where)
        (by,) = names_of([by])
        if wanted.left:
            values = [(row.get(by), 1) for row in self.find(label, where)]
        else:
            found = self._run(_asking("counts", label, wanted), by=by, **wanted.bound)
            values = [(cast("Value", r["value"]), cast("int", r["number"])) for r in found]
        counted: dict[str, int] = {}
        for value, number in values:
            counted[_text(value)] = counted.get(_text(value), 0) + number
        return counted

    def neighbours(self, id: str, types: Sequence[str], direction: Direction, /) -> list[str]:
        """Return ids one edge away."""
        return sorted(self._step([id], types, direction)) if schema.is_id(id) else []

    def reach(
        self, id: str, types: Sequence[str], direction: Direction, depth: int | None, /
    ) -> list[str]:
        """Return ids within `depth` edges, breadth first."""
        if not schema.is_id(id):
            return []
        return reachable_ids(id, depth, lambda ids: self._step(ids, types, direction))

    def edges_among(self, ids: Sequence[str], /) -> list[tuple[str, str, str]]:
        """Return the edges between these nodes."""
        found = self._run(query("edges-among"), ids=known_ids(ids))
        return sorted((str(r["source"]), str(r["type"]), str(r["target"])) for r in found)

    def labels_of(self, ids: Sequence[str], /) -> dict[str, str]:
        """Return the label of each of these nodes that is there."""
        found = self._run(query("labels-of"), ids=known_ids(ids), labels=_LABELS)
        return dict(sorted((str(r["id"]), str(r["label"])) for r in found))

    def search(self, label: str, text: str, limit: int, /) -> list[tuple[str, float]]:
        """Search a label's text; words are data: each is quoted, none can be an operator."""
        if schema.label_name(label) not in schema.SEARCHED:
            raise StoreError(f"{label!r} has no text that can be searched.")
        found = re.findall(r"\w+", schema.well_formed(text).replace("\0", " "))
        words = dict.fromkeys(word for word in found if len(word) <= _LONGEST_WORD)
        question = " OR ".join(f'"{word}"' for word in list(words)[:_MOST_WORDS])
        if not question or limit <= 0:
            return []
        hits = self._run(query("search", label=label), question=question, limit=limit)
        return [(str(r["id"]), float(r["score"])) for r in hits]

    def dump(self) -> Iterator[tuple[str, Row] | tuple[str, str, str]]:
        """Yield every node, then every edge."""
        for label in sorted(_LABELS):
            for record in self._run(query("dump-nodes", label=label)):
                yield label, _row(record)
        for record in self._run(query("dump-edges"), types=_TYPES):
            yield str(record["source"]), str(record["type"]), str(record["target"])

    def _must_go_on(self) -> None:
        if self._over:
            raise StoreError(
                "The transaction is over; what was read in it must be taken out as values."
            )

    def _run(self, text: CypherText, **bound: object) -> "Result":
        self._must_go_on()
        self.statements += 1
        # Made by the library of queries alone, from closed sets.
        return self._transaction.run(str(text), {"store": self._store, **bound})  # pyright: ignore[reportArgumentType]

    def _first(
        self, label: str, wanted: CypherConditions, order: Sequence[str], limit: int
    ) -> list[Row]:
        """Read the first nodes; the server cannot sort texts, so their ids are sorted here and only then their rows read."""
        by = order_by(order)
        if by is not None:
            name = "first-to-claim" if _is_to_claim(label, wanted) else "first"
            text = _asking(name, label, wanted, order=by)
            return _rows(self._run(text, limit=limit, **wanted.bound))
        keyed = self._named(label, wanted, order)
        ids = [row["id"] for row in sort_rows(keyed, order)[:limit]]
        rows = {row["id"]: row for row in _rows(self._run(query("these", label=label), ids=ids))}
        return [rows[id] for id in ids]

    def _named(self, label: str, wanted: CypherConditions, names: Sequence[str]) -> list[Row]:
        """Read of each node its id and these properties alone; a leading `-` of a name is no part of it."""
        keys = names_of(names)
        found = self._run(_asking("keys", label, wanted), names=keys, **wanted.bound)
        return [
            {
                **{k: v for k, v in zip(keys, cast("list[Value]", r["keys"]), strict=True) if v is not None},
                "id": str(r["id"]),
            }
            for r in found
        ]  # fmt: skip

    def _step(self, ids: Sequence[str], wanted: Sequence[str], direction: Direction) -> set[str]:
        text = query(_STEPS[direction], types=types(schema.edge_name(t) for t in wanted))
        return {str(r["id"]) for r in self._run(text, ids=ids)}


def _is_to_claim(label: str, wanted: CypherConditions) -> bool:
    """Tell whether the index for claims answers a question."""
    return label == schema.NodeLabel.TASK and not wanted.left and wanted.bound.keys() >= _TO_CLAIM


def _asking(name: str, label: str, wanted: CypherConditions, **pieces: CypherText) -> CypherText:
    """Return a query with its conditions; every kind of question has few texts, for the server plans each once."""
    others = query("others") if wanted.bound["others"] else CypherText()
    return query(name, label=label, indexed=wanted.indexed, others=others, **pieces)


def known_ids(ids: Sequence[str]) -> list[str]:
    """Return the ids that a node could have, each once."""
    return [id for id in dict.fromkeys(ids) if schema.is_id(id)]


def _rows(found: "Result") -> list[Row]:
    return [_row(record) for record in found]


def _one(found: "Result") -> Row | None:
    record = found.single()
    return None if record is None else _row(record)


def _row(record: "Record") -> Row:
    row = cast("dict[str, Value]", record["row"])
    row.pop(_HIDDEN, None)
    return row


def row_of(found: "Record") -> Row | None:
    """Return the row of a record, without what is the store's own; None if there is none."""
    return None if found["row"] is None else _row(found)


def _text(value: Value) -> str:
    """Return a value as counting names it."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        case _:
            return str(value)
