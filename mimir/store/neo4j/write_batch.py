"""Pending changes of a Neo4j transaction, sent together as one statement.

Every statement is a round trip during which all other writers wait for the lock.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from mimir.errors import StoreError
from mimir.store.neo4j.query_library import CypherText, join_texts, query
from mimir.store.neo4j.status_labels import by_status
from mimir.store.protocol import Value

# Properties to set, with `id`; None removes one.
Changes = dict[str, Value]

ROWS_AT_ONCE = 500
# Limits of one statement: the server holds all of its parameters in memory.
_CHARS_AT_ONCE = 4_000_000


class CypherStatement:
    """Statement of parts: nodes, edges, and the end of the transaction."""

    def __init__(self) -> None:
        """Begin empty."""
        self.bound: dict[str, object] = {}
        self._parts: list[CypherText] = []
        self._kinds: dict[str, str] = {}

    def upsert(self, label: str, shown: CypherText, rows: Sequence[Changes]) -> None:
        """Add nodes; `shown` is the label of their status."""
        place = self._bind(rows)
        self._add("upsert", place, label=label, status=shown)

    def link(self, kind: str, pairs: Sequence[tuple[str, str]]) -> None:
        """Add edges of one type."""
        place = self._bind([list(pair) for pair in pairs])
        self._add("link", place, type=kind)
        self._kinds[place] = kind

    def text(self, *, closing: bool) -> CypherText:
        """Return the whole statement; `closing`: count the transaction too."""
        # One row is handed from part to part, so that each part runs exactly once.
        close = [query("close")] if closing else []
        end = query("written", carried=self._carried())
        return join_texts([query("by-key"), *self._parts, *close, end], "\n")

    def check(self, answer: Mapping[str, object]) -> None:
        """Check the server's answer.

        Raises:
            StoreError: An end of an edge does not exist.
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
    """Pending changes: each node once, each edge once."""

    def __init__(self) -> None:
        """Begin empty."""
        self._rows: dict[str, dict[str, Changes]] = {}
        self._links: dict[str, dict[tuple[str, str], None]] = {}
        self._open_ends: set[str] = set()
        self._count = self._chars = 0

    def __bool__(self) -> bool:
        """Return whether a change waits."""
        return self._count > 0

    @property
    def has_links(self) -> bool:
        """Whether edges wait."""
        return bool(self._links)

    @property
    def has_rows(self) -> bool:
        """Whether nodes wait."""
        return bool(self._rows)

    def has_label(self, label: str) -> bool:
        """Return whether nodes of a label wait."""
        return label in self._rows

    def has(self, label: str, id: str) -> bool:
        """Return whether a node waits."""
        return id in self._rows.get(label, ())

    def is_open_end(self, id: str) -> bool:
        """Return whether a waiting edge needs this node to exist already."""
        # If the node were added first, the missing end would not be noticed.
        return id in self._open_ends

    def has_room(self, row: Mapping[str, Value]) -> bool:
        """Return whether the statement can take this row too."""
        return not self or (
            self._count < ROWS_AT_ONCE and self._chars + _size(row) <= _CHARS_AT_ONCE
        )

    def put(self, label: str, row: Changes) -> None:
        """Add a node, or more changes of a waiting one."""
        waiting = self._rows.setdefault(label, {})
        id = str(row["id"])
        waiting[id] = {**waiting.get(id, {}), **row}
        self._count += 1
        self._chars += _size(row)

    def link(self, kind: str, pair: tuple[str, str], open_ends: Sequence[str]) -> None:
        """Add an edge; `open_ends` are the ends that may not exist."""
        self._links.setdefault(kind, {})[pair] = None
        self._open_ends.update(open_ends)
        self._count += 1

    def ids(self) -> list[str]:
        """Return the ids of the waiting nodes."""
        return [id for rows in self._rows.values() for id in rows]

    def labels(self) -> list[str]:
        """Return the labels of the waiting nodes."""
        return sorted(self._rows)

    def statement(self) -> CypherStatement:
        """Return the statement that sends all changes."""
        # The server plans each text once, so the texts are few.
        statement = CypherStatement()
        for label, shown, rows in self._alike():
            statement.upsert(label, shown, rows)
        for kind in sorted(self._links):
            statement.link(kind, list(self._links[kind]))
        return statement

    def clear(self) -> None:
        """Forget the changes: they were sent."""
        self.__init__()

    def _alike(self) -> Iterator[tuple[str, CypherText, list[Changes]]]:
        for label in sorted(self._rows):
            for shown, rows in by_status(label, list(self._rows[label].values())):
                yield label, shown, rows


def _size(row: Mapping[str, Value]) -> int:
    return sum(len(value) for value in row.values() if isinstance(value, str))
