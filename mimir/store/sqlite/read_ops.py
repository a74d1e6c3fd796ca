"""Read operations of the SQLite store, over one connection inside one transaction."""

import contextlib
import json
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mimir.domain.clock import Clock, stamp
from mimir.errors import DamagedNode
from mimir.store import schema
from mimir.store.conditions import Condition
from mimir.store.protocol import Direction, ReadOps, Row, Value
from mimir.store.row_fields import object_field
from mimir.store.sqlite import database_file
from mimir.store.sqlite.conditions import SqlText, conditions, group_expressions, order_by
from mimir.store.sqlite.node import SELECT, Found, part_of, row_of, select_properties
from mimir.store.sqlite.query_library import sql
from mimir.store.unit_of_work import DumpItem, ReadUnit, known_ids

_CHUNK = 500
_LEGS: Mapping[Direction, tuple[tuple[str, str], ...]] = {
    "out": (("source", "target"),),
    "in": (("target", "source"),),
    "both": (("source", "target"), ("target", "source")),
}


class SqliteReads(ReadUnit):
    """Read operations of one transaction."""

    def __init__(self, connection: sqlite3.Connection, now: Callable[[], str]) -> None:
        super().__init__()
        self._connection = connection
        self._clock = now
        self._now = ""

    def now(self) -> str:
        """Return the transaction's time."""
        self._now = self._now or self._clock()
        return self._now

    def get(self, label: str, id: str, /) -> Row | None:
        """Return one node; None if there is none."""
        found = self._nodes(label, SqlText(" AND n.id = ?", (id,))) if schema.is_id(id) else []
        return found[0] if found else None

    def _find(
        self,
        label: str,
        wanted: Sequence[Condition],
        order: Sequence[str],
        limit: int | None,
        only: Sequence[str],
    ) -> list[Row]:
        condition = conditions(wanted)
        end = order_by(order) + (f" LIMIT {int(limit)}" if limit is not None else "")
        asked = SqlText(condition.text + end, condition.bound)
        names_ids = any(each.name == "id" for each in wanted)
        return self._nodes(label, asked, by_id=names_ids, only=only)

    def _counts(
        self, label: str, by: str, wanted: Sequence[Condition]
    ) -> Iterator[tuple[str, int]]:
        condition = conditions(wanted)
        where = _label_condition(label) + condition.text
        text = sql("count-nodes", expressions=group_expressions(by), condition=where)
        for given, kind, number in self._all(text, condition.bound):
            name = "" if given is None else str(given)
            yield str(kind) if kind in ("true", "false") else name, number

    def _step(self, ids: Sequence[str], kinds: Sequence[str], direction: Direction) -> set[str]:
        among, types = _among_ids(ids), _among_ids(kinds)
        only = f" AND type {types.text}" if kinds else ""
        bound = (*among.bound, *types.bound) if kinds else among.bound
        found: set[str] = set()
        for start, end in _LEGS[direction]:
            text = f"SELECT {end} FROM edges WHERE {start} {among.text}{only}"
            found.update(id for (id,) in self._all(text, bound))
        return found

    def _edges(self, ids: Sequence[str]) -> list[tuple[str, str, str]]:
        return self._all(sql("edges-among"), (json.dumps(ids),))

    def _labels(self, ids: Sequence[str]) -> Iterable[tuple[str, str]]:
        among = _among_ids(ids)
        return self._all(f"SELECT id, label FROM nodes WHERE id {among.text}", among.bound)

    def _search(self, label: str, question: str, limit: int) -> list[tuple[str, float]]:
        return self._all(sql("search"), (question, label, limit))

    def _dump(self) -> Iterator[DumpItem]:
        for label in sorted(schema.NodeLabel):
            cursor = self._run(f"{SELECT}n.label = ? ORDER BY n.id", (label.value,))
            while page := self._page(cursor):
                for row in self._rows(page):
                    yield label.value, row
        cursor = self._run(sql("all-edges"))
        while page := self._page(cursor):
            for edge in page:
                source, kind, target = edge
                yield source, kind, target

    def _run(self, text: str, bound: Sequence[object] = ()) -> sqlite3.Cursor:
        if self._is_over:
            self._prepare()
        return self._connection.execute(text, bound)

    def _all(self, text: str, bound: Sequence[object] = ()) -> list[Found]:
        """Return all lines of a query."""
        try:
            return self._run(text, bound).fetchall()
        except sqlite3.OperationalError as error:
            if hasattr(error, "sqlite_errorcode"):
                raise
        # A damaged byte must not end the query: it must reach the check of the seals as text.
        with self._lenient_text():
            return self._run(text, bound).fetchall()

    def _page(self, cursor: sqlite3.Cursor) -> list[Found]:
        with self._lenient_text():
            return cursor.fetchmany(_CHUNK)

    @contextlib.contextmanager
    def _lenient_text(self) -> Generator[None]:
        """Decode text that is not UTF-8 too; slower, because each text is a call of Python."""
        self._connection.text_factory = _decode
        try:
            yield
        finally:
            self._connection.text_factory = str

    def _nodes(
        self, label: str, condition: SqlText, *, by_id: bool = False, only: Sequence[str] = ()
    ) -> list[Row]:
        """Read nodes, or some of their properties."""
        # The `+` keeps the planner from reading a whole label if the query names ids.
        where = f"{'+' if by_id else ''}{_label_condition(label)}{condition.text}"
        if not only:
            return self._rows(self._all(SELECT + where, condition.bound))
        chosen = select_properties(only)
        try:
            found = self._all(chosen.select + where, condition.bound)
            rows = [part_of(line, chosen) for line in found]
        except (sqlite3.OperationalError, DamagedNode):
            # Reading whole nodes tells which one is damaged, and why.
            return [object_field(row, only) for row in self._nodes(label, condition, by_id=by_id)]
        return self._with_texts(found, rows, only)

    def _rows(self, found: Sequence[Found]) -> list[Row]:
        return self._with_texts(found, [row_of(line) for line in found])

    def _with_texts(
        self, found: Sequence[Found], rows: Sequence[dict[str, Value]], only: Sequence[str] = ()
    ) -> list[Row]:
        """Add the long texts; of some properties only if they are asked for."""
        by_key = {f[0]: row for f, row in zip(found, rows, strict=True) if f[3]}
        names = (json.dumps(list(only)),) if only else ()
        text = sql("select-named-texts" if only else "select-texts")
        keys = list(by_key)
        for start in range(0, len(keys), _CHUNK):
            bound = (json.dumps(keys[start : start + _CHUNK]), *names)
            for node, name, long in self._all(text, bound):
                by_key[node][name] = long
        return list(rows)


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _label_condition(label: str) -> str:
    # Part of the text, so that the planner sees which index belongs to the label.
    return f"n.label = '{schema.label_name(label)}'"


def _among_ids(ids: Sequence[str]) -> SqlText:
    # A single id is the usual case; without a list it is found faster.
    if len(ids) == 1 and schema.is_id(ids[0]):
        return SqlText("= ?", (ids[0],))
    return SqlText("IN (SELECT value FROM json_each(?))", (bind_ids(ids),))


def bind_ids(ids: Iterable[str]) -> str:
    """Return ids as one bound list, without those that no node can have."""
    return json.dumps(known_ids(ids))


@contextlib.contextmanager
def view_file(path: Path, clock: Clock) -> Generator[ReadOps]:
    """Open an existing store for the reads of the block.

    Raises:
        StoreError: The file is foreign, damaged or of a newer schema.
        Paused: Another process holds it.
    """
    database_file.prepare(path)
    try:
        with contextlib.closing(database_file.connect(path)) as connection:
            reads = SqliteReads(connection, lambda: stamp(clock.now()))
            connection.execute("BEGIN")
            yield reads
            reads.end()
    except sqlite3.Error as error:
        raise database_file.problem(error, path) from error
