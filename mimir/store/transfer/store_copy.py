"""Copy of a spooled view into another store: whole or not at all, run by run.

The node of a run and its edges are written last, in one transaction. Rows of an interrupted copy belong to no run, and the next copy
removes them. Existing data is never changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from mimir.domain.value_class import value_class
from mimir.errors import StoreError
from mimir.store.protocol import GraphStore, ReadOps, Row, WriteOps
from mimir.store.row_fields import int_field, text_field
from mimir.store.schema import NodeLabel, pack
from mimir.store.transfer.spool import StoreSpool

# Nodes that one transaction removes.
_AT_ONCE = 200
# Counters of a project: the larger value stays, because both stores may have created runs.
_COUNTERS = ("runCount", "version")
_STEP = "Name a store without it, or resume the run that exists."


@value_class
class CopyResult:
    """Result of a copy; all of it was read back and compared."""

    runs: tuple[str, ...]
    """Runs that are new in the target."""
    known: tuple[str, ...]
    """Runs that the target had, equal in every property."""
    nodes: int
    edges: int


async def copy(spool: StoreSpool, target: GraphStore) -> CopyResult:
    """Copy a view into a store; it may be repeated after an interruption.

    Raises:
        StoreError: The target holds other data under one of the ids (nothing was changed), or the written data differs.
    """
    rows = [row for label, some in spool.nodes() if label == NodeLabel.RUN for row in some]
    ids = [str(row["id"]) for row in rows]
    known = frozenset(await target.read(partial(_find_known_runs, ids=ids)))
    await target.read(partial(_must_agree, label=NodeLabel.RUN, rows=rows, known=known))
    for label, some in spool.nodes():
        await target.read(partial(_must_agree, label=label, rows=some, known=known))
    fresh = [row for row in rows if row["id"] not in known]
    for row in fresh:
        await _clear(target, str(row["id"]))
    await _write(spool, target, fresh)
    nodes, edges = await _compare(spool, target)
    return CopyResult(
        runs=tuple(str(row["id"]) for row in fresh),
        known=tuple(id for id in ids if id in known),
        nodes=nodes,
        edges=edges,
    )


def _find_known_runs(reads: ReadOps, ids: Sequence[str]) -> list[str]:
    return [id for id in ids if reads.get(NodeLabel.RUN, id) is not None]


def _must_agree(reads: ReadOps, label: str, rows: Sequence[Row], known: frozenset[str]) -> None:
    """Refuse a target that holds other data under these ids; `known` runs must be equal."""
    for row, there, kind in _pair_with_target(reads, label, rows):
        run = text_field(row, "runId")
        if kind not in ("", label):
            problem = f"{row['id']!r} is a {kind} there, not a {label}"
        elif there is None:
            problem = f"its run {run} has no {label} {row['id']!r}" if run in known else ""
        elif run and run not in known and label != NodeLabel.RUN:
            problem = ""  # an interrupted copy left it
        else:
            problem = _difference(label, row, there)
        if problem:
            raise StoreError(
                f"The target holds something else: {problem}; nothing was changed.", next_step=_STEP
            )


def _difference(label: str, row: Row, there: Row) -> str:
    """Return the difference in words; empty if they are equal."""
    # Compared as JSON: to Python, True equals 1.
    ignored = _COUNTERS if label == NodeLabel.PROJECT else ()
    names = sorted((row.keys() | there.keys()) - {*ignored})
    different = [name for name in names if pack(row.get(name)) != pack(there.get(name))]
    if not different:
        return ""
    more = f" and {len(different) - 1} more" if len(different) > 1 else ""
    return f"{label} {row['id']!r} differs in {different[0]!r}{more}"


def _pair_with_target(
    reads: ReadOps, label: str, rows: Sequence[Row]
) -> Iterator[tuple[Row, Row | None, str]]:
    """Yield each row with the target's row of its id, and the label of that one."""
    ids = [str(row["id"]) for row in rows]
    labels = reads.labels_of(ids)
    found = {str(row["id"]): row for row in reads.find(label, {"id": ("in", ids)})}
    for row in rows:
        id = str(row["id"])
        yield row, found.get(id), labels.get(id, "")


async def _clear(target: GraphStore, run: str) -> None:
    """Remove the rows that an interrupted copy of this run has left."""

    # Without its run node the run does not exist, so nothing refers to these nodes.
    def some(ops: WriteOps, label: str) -> int:
        if ops.get(NodeLabel.RUN, run) is not None:
            raise StoreError(f"Run {run} was put into the target by another process.")
        left = ops.find(label, {"runId": run}, limit=_AT_ONCE)
        return ops.delete(label, [str(row["id"]) for row in left]) if left else 0

    for label in NodeLabel:
        while label is not NodeLabel.RUN and await target.write(partial(some, label=label)):
            pass


async def _write(spool: StoreSpool, target: GraphStore, fresh: Sequence[Row]) -> None:
    # Edges between two runs need both of them, so they come last.
    wanted = {str(row["id"]) for row in fresh}
    for label, rows in spool.nodes():
        if label == NodeLabel.PROJECT:
            await target.write(partial(_put_projects, rows=rows))
        elif label != NodeLabel.RUN:
            new = [row for row in rows if text_field(row, "runId") in {*wanted, ""}]
            await target.write(partial(_put_nodes, label=label, rows=new))
    of_run: dict[str, list[tuple[str, str, str]]] = {id: [] for id in wanted}
    between: list[tuple[str, str, str]] = []
    runs = {
        str(row["id"]) for label, some in spool.nodes() if label == NodeLabel.RUN for row in some
    }
    for kind, pairs in spool.edges():
        plain = [pair for pair in pairs if not runs.intersection(pair)]
        for source, end in pairs:
            mine = runs & {source, end}
            if len(mine) == 1:
                of_run.get(mine.pop(), []).append((source, kind, end))
            elif mine:
                between.append((source, kind, end))
        await target.write(partial(_link, kind=kind, pairs=plain))
    for row in fresh:
        await target.write(partial(_put_run, row=row, edges=of_run[str(row["id"])]))
    for source, kind, end in between:
        await target.write(partial(_link, kind=kind, pairs=[(source, end)]))


def _put_nodes(ops: WriteOps, label: str, rows: Sequence[Row]) -> None:
    if rows:
        ops.upsert(label, rows)


def _put_projects(ops: WriteOps, rows: Sequence[Row]) -> None:
    for row in rows:
        before: Row = ops.get(NodeLabel.PROJECT, str(row["id"])) or {}
        larger = {
            name: max(int_field(row, name), int_field(before, name))
            for name in _COUNTERS
            if name in row or name in before
        }
        ops.upsert(NodeLabel.PROJECT, [{**row, **larger}])


def _link(ops: WriteOps, kind: str, pairs: Sequence[tuple[str, str]]) -> None:
    if pairs:
        ops.link(kind, pairs)


def _put_run(ops: WriteOps, row: Row, edges: Sequence[tuple[str, str, str]]) -> None:
    """Write the node of a run: from now on, the run exists."""
    ops.upsert(NodeLabel.RUN, [row])
    kinds: Mapping[str, list[tuple[str, str]]] = {kind: [] for _, kind, _ in edges}
    for source, kind, end in edges:
        kinds[kind].append((source, end))
    for kind, pairs in kinds.items():
        ops.link(kind, pairs)


async def _compare(spool: StoreSpool, target: GraphStore) -> tuple[int, int]:
    """Compare the written data with the spool; return the number of nodes and edges.

    Raises:
        StoreError: Something differs.
    """
    nodes = edges = 0
    for label, rows in spool.nodes():
        await target.read(partial(_must_be_equal, label=label, rows=rows))
        nodes += len(rows)
    for kind, pairs in spool.edges():
        await target.read(partial(_must_be_linked, kind=kind, pairs=pairs))
        edges += len(pairs)
    return nodes, edges


def _must_be_equal(reads: ReadOps, label: str, rows: Sequence[Row]) -> None:
    for row, there, _ in _pair_with_target(reads, label, rows):
        problem = "it is not there" if there is None else _difference(label, row, there)
        if problem:
            raise StoreError(f"{label} {row['id']!r} did not come through: {problem}.")


def _must_be_linked(reads: ReadOps, kind: str, pairs: Sequence[tuple[str, str]]) -> None:
    ends = sorted({end for pair in pairs for end in pair})
    there = {(source, end) for source, type, end in reads.edges_among(ends) if type == kind}
    for source, end in pairs:
        if (source, end) not in there:
            raise StoreError(f"The edge {source!r} {kind} {end!r} did not come through.")
