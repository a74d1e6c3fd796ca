"""Changes of the embedded store: all verbs, inside one job of a write transaction.

New nodes, edges, long texts and the full-text index are written at once. What changes of a node beside its long texts waits in hand
(`kept`), for a run's row changes a dozen times in one transaction, and is written before a question could miss it, or by `write_out`
before the commit. Nobody else writes meanwhile, the write lock is held, so what is in hand is what there is.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import cast

from mimir.errors import StoreError
from mimir.store import schema
from mimir.store.protocol import Row, Value, Where
from mimir.store.schema import NodeLabel
from mimir.store.sqlite.conditions import conditions, held_by
from mimir.store.sqlite.node import (
    NOTHING,
    SELECT,
    StoredNode,
    already_has,
    new_node,
    node_of,
    pack_properties,
    with_changes,
    with_next_version,
)
from mimir.store.sqlite.node_cache import NodeCache
from mimir.store.sqlite.read_ops import SqliteReads, bind_ids

_INSERT = (
    f"INSERT INTO nodes(label, id, texts, props, {', '.join(schema.PROMOTED)}) "
    f"VALUES (?, ?, ?, ?{', ?' * len(schema.PROMOTED)}) ON CONFLICT (id) DO NOTHING"
)
_LINK = (
    "INSERT OR IGNORE INTO edges(source, type, target) SELECT ?1, ?2, ?3 "
    "WHERE EXISTS (SELECT 1 FROM nodes WHERE id = ?1) AND EXISTS (SELECT 1 FROM nodes WHERE id = ?3)"
)
_ONLY_ADDED = frozenset(
    (NodeLabel.EVENT, NodeLabel.EVIDENCE, NodeLabel.VERDICT, NodeLabel.ARTIFACT)
)
"""Labels whose nodes are hardly ever changed: a new one is not kept in hand."""


class SqliteOps(SqliteReads):
    """All verbs, for one job; if it fails, the whole transaction is to be rolled back."""

    def __init__(
        self, connection: sqlite3.Connection, now: Callable[[], str], kept: NodeCache
    ) -> None:
        super().__init__(connection, now)
        self._kept = kept

    def get(self, label: str, id: str, /) -> Row | None:
        """Return one node, or None."""
        node = self._node(label, id)
        return None if node is None else node.row()

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
        self._write_out(label)
        return super().find(label, where, order=order, limit=limit, only=only)

    def counts(self, label: str, by: str, where: Where, /) -> dict[str, int]:
        """Count nodes by one property."""
        self._write_out(label)
        return super().counts(label, by, where)

    def labels_of(self, ids: Sequence[str], /) -> dict[str, str]:
        """Return the label of each of these nodes that is there; what many share is asked for again by each."""
        known = self._kept.labels
        if others := [id for id in ids if id not in known]:
            known.update(super().labels_of(others))
        return {id: known[id] for id in sorted(ids) if id in known}

    def dump(self) -> Iterator[tuple[str, Row] | tuple[str, str, str]]:
        """Yield every node, then every edge."""
        self._write_out()
        yield from super().dump()

    def upsert(self, label: str, rows: Sequence[Row], /) -> None:
        """Make nodes, or set properties of existing ones."""
        self._check()
        label = schema.label_name(label)
        for row in rows:
            new = schema.accept(row)
            id = cast("str", new.pop("id"))
            node = self._kept.get(id)
            if node is None and self._make(label, id, new):
                continue
            node = node or self._read(id)
            if node is None or node.label != label:
                held = self.labels_of([id]).get(id)
                raise StoreError(f"{id!r} cannot be a {label}: it is a {held}.")
            if already_has(node, new):
                self._kept.put(node)  # what many share is said again by each
            else:
                self._set(node, new)

    def link(self, type: str, pairs: Sequence[tuple[str, str]], /) -> None:
        """Make edges between nodes that are there."""
        kind = schema.edge_name(type)
        for source, target in pairs:
            if self._run(_LINK, (source, kind, target)).rowcount != 1:
                doubtful = [id for id in (source, target) if self._kept.get(id) is None]
                known = self.labels_of(doubtful) if doubtful else {}
                for id in doubtful:
                    if id not in known:
                        raise StoreError(f"{source!r} {kind} {target!r}: there is no node {id!r}.")

    def patch(self, label: str, id: str, props: Row, /) -> bool:
        """Set properties of one node; False if it is not there."""
        new = schema.accept(props, partly=True)
        node = self._node(label, id)
        if node is not None:
            self._set(node, new)
        return node is not None

    def patch_if(self, label: str, id: str, expect: Where, props: Row, /) -> Row | None:
        """Compare and set; the new row, or None."""
        new = schema.accept(props, partly=True) if props else {}
        node = self._node(label, id)
        if not self._meets(node, expect) or node is None:
            return None
        if new or "version" in node.texts:
            new["version"] = node.next_version()
            return self._set(node, new).row()
        after = with_next_version(node)
        self._kept.put(after)
        return after.row()

    def delete(self, label: str, ids: Sequence[str], /) -> int:
        """Delete nodes with their edges."""
        sql = "SELECT key, id FROM nodes WHERE label = ? AND id IN (SELECT value FROM json_each(?))"
        found = self._all(sql, (schema.label_name(label), bind_ids(ids)))
        for key, id in cast("list[tuple[int, str]]", found):
            self._run("DELETE FROM texts WHERE node = ?", (key,))
            self._run("DELETE FROM edges WHERE source = ?1 OR target = ?1", (id,))
            if label in schema.SEARCHED:
                self._run("DELETE FROM found WHERE rowid = ?", (key,))
            self._run("DELETE FROM nodes WHERE key = ?", (key,))
            self._kept.drop(id)
        return len(found)

    def _write_out(self, label: str | None = None) -> None:
        self._check()
        write_out(self._connection, self._kept, label)

    def _node(self, label: str, id: str) -> StoredNode | None:
        """Return a node in hand, or read it; None if it is not there, or has another label."""
        self._check()
        node = self._kept.get(id)
        if node is not None and node.label == label:
            return node
        label = schema.label_name(label)
        return self._read(id, label) if node is None else None

    def _read(self, id: str, label: str | None = None) -> StoredNode | None:
        found = self._all(f"{SELECT}n.id = ?", (id,)) if schema.is_id(id) else []
        if not found or (label is not None and found[0][1] != label):
            return None
        texts: dict[str, str] = {}
        if found[0][3]:
            kept = self._all("SELECT name, value FROM texts WHERE node = ?", (found[0][0],))
            texts = dict(cast("list[tuple[str, str]]", kept))
        node = node_of(found[0], texts)
        self._kept.put(node)
        return node

    def _meets(self, node: StoredNode | None, expect: Where) -> bool:
        """Tell whether a node meets conditions; SQL is asked where it alone can tell."""
        meets = None if node is None else held_by(node, expect)
        if meets is None:
            asked = conditions(expect)  # refused even if there is nothing to compare
            if node is None:
                return False
            self._write_out(node.label)
            sql = f"SELECT 1 FROM nodes n WHERE n.key = ?{asked.text}"
            return bool(self._all(sql, (node.key, *asked.bound)))
        return meets

    def _make(self, label: str, id: str, new: Mapping[str, Value]) -> bool:
        """Make a node; False if the id is another one's."""
        node = new_node(label, id, new)
        columns, apart = node.columns, node.texts
        line = (
            label,
            id,
            len(apart),
            pack_properties(node.small),
            *map(columns.get, schema.PROMOTED),
        )
        inserted = self._run(_INSERT, line)
        if inserted.rowcount != 1:
            return False
        key = cast("int", inserted.lastrowid)
        self._keep_apart(key, apart)
        self._index(label, key, new)
        if label not in _ONLY_ADDED:
            self._kept.put(node._replace(key=key))
        return True

    def _set(self, node: StoredNode, new: Mapping[str, Value]) -> StoredNode:
        """Change a node; None removes."""
        after = with_changes(node, new)
        if node.texts is not after.texts:
            self._set_apart(node, after)
        self._index(node.label, node.key, new)
        self._kept.put(after)
        return after

    def _set_apart(self, node: StoredNode, after: StoredNode) -> None:
        """Change the long texts that differ."""
        for name in [n for n, text in node.texts.items() if after.texts.get(n) != text]:
            self._run("DELETE FROM texts WHERE node = ? AND name = ?", (node.key, name))
        fresh = {n: text for n, text in after.texts.items() if node.texts.get(n) != text}
        self._keep_apart(node.key, fresh)

    def _keep_apart(self, key: int, apart: Mapping[str, str]) -> None:
        for name, text in apart.items():
            self._run("INSERT INTO texts(node, name, value) VALUES (?, ?, ?)", (key, name, text))

    def _index(self, label: str, key: int, new: Mapping[str, Value]) -> None:
        """Keep the full-text index equal to the searched property."""
        name = schema.SEARCHED.get(label)
        if name is None or name not in new:
            return
        self._run("DELETE FROM found WHERE rowid = ?", (key,))
        text = new[name]
        if isinstance(text, str):
            plain = text.replace("\0", " ")
            self._run("INSERT INTO found(rowid, text) VALUES (?, ?)", (key, plain))


def write_out(connection: sqlite3.Connection, kept: NodeCache, label: str | None = None) -> None:
    """Write what waits in hand; of one label, if it is named."""
    for node in kept.unwritten(label):
        connection.execute(*_update(node))
        kept.put(node._replace(unwritten=None))


def _update(node: StoredNode) -> tuple[str, Sequence[str]]:
    """Return the statement that makes a node's line what it is, and what is bound in it."""
    sql, names = _setting(node.unwritten or NOTHING)
    values = map(node.columns.get, names)
    bound = (len(node.texts), pack_properties(node.small), *values, node.key)
    return sql, cast("Sequence[str]", bound)


@lru_cache(maxsize=1024)
def _setting(columns: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    """Name only columns that differ: the indexes of the others need no look."""
    names = tuple(name for name in schema.PROMOTED if name in columns)
    setters = "".join(f', "{name}" = ?' for name in names)
    return f"UPDATE nodes SET texts = ?, props = ?{setters} WHERE key = ?", names
