"""Write operations of the Neo4j store, inside one transaction that holds the store's lock.

Because of the lock, a row stays as it was read until this transaction changes it. So it is kept, compared and changed here, and the
changes are sent together before a query depends on them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from neo4j.exceptions import ConstraintError

from mimir.errors import StoreError
from mimir.store import schema
from mimir.store.conditions import Condition, matches, parse
from mimir.store.neo4j.query_library import CypherText, query
from mimir.store.neo4j.read_ops import Neo4jReads, row_of
from mimir.store.neo4j.status_labels import status
from mimir.store.neo4j.write_batch import ROWS_AT_ONCE, Changes, WriteBatch
from mimir.store.protocol import Row, Where
from mimir.store.unit_of_work import known_ids, next_version

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Record, Result


class Neo4jOps(Neo4jReads):
    """All operations of one transaction."""

    def __init__(self, transaction: "ManagedTransaction", store: str, now: str) -> None:
        """Begin; the arguments are those of `Neo4jReads`."""
        super().__init__(transaction, store, now)
        self._waiting = WriteBatch()
        # Rows as they are in this transaction. None: there is no such node.
        self._known: dict[tuple[str, str], Row | None] = {}
        self._changed = False
        # Id of the run that was read last.
        self.run_asked = ""

    def know(self, label: str, id: str, found: "Record") -> None:
        """Keep a row that was read together with the lock."""
        # The id comes from a setting or a plan, so it is checked.
        if schema.is_id(id):
            self._known[label, id] = row_of(found)

    def finish(self, door: str, token: str) -> None:
        """Send the waiting changes, and count the transaction; nothing if nothing was changed."""
        if self._changed or self._waiting:
            self._send({"door": door, "token": token, "now": self._now})

    def get(self, label: str, id: str, /) -> Row | None:
        """Return one node; None if there is none."""
        key = schema.label_name(label), id
        if label == schema.NodeLabel.RUN:
            self.run_asked = id
        if key not in self._known:
            self._settle(self._waiting.has(label, id))
            self._known[key] = super().get(label, id)
        super()._prepare()
        return self._known[key]

    def first_of(
        self, label: str, any_of: Sequence[Where], /, *, order: Sequence[str], limit: int
    ) -> list[Row]:
        """Return the first nodes of each condition, in no order."""
        return self._keep(label, super().first_of(label, any_of, order=order, limit=limit))

    def upsert(self, label: str, rows: Sequence[Row], /) -> None:
        """Add nodes, or set properties of existing ones."""
        super()._prepare()
        label = schema.label_name(label)
        for row in [schema.accept(row) for row in rows]:
            self._put(label, row)

    def link(self, type: str, pairs: Sequence[tuple[str, str]], /) -> None:
        """Add edges between nodes that exist."""
        super()._prepare()
        kind = schema.edge_name(type)
        for source, target in pairs:
            self._settle(not self._waiting.has_room({}))
            unsure = [id for id in (source, target) if not self._is_there(id)]
            self._waiting.link(kind, (source, target), unsure)

    def patch(self, label: str, id: str, props: Row, /) -> bool:
        """Set properties of one node; False if there is none."""
        # A node that was not read is changed by one statement: reading it first would be a round
        # trip more.
        super()._prepare()
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
        """Compare and set; return the new row, or None if `expect` does not hold."""
        label, new = schema.label_name(label), schema.accept(props, partly=True)
        row, wanted = self.get(label, id), parse(expect)
        if row is None or not matches(row.get, wanted):
            return None
        self._put(label, {**new, "id": id, "version": next_version(row.get("version"))})
        return self._known[label, id]

    def delete(self, label: str, ids: Sequence[str], /) -> int:
        """Delete nodes with their edges; return how many existed."""
        self._settle(bool(self._waiting))
        text, gone = query("delete", label=schema.label_name(label)), 0
        wanted = known_ids(ids)
        for start in range(0, len(wanted), ROWS_AT_ONCE):
            done = self._change(text, ids=wanted[start : start + ROWS_AT_ONCE])
            gone += int(done.single(strict=True)["number"])
        self._known.update(dict.fromkeys(((label, id) for id in wanted), None))
        return gone

    def _find(
        self,
        label: str,
        wanted: Sequence[Condition],
        order: Sequence[str],
        limit: int | None,
        only: Sequence[str],
    ) -> list[Row]:
        rows = super()._find(label, wanted, order, limit, only)
        return rows if only else self._keep(label, rows)

    def _prepare(self, label: str = "", *, nodes: bool = False, links: bool = False) -> None:
        waiting = self._waiting
        of_nodes = (bool(label) and waiting.has_label(label)) or (nodes and waiting.has_rows)
        self._settle(of_nodes or (links and waiting.has_links))

    def _keep(self, label: str, rows: list[Row]) -> list[Row]:
        self._known.update({(label, str(row["id"])): row for row in rows})
        return rows

    def _put(self, label: str, row: Changes) -> None:
        """Keep a node's changes until a query depends on them."""
        id = str(row["id"])
        self._settle(self._waiting.is_open_end(id) or not self._waiting.has_room(row))
        self._waiting.put(label, row)
        if (label, id) in self._known:
            merged = {**(self._known[label, id] or {}), **row}
            self._known[label, id] = {k: v for k, v in merged.items() if v is not None}

    def _settle(self, depends: bool) -> None:
        """Send the waiting changes if the next query depends on them."""
        super()._prepare()
        if depends and self._waiting:
            self._send(None)

    def _send(self, closing: Mapping[str, object] | None) -> None:
        statement = self._waiting.statement()
        text = statement.text(closing=closing is not None)
        try:
            answer = self._change(text, **statement.bound, **(closing or {})).single()
        except ConstraintError as error:
            raise _wrong_label(self._waiting.ids(), self._waiting.labels()) from error
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


def _wrong_label(ids: Sequence[str], labels: Iterable[str]) -> StoreError:
    named = ", ".join(repr(id) for id in ids[:3])
    return StoreError(
        f"One of {named}{' …' if len(ids) > 3 else ''} cannot be a {' or '.join(labels)}: it has another label."
    )
