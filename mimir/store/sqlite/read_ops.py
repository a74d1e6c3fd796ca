"""Rows of the embedded store: the verbs that change nothing, over one connection inside one transaction.

Small properties of a node are one JSON object, so that adding a property needs no migration; long texts stand apart, so that
moving a status does not rewrite a prompt.
"""

import contextlib
import json
import re
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import cast

from mimir.errors import DamagedNode, StoreError
from mimir.store import schema
from mimir.store.protocol import Direction, Row, Value, Where, reachable_ids
from mimir.store.row_fields import object_field
from mimir.store.sqlite.conditions import SqlText, conditions, group_expressions, order_by
from mimir.store.sqlite.node import SELECT, Found, choice, part_of, row_of

_CHUNK = 500
_MOST_WORDS = 64
"""Words of a search that are looked for; a longer text is no better question."""

_LEGS: Mapping[Direction, tuple[tuple[str, str], ...]] = {
    "out": (("source", "target"),),
    "in": (("target", "source"),),
    "both": (("source", "target"), ("target", "source")),
}


class SqliteReads:
    """Verbs that change nothing. Lives as long as its transaction; used after that, it refuses."""

    def __init__(self, connection: sqlite3.Connection, now: Callable[[], str]) -> None:
        self._connection = connection
        self._clock = now
        self._now = ""
        self._over = False

    def end(self) -> None:
        """Refuse every further verb: the transaction is over."""
        self._over = True

    def now(self) -> str:
        """Return the transaction's time."""
        self._now = self._now or self._clock()
        return self._now

    def get(self, label: str, id: str, /) -> Row | None:
        """Return one node, or None."""
        found = self._nodes(label, SqlText(" AND n.id = ?", (id,))) if schema.is_id(id) else []
        return found[0] if found else None

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
        if limit is not None and limit <= 0:
            return []
        condition = conditions(where)
        end = order_by(order) + (f" LIMIT {int(limit)}" if limit is not None else "")
        asked = SqlText(condition.text + end, condition.bound)
        return self._nodes(label, asked, by_id="id" in where, only=only)

    def first_of(
        self, label: str, any_of: Sequence[Where], /, *, order: Sequence[str], limit: int
    ) -> list[Row]:
        """Return of each condition the first nodes, in no order."""
        found = (
            row for where in any_of for row in self.find(label, where, order=order, limit=limit)
        )
        return list({row["id"]: row for row in found}.values())

    def counts(self, label: str, by: str, where: Where, /) -> dict[str, int]:
        """Count nodes by one property."""
        condition = conditions(where)
        sql = f"SELECT {group_expressions(by)}, count(*) FROM nodes n WHERE {_of(label)}{condition.text} GROUP BY 1, 2"
        counted: dict[str, int] = {}
        for given, kind, number in self._all(sql, condition.bound):
            name = (
                cast("str", kind)
                if kind in ("true", "false")
                else ""
                if given is None
                else str(given)
            )
            counted[name] = counted.get(name, 0) + cast("int", number)
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
        these = bind_ids(ids)
        sql = (
            "SELECT source, type, target FROM edges WHERE source IN (SELECT value FROM json_each(?)) "
            "AND target IN (SELECT value FROM json_each(?)) ORDER BY source, type, target"
        )
        return [cast("tuple[str, str, str]", tuple(e)) for e in self._all(sql, (these, these))]

    def labels_of(self, ids: Sequence[str], /) -> dict[str, str]:
        """Return the label of each of these nodes that is there."""
        among = _among(ids)
        sql = f"SELECT id, label FROM nodes WHERE id {among.text} ORDER BY id"
        return {cast("str", i): cast("str", name) for i, name in self._all(sql, among.bound)}

    def search(self, label: str, text: str, limit: int, /) -> list[tuple[str, float]]:
        """Search a label's text; words are data: each is quoted, none can be an operator."""
        if schema.label_name(label) not in schema.SEARCHED:
            raise StoreError(f"{label!r} has no text that can be searched.")
        words = dict.fromkeys(re.findall(r"\w+", schema.well_formed(text).replace("\0", " ")))
        query = " OR ".join(f'"{word}"' for word in list(words)[:_MOST_WORDS])
        if not query or limit <= 0:
            return []
        sql = (
            "SELECT n.id, -bm25(found) FROM found JOIN nodes n ON n.key = found.rowid "
            "WHERE found MATCH ? AND n.label = ? ORDER BY bm25(found), n.id LIMIT ?"
        )
        return [
            (cast("str", i), cast("float", s)) for i, s in self._all(sql, (query, label, limit))
        ]

    def dump(self) -> Iterator[tuple[str, Row] | tuple[str, str, str]]:
        """Yield every node, then every edge."""
        for label in sorted(schema.NodeLabel):
            cursor = self._run(f"{SELECT}n.label = ? ORDER BY n.id", (label.value,))
            while page := self._page(cursor):
                for row in self._rows(page):
                    yield label.value, row
        cursor = self._run("SELECT source, type, target FROM edges ORDER BY type, source, target")
        while page := self._page(cursor):
            for edge in page:
                yield cast("tuple[str, str, str]", tuple(edge))

    def _check(self) -> None:
        if self._over:
            raise StoreError(
                "The transaction is over; what was read in it must be taken out as values."
            )

    def _run(self, sql: str, bound: Sequence[object] = ()) -> sqlite3.Cursor:
        if self._over:
            self._check()
        return self._connection.execute(sql, bound)

    def _all(self, sql: str, bound: Sequence[object] = ()) -> list[Found]:
        """Read lines whole. A damaged byte must reach the seals' check as text, not end the query: it is then read again."""
        try:
            return self._run(sql, bound).fetchall()
        except sqlite3.OperationalError as error:
            if hasattr(error, "sqlite_errorcode"):
                raise
        with self._leniently():
            return self._run(sql, bound).fetchall()

    def _page(self, cursor: sqlite3.Cursor) -> list[Found]:
        with self._leniently():
            return cursor.fetchmany(_CHUNK)

    @contextlib.contextmanager
    def _leniently(self) -> Generator[None]:
        """Decode what is no UTF-8 too: slower by a call of Python for each text."""
        self._connection.text_factory = _lenient
        try:
            yield
        finally:
            self._connection.text_factory = str

    def _nodes(
        self, label: str, condition: SqlText, *, by_id: bool = False, only: Sequence[str] = ()
    ) -> list[Row]:
        """Read nodes, or some properties of them; `by_id` keeps the planner from reading a whole label where ids are named."""
        where = f"{'+' if by_id else ''}{_of(label)}{condition.text}"
        if not only:
            return self._rows(self._all(SELECT + where, condition.bound))
        chosen = choice(only)
        try:
            found = self._all(chosen.select + where, condition.bound)
            rows = [part_of(f, chosen) for f in found]
        except (sqlite3.OperationalError, DamagedNode):  # reading all of them says which, and why
            return [object_field(row, only) for row in self._nodes(label, condition, by_id=by_id)]
        return self._with_texts(found, rows, only)

    def _rows(self, found: Sequence[Found]) -> list[Row]:
        return self._with_texts(found, [row_of(f) for f in found])

    def _with_texts(
        self, found: Sequence[Found], rows: Sequence[dict[str, Value]], only: Sequence[str] = ()
    ) -> list[Row]:
        """Add the texts kept apart; of some properties only where they are asked for."""
        apart = {cast("int", f[0]): row for f, row in zip(found, rows, strict=True) if f[3]}
        sql = "SELECT node, name, value FROM texts WHERE node IN (SELECT value FROM json_each(?))"
        sql += " AND name IN (SELECT value FROM json_each(?))" if only else ""
        for keys in _chunks(list(apart)):
            bound = (json.dumps(keys), json.dumps(list(only)))
            for node, name, text in self._all(sql, bound if only else bound[:1]):
                apart[cast("int", node)][cast("str", name)] = cast("str", text)
        return cast("list[Row]", rows)

    def _step(self, ids: Sequence[str], types: Sequence[str], direction: Direction) -> set[str]:
        among, kinds = _among(ids), _among([schema.edge_name(t) for t in types])
        only = f" AND type {kinds.text}" if types else ""
        bound = (*among.bound, *kinds.bound) if types else among.bound
        there: set[str] = set()
        for start, end in _LEGS[direction]:
            sql = f"SELECT {end} FROM edges WHERE {start} {among.text}{only}"
            there |= {cast("str", i) for (i,) in self._all(sql, bound)}
        return there


def _of(label: str) -> str:
    """Return the condition that a node has a label. It stands in the text, so that the planner sees which index is of this label."""
    return f"n.label = '{schema.label_name(label)}'"


def _among(ids: Sequence[str]) -> SqlText:
    """Return the condition to be one of these; of a single one, which is most often asked for, without a list to be read."""
    if len(ids) == 1 and schema.is_id(ids[0]):
        return SqlText("= ?", (ids[0],))
    return SqlText("IN (SELECT value FROM json_each(?))", (bind_ids(ids),))


def bind_ids(ids: Iterable[str]) -> str:
    """Return ids as one bound list; what cannot be an id is left out."""
    return json.dumps([id for id in ids if schema.is_id(id)])


def _chunks(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(keys), _CHUNK):
        yield keys[start : start + _CHUNK]


def _lenient(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
