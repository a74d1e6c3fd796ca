"""What a transaction of the Neo4j store has yet to send: nodes and edges, put together into one statement.

Every statement is a way to the server and back while all other writers wait for the store's lock. So writes are kept until something
is asked that depends on them, or until the transaction ends.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from mimir.errors import StoreError
from mimir.store.neo4j.query_library import CypherText, join_texts, query
from mimir.store.neo4j.status_labels import by_status
from mimir.store.protocol import Value

Changes = dict[str, Value]
"""Properties to set, `id` among them; None removes."""

ROWS_AT_ONCE = 500
_CHARS_AT_ONCE = 4_000_000
"""Bounds of one statement: the server holds all of its parameters in memory."""


class CypherStatement:
    """Nodes, then edges, then perhaps the transaction's end, in one text: each part counts what it did and hands one row on."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.bound: dict[str, object] = {}
        self._parts: list[CypherText] = []
        self._kinds: dict[str, str] = {}

    def upsert(self, label: str, shown: CypherText, rows: Sequence[Changes]) -> None:
        """Add nodes; `shown`: the label of their status."""
        place = self._bind(rows)
        self._add("upsert", place, label=label, status=shown)

    def link(self, kind: str, pairs: Sequence[tuple[str, str]]) -> None:
        """Add edges of one kind."""
        place = self._bind([list(pair) for pair in pairs])
        self._add("link", place, type=kind)
        self._kinds[place] = kind

    def text(self, *, closing: bool) -> CypherText:
        """Return the whole; `closing`: count the transaction, too."""
        close = [query("close")] if closing else []
        end = query("written", carried=self._carried())
        return join_texts([query("by-key"), *self._parts, *close, end], "\n")

    def check(self, answer: Mapping[str, object]) -> None:
        """Look at what the server says.

        Raises:
            StoreError: An edge has no end.
        """
        for place, kind in self._kinds.items():
            if wrong := cast("list[str] | None", answer[place]):
                source, target, missing = wrong
                raise StoreError(f"{source!r} {kind} {target!r}: there is no node {missing!r}.")

    def _bind(self, given: object) -> str:
        place = f"w{len(self.bound)}"
        self.bound[place] = given
        return place

    def _add(self, name: str, place: str, **pieces: str) -> None:
        carried = self._carried(before=place)
        self._parts.append(query(name, place=place, **pieces))
        self._parts.append(query(f"{name}-end", place=place, carried=carried))

    def _carried(self, before: str = "") -> CypherText:
        return join_texts(
            [query("carried", place=place) for place in self.bound if place != before], ""
        )


class WriteBatch:
    """Writes in the order-free form that they have in the end: a node once, an edge once."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._rows: dict[str, dict[str, Changes]] = {}
        self._links: dict[str, dict[tuple[str, str], None]] = {}
        self._open_ends: set[str] = set()
        self._count = self._chars = 0

    def __bool__(self) -> bool:
        """Tell whether there is anything."""
        return self._count > 0

    @property
    def has_links(self) -> bool:
        """Tell whether edges wait."""
        return bool(self._links)

    @property
    def has_rows(self) -> bool:
        """Tell whether nodes wait."""
        return bool(self._rows)

    def has_label(self, label: str) -> bool:
        """Tell whether nodes of a label wait."""
        return label in self._rows

    def has(self, label: str, id: str) -> bool:
        """Tell whether a node waits."""
        return id in self._rows.get(label, ())

    def is_open_end(self, id: str) -> bool:
        """Tell whether an edge waits whose end must be there already: making this node first would hide that it was not."""
        return id in self._open_ends

    def has_room(self, row: Mapping[str, Value]) -> bool:
        """Tell whether a statement may carry this row too."""
        return not self or (
            self._count < ROWS_AT_ONCE and self._chars + _size(row) <= _CHARS_AT_ONCE
        )

    def put(self, label: str, row: Changes) -> None:
        """Add a node, or more changes of one that waits."""
        waiting = self._rows.setdefault(label, {})
        id = cast("str", row["id"])
        waiting[id] = {**waiting.get(id, {}), **row}
        self._count += 1
        self._chars += _size(row)

    def link(self, kind: str, pair: tuple[str, str], open_ends: Sequence[str]) -> None:
        """Add an edge; `open_ends`: those of its ends of which it is not known whether they are there."""
        self._links.setdefault(kind, {})[pair] = None
        self._open_ends.update(open_ends)
        self._count += 1

    def ids(self) -> list[str]:
        """Return the ids of the nodes that wait."""
        return [id for rows in self._rows.values() for id in rows]

    def labels(self) -> list[str]:
        """Return the labels of the nodes that wait."""
        return sorted(self._rows)

    def statement(self) -> CypherStatement:
        """Return what sends it all; few texts for all that a transaction may do, for the server plans each once."""
        made = CypherStatement()
        for label, shown, rows in self._alike():
            made.upsert(label, shown, rows)
        for kind in sorted(self._links):
            made.link(kind, list(self._links[kind]))
        return made

    def clear(self) -> None:
        """Begin anew: all was sent."""
        self.__init__()

    def _alike(self) -> Iterator[tuple[str, CypherText, list[Changes]]]:
        for label in sorted(self._rows):
            for shown, rows in by_status(label, list(self._rows[label].values())):
                yield label, shown, rows


def _size(row: Mapping[str, Value]) -> int:
    return sum(len(value) for value in row.values() if isinstance(value, str))
