"""Spool of a store: one consistent view in a file, one line per node or edge.

The lines are those of `mimir export --format jsonl`: ASCII, so that no encoding changes a character.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import IO, TypeVar, cast

from mimir.store import run_reading
from mimir.store.protocol import ReadOps, Row
from mimir.store.schema import SCHEMA_VERSION, EdgeType, NodeLabel

T = TypeVar("T")
# Label and properties with `id`.
Node = tuple[str, Row]
# Source, type, target.
Link = tuple[str, str, str]

ROWS_AT_ONCE = 500
# Limits of a batch; a larger node is a batch of its own.
CHARS_AT_ONCE = 1_000_000

# Labels of nodes that belong to one run by `runId`.
_OWNED = (
    NodeLabel.ARTIFACT, NodeLabel.ATTEMPT, NodeLabel.CALL, NodeLabel.EVENT, NodeLabel.EVIDENCE, NodeLabel.MEMORY, NodeLabel.QUESTION, NodeLabel.TASK, NodeLabel.VERDICT,
)  # fmt: skip


def of_run(reads: ReadOps, run: str) -> Iterator[Node | Link]:
    """Yield a run: its nodes, its project and preambles, then their edges.

    Raises:
        UsageError: There is no such run.
    """
    row = run_reading.load_run_row(reads, run)
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
    """View of a store in a private file."""

    def __init__(self, file: IO[str]) -> None:
        """Take an empty text file that was opened for writing and reading with `newline=""`."""
        self._file = file

    def fill(self, items: Iterable[Node | Link]) -> None:
        """Write a view from the beginning: a transaction may run again."""
        # A transaction that runs again must not append to the first view.
        self._file.seek(0)
        self._file.truncate()
        for item in items:
            self._file.write(f"{line(item)}\n")
        self._file.flush()

    def lines(self) -> Iterator[str]:
        """Yield the lines."""
        self._file.seek(0)
        for text in self._file:
            yield text.rstrip("\n")

    def nodes(self) -> Iterator[tuple[str, list[Row]]]:
        """Yield the nodes in batches of one label."""
        rows = (read for read in map(_read, self.lines()) if len(read) == 2)
        for label, some in _group(rows):
            for batch in batches(some, _size):
                yield label, batch

    def edges(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield (type, pairs of source and target) in batches of one type."""
        links = (read for read in map(_read, self.lines()) if len(read) == 3)
        for kind, some in _group((kind, (source, target)) for source, kind, target in links):
            for batch in batches(some, lambda pair: len(pair[0]) + len(pair[1])):
                yield kind, batch


def header(run: str) -> str:
    """Return the first line of an export; an empty `run` means the whole store."""
    return json.dumps({"mimir": "export", "schema": SCHEMA_VERSION, "run": run or None})


def line(item: Node | Link) -> str:
    """Return a node or an edge as a line of JSON."""
    if len(item) == 2:
        return json.dumps({"node": str(item[0]), "properties": dict(item[1])}, sort_keys=True)
    return json.dumps({"edge": str(item[1]), "from": item[0], "to": item[2]})


def batches(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Part items into batches within the limits."""
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


def _group(items: Iterable[tuple[str, T]]) -> Iterator[tuple[str, Iterator[T]]]:
    """Group neighbouring items by their name."""
    for name, some in groupby(items, key=lambda item: item[0]):
        yield name, (value for _, value in some)


def _size(row: Row) -> int:
    # Numbers and flags count as eight characters.
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
