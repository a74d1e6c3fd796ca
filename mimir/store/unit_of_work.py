"""Unit of work: the read operations of one transaction, the same in every store.

A store implements their queries. A writing unit keeps changes back, and writes them before a query that depends on them.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from mimir.errors import StoreError
from mimir.store import schema
from mimir.store.conditions import Condition, parse, require_order
from mimir.store.protocol import Direction, Row, Where

# Words of a search text that are looked for.
_MOST_WORDS = 64

DumpItem = tuple[str, Row] | tuple[str, str, str]


class ReadUnit(ABC):
    """Read operations of one transaction. After its end, each of them raises an error."""

    longest_word = 10**6
    """Characters of a search word; longer ones are ignored."""

    def __init__(self) -> None:
        """Begin the transaction."""
        self._is_over = False

    def end(self) -> None:
        """End the transaction."""
        self._is_over = True

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
        """Return the nodes that match all of `where`."""
        label, wanted = schema.label_name(label), parse(where)
        require_order(order)
        self._prepare(label)
        if limit is not None and limit <= 0:
            return []
        return self._find(label, wanted, order, limit, only)

    def first_of(
        self, label: str, any_of: Sequence[Where], /, *, order: Sequence[str], limit: int
    ) -> list[Row]:
        """Return the first nodes of each condition, in no order."""
        found = (
            row for where in any_of for row in self.find(label, where, order=order, limit=limit)
        )
        return list({row["id"]: row for row in found}.values())

    def counts(self, label: str, by: str, where: Where, /) -> dict[str, int]:
        """Count nodes by one property."""
        label, wanted = schema.label_name(label), parse(where)
        require_order([by])
        self._prepare(label)
        counted: dict[str, int] = {}
        for name, number in self._counts(label, by, wanted):
            counted[name] = counted.get(name, 0) + number
        return counted

    def neighbours(self, id: str, types: Sequence[str], direction: Direction, /) -> list[str]:
        """Return the ids one edge away."""
        kinds = [schema.edge_name(type) for type in types]
        self._prepare(links=True)
        return sorted(self._step([id], kinds, direction)) if schema.is_id(id) else []

    def reach(
        self, id: str, types: Sequence[str], direction: Direction, depth: int | None, /
    ) -> list[str]:
        """Return the ids within `depth` edges, breadth first."""
        kinds = [schema.edge_name(type) for type in types]
        self._prepare(links=True)
        seen = {id}
        frontier = {id} if schema.is_id(id) else set[str]()
        while frontier and (depth is None or depth > 0):
            frontier = self._step(sorted(frontier), kinds, direction) - seen
            seen |= frontier
            depth = None if depth is None else depth - 1
        return sorted(seen - {id})

    def edges_among(self, ids: Sequence[str], /) -> list[tuple[str, str, str]]:
        """Return the edges between these nodes."""
        self._prepare(links=True)
        return sorted(self._edges(known_ids(ids)))

    def labels_of(self, ids: Sequence[str], /) -> dict[str, str]:
        """Return the label of each of these nodes that exists."""
        self._prepare(nodes=True)
        return dict(sorted(self._labels(known_ids(ids))))

    def search(self, label: str, text: str, limit: int, /) -> list[tuple[str, float]]:
        """Search a label's text."""
        if schema.label_name(label) not in schema.SEARCHED:
            raise StoreError(f"{label!r} has no text that can be searched.")
        self._prepare(label)
        found = re.findall(r"\w+", schema.well_formed(text).replace("\0", " "))
        words = dict.fromkeys(word for word in found if len(word) <= self.longest_word)
        # Words are data: each is quoted, so none can be an operator of the query language.
        question = " OR ".join(f'"{word}"' for word in list(words)[:_MOST_WORDS])
        return self._search(label, question, limit) if question and limit > 0 else []

    def dump(self) -> Iterator[DumpItem]:
        """Yield every node, then every edge."""
        self._prepare(nodes=True, links=True)
        yield from self._dump()

    def _prepare(self, label: str = "", *, nodes: bool = False, links: bool = False) -> None:
        """Write the changes that a query depends on: nodes of a label, all nodes, or edges."""
        if self._is_over:
            raise StoreError("The transaction is over; return the values that it read instead.")

    @abstractmethod
    def _find(
        self,
        label: str,
        wanted: Sequence[Condition],
        order: Sequence[str],
        limit: int | None,
        only: Sequence[str],
    ) -> list[Row]: ...

    @abstractmethod
    def _counts(
        self, label: str, by: str, wanted: Sequence[Condition]
    ) -> Iterable[tuple[str, int]]: ...

    @abstractmethod
    def _step(self, ids: Sequence[str], kinds: Sequence[str], direction: Direction) -> set[str]: ...

    @abstractmethod
    def _edges(self, ids: Sequence[str]) -> Iterable[tuple[str, str, str]]: ...

    @abstractmethod
    def _labels(self, ids: Sequence[str]) -> Iterable[tuple[str, str]]: ...

    @abstractmethod
    def _search(self, label: str, question: str, limit: int) -> list[tuple[str, float]]: ...

    @abstractmethod
    def _dump(self) -> Iterator[DumpItem]: ...


def known_ids(ids: Iterable[str]) -> list[str]:
    """Return the ids that a node can have, each once."""
    # Ids may come from a model; one that no node can have would fail the query.
    return [id for id in dict.fromkeys(ids) if schema.is_id(id)]


def next_version(version: object) -> int:
    """Return the version that a compare-and-set gives a node."""
    return version + 1 if isinstance(version, int) else 1
