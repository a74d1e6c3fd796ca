"""Rows of the embedded store: the verbs of `Reads` and `Ops` over one connection inside one transaction.

Small properties of a node are one JSON object, so that adding a property needs no migration; long texts stand apart, so that
moving a status does not rewrite a prompt. What is changed is read first: nobody else writes meanwhile, the write lock is held.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import cast

from mimir.errors import DamagedNode, StoreError
from mimir.store import schema
from mimir.store.embedded.where import Sql, conditions, grouped, is_long, order_by
from mimir.store.protocol import Direction, Row, Value, Where
from mimir.store.reaching import reached

_COLUMNS = ", ".join(f'n."{name}"' for name in schema.PROMOTED)
_SELECT = f"SELECT n.key, n.label, n.id, n.texts, n.props, {_COLUMNS} FROM nodes n WHERE "
_INSERT = (
    f"INSERT INTO nodes(label, id, texts, props, {', '.join(schema.PROMOTED)}) "
    f"VALUES (?, ?, ?, ?{', ?' * len(schema.PROMOTED)}) ON CONFLICT (id) DO NOTHING"
)
_FIRST_COLUMN = 5
_CHUNK = 500
_MOST_WORDS = 64
"""Words of a search that are looked for; a longer text is no better question."""

_LEGS: Mapping[Direction, tuple[tuple[str, str], ...]] = {
    "out": (("source", "target"),),
    "in": (("target", "source"),),
    "both": (("source", "target"), ("target", "source")),
}

_Found = tuple[object, ...]


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
        found = self._nodes(label, Sql(" AND n.id = ?", (id,))) if schema.is_id(id) else []
        return found[0] if found else None

    def find(
        self, label: str, where: Where, /, *, order: Sequence[str] = (), limit: int | None = None
    ) -> list[Row]:
        """Return nodes that match all of `where`."""
        if limit is not None and limit <= 0:
            return []
        condition = conditions(where)
        end = order_by(order) + (f" LIMIT {int(limit)}" if limit is not None else "")
        return self._nodes(label, Sql(condition.text + end, condition.bound), by_id="id" in where)

    def counts(self, label: str, by: str, where: Where, /) -> dict[str, int]:
        """Count nodes by one property."""
        condition = conditions(where)
        sql = f"SELECT {grouped(by)}, count(*) FROM nodes n WHERE n.label = ?{condition.text} GROUP BY 1, 2"
        counted: dict[str, int] = {}
        for given, kind, number in self._run(sql, (schema.label_name(label), *condition.bound)):
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
        return reached(id, depth, lambda ids: self._step(ids, types, direction))

    def edges_among(self, ids: Sequence[str], /) -> list[tuple[str, str, str]]:
        """Return the edges between these nodes."""
        these = _listed(ids)
        sql = (
            "SELECT source, type, target FROM edges WHERE source IN (SELECT value FROM json_each(?)) "
            "AND target IN (SELECT value FROM json_each(?)) ORDER BY source, type, target"
        )
        return [cast("tuple[str, str, str]", tuple(e)) for e in self._run(sql, (these, these))]

    def labels_of(self, ids: Sequence[str], /) -> dict[str, str]:
        """Return the label of each of these nodes that is there."""
        sql = "SELECT id, label FROM nodes WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
        return {cast("str", i): cast("str", name) for i, name in self._run(sql, (_listed(ids),))}

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
            (cast("str", i), cast("float", s)) for i, s in self._run(sql, (query, label, limit))
        ]

    def dump(self) -> Iterator[tuple[str, Row] | tuple[str, str, str]]:
        """Yield every node, then every edge."""
        for label in sorted(schema.Label):
            cursor = self._run(f"{_SELECT}n.label = ? ORDER BY n.id", (label.value,))
            while page := cast("list[_Found]", cursor.fetchmany(_CHUNK)):
                for row in self._rows(page):
                    yield label.value, row
        for edge in self._run(
            "SELECT source, type, target FROM edges ORDER BY type, source, target"
        ):
            yield cast("tuple[str, str, str]", tuple(edge))

    def _run(self, sql: str, bound: Sequence[object] = ()) -> sqlite3.Cursor:
        if self._over:
            raise StoreError(
                "The transaction is over; what was read in it must be taken out as values."
            )
        return self._connection.execute(sql, cast("Sequence[str]", bound))

    def _nodes(self, label: str, condition: Sql, *, by_id: bool = False) -> list[Row]:
        """Read nodes; `by_id` keeps the planner from reading a whole label where ids are named."""
        bound = (schema.label_name(label), *condition.bound)
        plus = "+" if by_id else ""
        found = self._run(f"{_SELECT}{plus}n.label = ?{condition.text}", bound).fetchall()
        return self._rows(cast("list[_Found]", found))

    def _rows(self, found: Sequence[_Found]) -> list[Row]:
        rows = [_row(f) for f in found]
        apart = {cast("int", f[0]): row for f, row in zip(found, rows, strict=True) if f[3]}
        for keys in _chunks(list(apart)):
            sql = (
                "SELECT node, name, value FROM texts WHERE node IN (SELECT value FROM json_each(?))"
            )
            for node, name, text in self._run(sql, (json.dumps(keys),)):
                apart[cast("int", node)][cast("str", name)] = cast("str", text)
        return cast("list[Row]", rows)

    def _step(self, ids: Sequence[str], types: Sequence[str], direction: Direction) -> set[str]:
        kinds = json.dumps([schema.edge_name(t) for t in types])
        only = " AND type IN (SELECT value FROM json_each(?))" if types else ""
        there: set[str] = set()
        for start, end in _LEGS[direction]:
            sql = f"SELECT {end} FROM edges WHERE {start} IN (SELECT value FROM json_each(?)){only}"
            bound = (_listed(ids), kinds) if types else (_listed(ids),)
            there |= {cast("str", i) for (i,) in self._run(sql, bound)}
        return there


class SqliteOps(SqliteReads):
    """All verbs, inside one write transaction."""

    def upsert(self, label: str, rows: Sequence[Row], /) -> None:
        """Make nodes, or set properties of existing ones."""
        label = schema.label_name(label)
        for row in rows:
            new = schema.accept(row)
            id = cast("str", new.pop("id"))
            small, apart = _parted(new)
            columns = [new.get(name) for name in schema.PROMOTED]
            made = self._run(_INSERT, (label, id, len(apart), _packed(small), *columns))
            if made.rowcount != 1:
                self._set(self._existing(label, id), new)
                continue
            key = cast("int", made.lastrowid)
            self._keep(key, apart)
            self._index(label, key, new)

    def link(self, type: str, pairs: Sequence[tuple[str, str]], /) -> None:
        """Make edges between nodes that are there."""
        kind = schema.edge_name(type)
        sql = (
            "INSERT OR IGNORE INTO edges(source, type, target) SELECT ?1, ?2, ?3 "
            "WHERE EXISTS (SELECT 1 FROM nodes WHERE id = ?1) AND EXISTS (SELECT 1 FROM nodes WHERE id = ?3)"
        )
        for source, target in pairs:
            if self._run(sql, (source, kind, target)).rowcount != 1:
                there = self.labels_of([source, target])
                for id in (source, target):
                    if id not in there:
                        raise StoreError(f"{source!r} {kind} {target!r}: there is no node {id!r}.")

    def patch(self, label: str, id: str, props: Row, /) -> bool:
        """Set properties of one node; False if it is not there."""
        new = schema.accept(props, partly=True)
        found = self._one(label, id, Sql(""))
        if found is not None:
            self._set(found, new)
        return found is not None

    def patch_if(self, label: str, id: str, expect: Where, props: Row, /) -> Row | None:
        """Compare and set; the new row, or None."""
        new = schema.accept(props, partly=True)
        found = self._one(label, id, conditions(expect))
        if found is None:
            return None
        before = self._rows([found])[0]
        version = before.get("version")
        new["version"] = (version if isinstance(version, int) else 0) + 1
        self._set(found, new)
        return {k: v for k, v in {**before, **new}.items() if v is not None}

    def delete(self, label: str, ids: Sequence[str], /) -> int:
        """Delete nodes with their edges."""
        sql = "SELECT key, id FROM nodes WHERE label = ? AND id IN (SELECT value FROM json_each(?))"
        found = self._run(sql, (schema.label_name(label), _listed(ids))).fetchall()
        for key, id in found:
            self._run("DELETE FROM texts WHERE node = ?", (key,))
            self._run("DELETE FROM edges WHERE source = ?1 OR target = ?1", (id,))
            if label in schema.SEARCHED:
                self._run("DELETE FROM found WHERE rowid = ?", (key,))
            self._run("DELETE FROM nodes WHERE key = ?", (key,))
        return len(found)

    def _one(self, label: str, id: str, condition: Sql) -> _Found | None:
        if not schema.is_id(id):
            return None
        bound = (schema.label_name(label), id, *condition.bound)
        found = self._run(f"{_SELECT}n.label = ? AND n.id = ?{condition.text}", bound).fetchone()
        return cast("_Found | None", found)

    def _existing(self, label: str, id: str) -> _Found:
        found = self._one(label, id, Sql(""))
        if found is None:
            other = self.labels_of([id])
            raise StoreError(f"{id!r} cannot be a {label}: it is a {other.get(id)}.")
        return found

    def _set(self, found: _Found, new: Mapping[str, Value]) -> None:
        """Change a node that was just read; None removes."""
        key, label = cast("int", found[0]), cast("str", found[1])
        small = _props(found)
        fresh, apart = _parted(new)
        cold = [name for name in new if name not in schema.PROMOTED]
        for name in cold:
            small.pop(name, None)
        gone = self._forget(key, cold) if found[3] else 0
        self._keep(key, apart)
        columns = {n: new[n] for n in new if n in schema.PROMOTED}
        setters = "".join(f', "{name}" = ?' for name in columns)
        texts = cast("int", found[3]) - gone + len(apart)
        bound = (texts, _packed({**small, **fresh}), *columns.values(), key)
        self._run(f"UPDATE nodes SET texts = ?, props = ?{setters} WHERE key = ?", bound)
        self._index(label, key, new)

    def _keep(self, key: int, apart: Mapping[str, str]) -> None:
        for name, text in apart.items():
            self._run("INSERT INTO texts(node, name, value) VALUES (?, ?, ?)", (key, name, text))

    def _forget(self, key: int, names: Sequence[str]) -> int:
        """Remove those of these texts that are kept apart; how many there were."""
        kept = self._run("SELECT name FROM texts WHERE node = ?", (key,)).fetchall()
        gone = {cast("str", name) for (name,) in kept} & set(names)
        for name in gone:
            self._run("DELETE FROM texts WHERE node = ? AND name = ?", (key, name))
        return len(gone)

    def _index(self, label: str, key: int, new: Mapping[str, Value]) -> None:
        """Keep the full-text index equal to the searched property."""
        name = schema.SEARCHED.get(label)
        if name is None or name not in new:
            return
        self._run("DELETE FROM found WHERE rowid = ?", (key,))
        text = new[name]
        if isinstance(text, str):
            self._run(
                "INSERT INTO found(rowid, text) VALUES (?, ?)", (key, text.replace("\0", " "))
            )


def _parted(new: Mapping[str, Value]) -> tuple[dict[str, Value], dict[str, str]]:
    """Part what is not promoted: small values, and long texts that are kept apart."""
    small: dict[str, Value] = {}
    apart: dict[str, str] = {}
    for name, value in new.items():
        if name in schema.PROMOTED or value is None:
            continue
        if isinstance(value, str) and is_long(value):
            apart[name] = value
        else:
            small[name] = value
    return small, apart


def _packed(small: Mapping[str, Value]) -> str:
    return _WRITER.encode(small)


_WRITER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
"""Made once: `json.dumps` makes one for each call that says how."""


def _props(found: _Found) -> dict[str, Value]:
    try:
        value = json.loads(cast("str", found[4]))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise DamagedNode(
            f"{found[1]} {found[2]!r} cannot be read.", label=str(found[1]), id=str(found[2])
        )
    return cast("dict[str, Value]", value)


def _row(found: _Found) -> dict[str, Value]:
    row: dict[str, Value] = {"id": cast("str", found[2])}
    for name, value in zip(schema.PROMOTED, found[_FIRST_COLUMN:], strict=True):
        if value is not None:
            row[name] = cast("Value", value)
    row.update(_props(found))
    return row


def _listed(ids: Iterable[str]) -> str:
    return json.dumps([id for id in ids if schema.is_id(id)])


def _chunks(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(keys), _CHUNK):
        yield keys[start : start + _CHUNK]
