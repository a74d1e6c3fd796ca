"""Write operations of the SQLite store, for one job of a write transaction.

New nodes, edges, long texts and the full-text index are written at once. Other changes of a node wait in the node cache until a
query depends on them, or until `write_changes` before the commit.
"""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from mimir.errors import StoreError
from mimir.store import schema
from mimir.store.conditions import matches, parse
from mimir.store.protocol import Row, Value, Where
from mimir.store.schema import NodeLabel
from mimir.store.sqlite.node import (
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
from mimir.store.sqlite.query_library import sql
from mimir.store.sqlite.read_ops import SqliteReads, bind_ids
from mimir.store.unit_of_work import next_version

_INSERT = sql(
    "insert-node", columns=", ".join(schema.PROMOTED), places=", ?" * len(schema.PROMOTED)
)
# Nodes of these labels are seldom changed: a new one is not cached.
_ONLY_ADDED = frozenset(
    (NodeLabel.EVENT, NodeLabel.EVIDENCE, NodeLabel.VERDICT, NodeLabel.ARTIFACT)
)


class SqliteOps(SqliteReads):
    """All operations of one job; if it fails, the whole transaction must be rolled back."""

    def __init__(
        self, connection: sqlite3.Connection, now: Callable[[], str], cache: NodeCache
    ) -> None:
        super().__init__(connection, now)
        self._cache = cache

    def get(self, label: str, id: str, /) -> Row | None:
        """Return one node; None if there is none."""
        node = self._node(label, id)
        return None if node is None else node.row()

    def upsert(self, label: str, rows: Sequence[Row], /) -> None:
        """Add nodes, or set properties of existing ones."""
        self._prepare()
        label = schema.label_name(label)
        for row in rows:
            new = schema.accept(row)
            id = str(new.pop("id"))
            node = self._cache.get(id)
            if node is None and self._insert(label, id, new):
                continue
            node = node or self._read(id)
            if node is None or node.label != label:
                held = self.labels_of([id]).get(id)
                raise StoreError(f"{id!r} cannot be a {label}: it is a {held}.")
            if already_has(node, new):
                # Many attempts write the same shared node, such as a preamble.
                self._cache.put(node)
            else:
                self._set(node, new)

    def link(self, type: str, pairs: Sequence[tuple[str, str]], /) -> None:
        """Add edges between nodes that exist."""
        kind = schema.edge_name(type)
        for source, target in pairs:
            if self._run(sql("link"), (source, kind, target)).rowcount == 1:
                continue
            # Nothing was added: the edge exists already, or one of its ends does not.
            unsure = [id for id in (source, target) if self._cache.get(id) is None]
            known = self.labels_of(unsure) if unsure else {}
            for id in unsure:
                if id not in known:
                    raise StoreError(f"{source!r} {kind} {target!r}: there is no node {id!r}.")

    def patch(self, label: str, id: str, props: Row, /) -> bool:
        """Set properties of one node; False if there is none."""
        new = schema.accept(props, partly=True)
        node = self._node(label, id)
        if node is not None:
            self._set(node, new)
        return node is not None

    def patch_if(self, label: str, id: str, expect: Where, props: Row, /) -> Row | None:
        """Compare and set; return the new row, or None if `expect` does not hold."""
        new = schema.accept(props, partly=True) if props else {}
        node, wanted = self._node(label, id), parse(expect)
        if node is None or not matches(node.get, wanted):
            return None
        if new or "version" in node.texts:
            new["version"] = next_version(node.small.get("version"))
            return self._set(node, new).row()
        after = with_next_version(node)
        self._cache.put(after)
        return after.row()

    def delete(self, label: str, ids: Sequence[str], /) -> int:
        """Delete nodes with their edges; return how many existed."""
        found = self._all(sql("select-keys"), (schema.label_name(label), bind_ids(ids)))
        for key, id in found:
            self._run(sql("delete-texts"), (key,))
            self._run(sql("delete-edges"), (id,))
            if label in schema.SEARCHED:
                self._run(sql("unindex"), (key,))
            self._run(sql("delete-node"), (key,))
            self._cache.drop(id)
        return len(found)

    def _prepare(self, label: str = "", *, nodes: bool = False, links: bool = False) -> None:
        super()._prepare()
        # Labels and edges are written at once; only queries of properties depend on waiting changes.
        if label or (nodes and links):
            write_changes(self._connection, self._cache, label or None)

    def _labels(self, ids: Sequence[str]) -> Iterable[tuple[str, str]]:
        known = self._cache.labels
        if others := [id for id in ids if id not in known]:
            known.update(super()._labels(others))
        return [(id, known[id]) for id in ids if id in known]

    def _node(self, label: str, id: str) -> StoredNode | None:
        """Return a node of the label, cached or read; None if there is none."""
        if self._is_over:
            self._prepare()
        node = self._cache.get(id)
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
            texts = dict(self._all(sql("texts-of-node"), (found[0][0],)))
        node = node_of(found[0], texts)
        self._cache.put(node)
        return node

    def _insert(self, label: str, id: str, new: Mapping[str, Value]) -> bool:
        """Add a node; False if the id exists."""
        node = new_node(label, id, new)
        columns, long = map(node.columns.get, schema.PROMOTED), node.texts
        inserted = self._run(_INSERT, (label, id, len(long), pack_properties(node.small), *columns))
        if inserted.rowcount != 1:
            return False
        key = inserted.lastrowid or 0
        self._insert_texts(key, long)
        self._index(label, key, new)
        if label not in _ONLY_ADDED:
            self._cache.put(node._replace(key=key))
        return True

    def _set(self, node: StoredNode, new: Mapping[str, Value]) -> StoredNode:
        """Change a node; None removes a property."""
        after = with_changes(node, new)
        if node.texts is not after.texts:
            old = node.texts.items()
            for name in [name for name, text in old if after.texts.get(name) != text]:
                self._run(sql("delete-text"), (node.key, name))
            fresh = {n: text for n, text in after.texts.items() if node.texts.get(n) != text}
            self._insert_texts(node.key, fresh)
        self._index(node.label, node.key, new)
        self._cache.put(after)
        return after

    def _insert_texts(self, key: int, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            self._run(sql("insert-text"), (key, name, text))

    def _index(self, label: str, key: int, new: Mapping[str, Value]) -> None:
        """Keep the full-text index equal to the searched property."""
        # A NUL would end the text for the index.
        name = schema.SEARCHED.get(label)
        if name is None or name not in new:
            return
        self._run(sql("unindex"), (key,))
        text = new[name]
        if isinstance(text, str):
            self._run(sql("index"), (key, text.replace("\0", " ")))


def write_changes(
    connection: sqlite3.Connection, cache: NodeCache, label: str | None = None
) -> None:
    """Write the changes that wait in the cache; of one label if given."""
    for node in cache.unwritten(label):
        connection.execute(*_update(node))
        cache.put(node._replace(unwritten=None))


def _update(node: StoredNode) -> tuple[str, tuple[Value, ...]]:
    """Return the statement that writes a node, with its bound values."""
    text, names = _update_text(node.unwritten or frozenset[str]())
    values = map(node.columns.get, names)
    return text, (len(node.texts), pack_properties(node.small), *values, node.key)


@lru_cache(maxsize=1024)
def _update_text(columns: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    # Columns that did not change are left out, so their indexes are not touched.
    names = tuple(name for name in schema.PROMOTED if name in columns)
    return sql("update-node", columns="".join(f', "{name}" = ?' for name in names)), names
