"""A transaction that writes: it asks the server only what it does not know, and sends what it changes together.

The store's lock is held from the first moment, so a row that was read stays as it is until this transaction changes it: it is kept here,
compared here, and changed here and there alike. What is asked about many rows or edges goes to the server, after all that waits.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from neo4j.exceptions import ConstraintError

from mimir.errors import StoreError
from mimir.store import schema
from mimir.store.neo4j.conditions import matches
from mimir.store.neo4j.query_library import CypherText, query
from mimir.store.neo4j.read_ops import ROWS_AT_ONCE, Neo4jReads, known_ids, row_of
from mimir.store.neo4j.status_labels import status
from mimir.store.neo4j.write_batch import Changes, WriteBatch
from mimir.store.protocol import Direction, Row, Where

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Record, Result


class Neo4jOps(Neo4jReads):
    """All verbs, inside one transaction that has the store's lock."""

    def __init__(self, transaction: "ManagedTransaction", store: str, now: str) -> None:
        """Begin; the arguments are those of `Neo4jReads`."""
        super().__init__(transaction, store, now)
        self._waiting = WriteBatch()
        self._known: dict[tuple[str, str], Row | None] = {}
        """Rows as they are in this transaction; None: it is not there."""
        self._changed = False
        self.run_asked = ""
        """Id of the last run whose row was asked for."""

    def know(self, label: str, id: str, found: "Record") -> None:
        """Take in a row that was read with the lock."""
        if schema.is_id(id):
            self._known[label, id] = row_of(found)

    def finish(self, door: str, token: str) -> None:
        """Send what waits, count the transaction, and leave its token at this process's door; nothing if nothing was changed."""
        if self._changed or self._waiting:
            self._send({"door": door, "token": token, "now": self._now})

    def get(self, label: str, id: str, /) -> Row | None:
        """Return one node, or None."""
        key = schema.label_name(label), id
        if label == schema.NodeLabel.RUN:
            self.run_asked = id
        if key not in self._known:
            self._settle(self._waiting.has(label, id))
            self._known[key] = super().get(label, id)
        self._must_go_on()
        return self._known[key]

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
        self._settle(self._waiting.has_label(label))
        rows = super().find(label, where, order=order, limit=limit, only=only)
        if only:
            return rows
        self._known.update({(label, str(row["id"])): row for row in rows})
        return rows

    def first_of(
        self, label: str, any_of: Sequence[Where], /, *, order: Sequence[str], limit: int
    ) -> list[Row]:
        """Return of each condition the first nodes."""
        self._settle(self._waiting.has_label(label))
        rows = super().first_of(label, any_of, order=order, limit=limit)
        self._known.update({(label, str(row["id"])): row for row in rows})
        return rows

    def counts(self, label: str, by: str, where: Where, /) -> dict[str, int]:
        """Count nodes by one property."""
        self._settle(self._waiting.has_label(label))
        return super().counts(label, by, where)

    def neighbours(self, id: str, types: Sequence[str], direction: Direction, /) -> list[str]:
        """Return ids one edge away."""
        self._settle(self._waiting.has_links)
        return super().neighbours(id, types, direction)

    def reach(
        self, id: str, types: Sequence[str], direction: Direction, depth: int | None, /
    ) -> list[str]:
        """Return ids within `depth` edges."""
        self._settle(self._waiting.has_links)
        return super().reach(id, types, direction, depth)

    def edges_among(self, ids: Sequence[str], /) -> list[tuple[str, str, str]]:
        """Return the edges between these nodes."""
        self._settle(self._waiting.has_links)
        return super().edges_among(ids)

    def labels_of(self, ids: Sequence[str], /) -> dict[str, str]:
        """Return the label of each of these nodes that is there."""
        self._settle(self._waiting.has_rows)
        return super().labels_of(ids)

    def search(self, label: str, text: str, limit: int, /) -> list[tuple[str, float]]:
        """Search a label's text."""
        self._settle(self._waiting.has_label(label))
        return super().search(label, text, limit)

    def dump(self) -> Iterator[tuple[str, Row] | tuple[str, str, str]]:
        """Yield every node, then every edge."""
        self._settle(bool(self._waiting))
        yield from super().dump()

    def upsert(self, label: str, rows: Sequence[Row], /) -> None:
        """Make nodes, or set properties of existing ones."""
        self._must_go_on()
        label = schema.label_name(label)
        for row in [schema.accept(row) for row in rows]:
            self._put(label, row)

    def link(self, type: str, pairs: Sequence[tuple[str, str]], /) -> None:
        """Make edges between nodes that are there."""
        self._must_go_on()
        kind = schema.edge_name(type)
        for source, target in pairs:
            self._settle(not self._waiting.has_room({}))
            unsure = [id for id in (source, target) if not self._is_there(id)]
            self._waiting.link(kind, (source, target), unsure)

    def patch(self, label: str, id: str, props: Row, /) -> bool:
        """Set properties of one node; False if it is not there."""
        self._must_go_on()
        label, new = schema.label_name(label), schema.accept(props, partly=True)
        if not schema.is_id(id):
            return False
        if (label, id) in self._known or self._waiting.has(label, id):
            if there := self.get(label, id) is not None:
                self._put(label, {**new, "id": id})
            return there
        text = query("patch", label=label, status=status(label, new))
        done = self._change(text, id=id, props=new).single(strict=True)
        return bool(done["number"])

    def patch_if(self, label: str, id: str, expect: Where, props: Row, /) -> Row | None:
        """Compare and set; the new row, or None if `expect` did not hold."""
        label, new = schema.label_name(label), schema.accept(props, partly=True)
        row = self.get(label, id)
        if not matches(row or {}, expect) or row is None:
            return None
        self._put(label, {**new, "id": id, "version": _next_version(row)})
        return self._known[label, id]

    def delete(self, label: str, ids: Sequence[str], /) -> int:
        """Delete nodes with their edges."""
        self._settle(bool(self._waiting))
        text, gone = query("delete", label=schema.label_name(label)), 0
        wanted = known_ids(ids)
        for start in range(0, len(wanted), ROWS_AT_ONCE):
            done = self._change(text, ids=wanted[start : start + ROWS_AT_ONCE])
            gone += int(done.single(strict=True)["number"])
        self._known.update(dict.fromkeys(((label, id) for id in wanted), None))
        return gone

    def _put(self, label: str, row: Changes) -> None:
        """Keep a node's changes until something depends on them."""
        id = cast("str", row["id"])
        self._settle(self._waiting.is_open_end(id) or not self._waiting.has_room(row))
        self._waiting.put(label, row)
        if (label, id) in self._known:
            merged = {**(self._known[label, id] or {}), **row}
            self._known[label, id] = {k: v for k, v in merged.items() if v is not None}

    def _settle(self, depends: bool) -> None:
        """Send what waits, if what comes next depends on it."""
        self._must_go_on()
        if depends and self._waiting:
            self._send(None)

    def _send(self, closing: Mapping[str, object] | None) -> None:
        statement = self._waiting.statement()
        text = statement.text(closing=closing is not None)
        try:
            answer = self._change(text, **statement.bound, **(closing or {})).single()
        except ConstraintError as error:
            raise _something_else(self._waiting) from error
        self._waiting.clear()
        if answer is None:
            raise StoreError("The store was removed from its database while it was in use.")
        statement.check(answer)

    def _change(self, text: CypherText, **bound: object) -> "Result":
        self._changed = True
        return self._run(text, **bound)

    def _is_there(self, id: str) -> bool:
        return any(
            self._known.get((label, id)) is not None or self._waiting.has(label, id)
            for label in schema.NodeLabel
        )


def _next_version(row: Row) -> int:
    version = row.get("version")
    return version + 1 if isinstance(version, int) else 1


def _something_else(waiting: WriteBatch) -> StoreError:
    ids, labels = waiting.ids(), " or ".join(waiting.labels())
    named = ", ".join(repr(id) for id in ids[:3])
    return StoreError(
        f"One of {named}{' …' if len(ids) > 3 else ''} cannot be a {labels}: it is something else."
    )
