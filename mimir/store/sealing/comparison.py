"""Comparison of a stored run with its record: facts, tasks, nodes, later changes."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import cast

from mimir.domain.json_value import (
    NO_MEMBERS,
    JsonObject,
    as_array,
    as_object,
    as_objects,
    as_text,
    as_texts,
)
from mimir.store.protocol import ReadOps, Row, Where
from mimir.store.schema import EdgeType, NodeLabel, pack
from mimir.store.sealing.row_digests import (
    EDGES,
    LABELS,
    changed_rows,
    iterate_rows,
    list_edges,
    mark_beside,
    row_hash,
)
from mimir.store.sealing.run_facts import load_facts

SealedBody = tuple[str, JsonObject]
"""Id of a record, and its body."""


def compare_run(reads: ReadOps, run: str, sealed: Sequence[SealedBody]) -> Iterator[str]:
    """Yield where a run differs from its record and the later ones."""
    (id, record), later = sealed[0], sealed[1:]
    row = reads.get(NodeLabel.RUN, run) or {}
    now = {
        **load_facts(reads, run),
        **{name: row.get(stored) for name, stored in _RUN_FACTS.items()},
    }
    yield from _fact_problems(run, id, record, now)
    before = yield from _undo(run, next(iterate_rows(reads, run, NodeLabel.RUN)), later)
    nodes = as_object(record.get("nodes"))
    events = {name: text for _, one in later for name, text in as_object(one.get("events")).items()}
    for label in LABELS:
        rows = [before] if label is NodeLabel.RUN else list(iterate_rows(reads, run, label))
        if label is NodeLabel.EVENT:
            yield from _later_events(rows, events)
            rows = [one for one in rows if str(one["id"]) not in events]
        sealed_rows = nodes.get(label.value)
        if rows or sealed_rows is not None or label is not NodeLabel.QUESTION:
            yield from changed_rows(f"{run}, {label.value}", rows, sealed_rows)
    # Records of older versions do not cover these.
    if EDGES in nodes:
        edges = list_edges(reads, run)
        yield from changed_rows(f"{run}, edges", edges, nodes.get(EDGES), noun="edge")
        yield from _changed_beside(reads, run, as_object(record.get("beside")))
        yield from _lost_edges(reads, run, row, as_array(record.get("about")))
    planned = row.get("planRun")
    # A run that was copied alone leaves the run that planned it behind.
    if planned and record.get("plannedBy") and reads.get(NodeLabel.RUN, str(planned)):
        calls = list(iterate_rows(reads, str(planned), NodeLabel.CALL))
        yield from changed_rows(f"{planned}, Call", calls, record.get("plannedBy"))


_RUN_FACTS: Mapping[str, str] = {"status": "status", "seal": "seal", "gate": "gateHash"}
"""Name in the record → stored property of the Run node."""


def _fact_problems(
    run: str, id: str, record: JsonObject, now: Mapping[str, object]
) -> Iterator[str]:
    for name, value in now.items():
        if name != "tasks" and pack(value) != pack(record.get(name)):
            shown = f": it is {value!r}" if isinstance(value, str) and len(value) < 70 else ""
            yield f"{run}: its {name} differs from the value that {id} sealed{shown}"
    sealed = {as_text(one.get("task")): one for one in as_objects(record.get("tasks"))}
    tasks = {as_text(one.get("task")): one for one in as_objects(now.get("tasks"))}
    for task in sorted(sealed.keys() | tasks.keys()):
        one, other = sealed.get(task), tasks.get(task)
        if one is None or other is None:
            yield f"{run}/{task}: this task {'was added' if one is None else 'is gone'}"
            continue
        names = [n for n in sorted({*one, *other}) if pack(one.get(n)) != pack(other.get(n))]
        yield from (
            f"{run}/{task}: its {name} differs from the value that {id} sealed" for name in names
        )


def _changed_beside(reads: ReadOps, run: str, sealed: JsonObject) -> Iterator[str]:
    ids, marks = as_texts(sealed.get("ids")), as_text(sealed.get("marks"))
    size = len(marks) // max(len(ids), 1)
    before = {id: marks[at * size : (at + 1) * size] for at, id in enumerate(ids)}
    for id, mark in mark_beside(reads, run).items():
        if before.get(id) != mark:
            yield f"{id}: this node was {'changed' if id in before else 'added'}"


def _lost_edges(reads: ReadOps, run: str, row: Row, about: Sequence[object]) -> Iterator[str]:
    """Yield the edges that users may add but never remove."""
    wanted = [(run, EdgeType.FOLLOWS, str(row[name])) for name in ("planRun", "fromRun") if row.get(name)]  # fmt: skip
    wanted += [(note, EdgeType.ABOUT, subject) for note, subject in map(as_texts, about)]
    for source, kind, target in wanted:
        # A note may be removed, and the other run may not be in this store.
        is_gone = target not in reads.neighbours(source, [kind], "out")
        if is_gone and len(reads.labels_of([source, target])) == len({source, target}):
            yield f"{source} {kind} {target}: this edge is gone"


def _undo(run: str, row: Row, later: Sequence[SealedBody]) -> Generator[str, None, Row]:
    """Yield where the Run node is not as later records left it; return it as at its end."""
    before: dict[str, object] = dict(row)
    for id, one in reversed(later):
        for name, values in as_object(one.get("changed")).items():
            old, new = as_array(values)[:2]
            if pack(before.get(name)) != pack(new):
                yield f"{run}: property {name!r} differs from the value that {id} sealed"
            before[name] = old
    return cast("Row", before)


def _later_events(rows: list[Row], sealed: JsonObject) -> Iterator[str]:
    known = {str(row["id"]): row for row in rows}
    for id, text in sealed.items():
        row = known.get(id)
        if row is None or row_hash(row) != text:
            yield f"{id}: this event {'is gone' if row is None else 'was changed'}"


def load_report_to_compare(reads: ReadOps, run: str, sealed: Sequence[SealedBody]) -> JsonObject:
    """Return path and hash of the sealed report; empty: a later run replaced its file."""
    reports = [as_object(one.get("report")) for _, one in sealed]
    report = next((one for one in reversed(reports) if one), NO_MEMBERS)
    row = reads.get(NodeLabel.RUN, run) or {}
    if run in as_text(report.get("path")):
        return report
    # Runs of one plan write to one file: only the newest of them is compared.
    where: Where = {name: row.get(name) for name in ("projectId", "planPath", "kind")}
    order = ("-createdAt", "-seq")
    newest = reads.find(NodeLabel.RUN, where, order=order, limit=1, only=("createdAt",))
    return report if newest and newest[0]["id"] == run else NO_MEMBERS
