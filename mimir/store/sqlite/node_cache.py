"""What the writer has in hand: nodes it read or changed, so that a transaction reads each once and writes each once.

Nothing is decided here and nothing written: who changes a node puts it here, and writes what is unwritten before anybody could see
the table without it. If the transaction fails, all of it is forgotten.
"""

from itertools import islice

from mimir.store.sqlite.node import StoredNode

_MOST = 300
"""Nodes kept from one transaction to the next: those of the tasks that are at work; a node takes some 5 kB."""
_HEAVY = 10_000
"""Characters in long texts from which a node is not kept any longer than its transaction."""


class NodeCache:
    """Nodes by id, as the open transaction leaves them."""

    def __init__(self) -> None:
        self.labels: dict[str, str] = {}
        """Of nodes that are there, by id; no more than were asked for."""
        self._nodes: dict[str, StoredNode] = {}
        self._unwritten: dict[str, None] = {}
        self._heavy: set[str] = set()
        self._room = 2 * _MOST

    def get(self, id: str) -> StoredNode | None:
        """Return a node in hand; None says nothing of what the table holds."""
        return self._nodes.get(id)

    def put(self, node: StoredNode) -> None:
        """Take a node in hand, in the place of what was known of it."""
        id, held = node.id, self._nodes.pop(node.id, None)
        self._nodes[id] = node  # at the end: what was changed longest ago is put down first
        if node.unwritten is None:
            self._unwritten.pop(id, None)
        else:
            self._unwritten[id] = None
        is_new = held is None or held.texts is not node.texts
        if is_new and node.texts and sum(map(len, node.texts.values())) >= _HEAVY:
            self._heavy.add(id)
        if len(self._nodes) >= self._room:
            self._make_room()

    def drop(self, id: str) -> None:
        """Forget a node that was deleted."""
        self.labels.pop(id, None)
        self._nodes.pop(id, None)
        self._unwritten.pop(id, None)

    def unwritten(self, label: str | None = None) -> list[StoredNode]:
        """Return the nodes that the table does not hold as they are; of one label, if it is named."""
        nodes = [self._nodes[id] for id in self._unwritten]
        return nodes if label is None else [node for node in nodes if node.label == label]

    def trim(self) -> None:
        """End a transaction: put down what is not worth its memory."""
        for id in self._heavy:
            self._nodes.pop(id, None)
        self._heavy.clear()
        if len(self.labels) > _MOST:
            self.labels.clear()
        self._make_room()

    def _make_room(self) -> None:
        """Put down nodes that the table holds as they are, those first that were changed longest ago."""
        surplus = max(0, len(self._nodes) - _MOST)
        for id in list(islice((id for id in self._nodes if id not in self._unwritten), surplus)):
            del self._nodes[id]
        self._room = len(self._nodes) + _MOST

    def clear(self) -> None:
        """Forget everything: another process has written, or the transaction is gone."""
        self.labels.clear()
        self._nodes.clear()
        self._unwritten.clear()
        self._heavy.clear()
