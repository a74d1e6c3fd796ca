"""What a store holds, in a file: one consistent view, a line a node and a line an edge, read back in bounded batches.

The lines are what `mimir export --format jsonl` prints: ASCII, so that no terminal and no encoding changes a character.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import IO, TypeVar, cast

from mimir.store.operations import runs
from mimir.store.protocol import ReadOps, Row
from mimir.store.schema import SCHEMA_VERSION, EdgeType, NodeLabel

T = TypeVar("T")
Node = tuple[str, Row]
"""Label and properties, `id` among them."""
Link = tuple[str, str, str]
"""Source, type, target."""

ROWS_AT_ONCE = 500
CHARS_AT_ONCE = 1_000_000
"""Bounds of a batch; a node that is larger is one by itself."""

_OWNED = (
    NodeLabel.ARTIFACT, NodeLabel.ATTEMPT, NodeLabel.CALL, NodeLabel.EVENT, NodeLabel.EVIDENCE, NodeLabel.MEMORY, NodeLabel.TASK, NodeLabel.VERDICT,
)  # fmt: skip
"""What belongs to one run: it has its `runId`."""


def of_run(reads: ReadOps, run: str) -> Iterator[Node | Link]:
    """Yield a run, nodes first: what is its own, its project, and the preambles that it used.

    Raises:
        UsageError: There is no such run.
    """
    runs.node(reads, run)  # names the nearest
    row = reads.get(NodeLabel.RUN, run) or {}
    ids: list[str] = []
    for label, found in _rows_of(reads, run, row):
        ids += [str(one["id"]) for one in found]
        yield from ((label, one) for one in found)
    yield from reads.edges_among(ids)


def _rows_of(reads: ReadOps, run: str, row: Row) -> Iterator[tuple[str, list[Row]]]:
    yield (
        NodeLabel.PROJECT,
        [p for p in [reads.get(NodeLabel.PROJECT, str(row.get("projectId")))] if p],
    )
    yield NodeLabel.RUN, [row]
    attempts: list[Row] = []
    for label in _OWNED:
        found = reads.find(label, {"runId": run}, order=("id",))
        attempts = found if label is NodeLabel.ATTEMPT else attempts
        yield label, found
    used = {
        id for one in attempts for id in reads.neighbours(str(one["id"]), [EdgeType.USED_PREAMBLE], "out")
    }  # fmt: skip
    preambles = [reads.get(NodeLabel.PREAMBLE, id) for id in sorted(used)]
    yield NodeLabel.PREAMBLE, [one for one in preambles if one]


class StoreSpool:
    """A view of a store, in a file that is nobody else's."""

    def __init__(self, file: IO[str]) -> None:
        """Take an empty file, opened for writing and reading text with `newline=""`."""
        self._file = file

    def fill(self, items: Iterable[Node | Link]) -> None:
        """Write a view anew: a transaction may be run again."""
        self._file.seek(0)
        self._file.truncate()
        for item in items:
            self._file.write(f"{line(item)}\n")
        self._file.flush()

    def lines(self) -> Iterator[str]:
        """Yield what is in it, as text."""
        self._file.seek(0)
        for text in self._file:
            yield text.rstrip("\n")

    def nodes(self) -> Iterator[tuple[str, list[Row]]]:
        """Yield the nodes in batches of one label."""
        rows = (read for read in map(_read, self.lines()) if len(read) == 2)
        for label, some in _grouped(rows):
            for batch in batches(some, _size):
                yield label, batch

    def edges(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield (type, pairs of source and target) in batches of one type."""
        links = (read for read in map(_read, self.lines()) if len(read) == 3)
        for kind, some in _grouped((kind, (source, target)) for source, kind, target in links):
            for batch in batches(some, lambda pair: len(pair[0]) + len(pair[1])):
                yield kind, batch


def header(run: str) -> str:
    """Return the first line of an export; empty `run`: the whole store."""
    return json.dumps({"mimir": "export", "schema": SCHEMA_VERSION, "run": run or None})


def line(item: Node | Link) -> str:
    """Return a node or an edge as a line of JSON."""
    if len(item) == 2:
        return json.dumps({"node": str(item[0]), "properties": dict(item[1])}, sort_keys=True)
    return json.dumps({"edge": str(item[1]), "from": item[0], "to": item[2]})


def batches(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Part items so that no batch holds more than its bounds, but one that is too large by itself."""
    batch: list[T] = []
    chars = 0
    for item in items:
        more = size(item)
        if batch and (len(batch) == ROWS_AT_ONCE or chars + more > CHARS_AT_ONCE):
            yield batch
            batch, chars = [], 0
        batch.append(item)
        chars += more
    if batch:
        yield batch


def _grouped(items: Iterable[tuple[str, T]]) -> Iterator[tuple[str, Iterator[T]]]:
    """Part items by their name where it changes."""
    for name, some in groupby(items, key=lambda item: item[0]):
        yield name, (value for _, value in some)


def _size(row: Row) -> int:
    return sum(_chars(value) for value in row.values())


def _chars(value: object) -> int:
    match value:
        case str():
            return len(value)
        case list():
            return sum(len(text) for text in cast("Sequence[str]", value))
        case _:
            return 8


def _read(text: str) -> Node | Link:
    value = cast("dict[str, object]", json.loads(text))
    if "node" in value:
        return str(value["node"]), cast("Row", value["properties"])
    return str(value["from"]), str(value["edge"]), str(value["to"])
