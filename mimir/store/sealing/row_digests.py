"""Digests of the stored nodes of a run: each changed property changes one of them."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from mimir.domain.json_value import as_object, as_text
from mimir.domain.text_hash import hash_text
from mimir.domain.value_class import value_class
from mimir.store.operations import worker_processes
from mimir.store.protocol import ReadOps, Row, Where
from mimir.store.schema import EdgeType, NodeLabel, pack

LABELS = (
    NodeLabel.RUN, NodeLabel.TASK, NodeLabel.ATTEMPT, NodeLabel.VERDICT, NodeLabel.EVIDENCE, NodeLabel.ARTIFACT,
    NodeLabel.CALL, NodeLabel.EVENT, NodeLabel.QUESTION,
)  # fmt: skip
"""Labels of the nodes that a report or a decision reads."""
_LINKED = (
    NodeLabel.TASK, NodeLabel.ATTEMPT, NodeLabel.VERDICT, NodeLabel.EVIDENCE, NodeLabel.ARTIFACT, NodeLabel.QUESTION,
)  # fmt: skip
"""Labels of the nodes that have edges, besides the run itself."""
_DECIDED = ("state", "version", "decidedBy", "decidedAt", "feedback", "supersededBy")
"""Properties of a note that a decision sets."""
_EDITED = (*_DECIDED, "text")
EDGES = "edges"
"""Name of the digest of the edges."""
VOLATILE = frozenset(
    (
        "version",
        "coordinator",
        "coordinatorUntil",
        "integrator",
        "integratorUntil",
        "claimsEmpty",
        # An agent that it spawned may end after it.
        "treeCalls",
        "treeTokens",
        "treeCost",
    )
)
"""Properties of a Run node that processes may change after its end."""
_MARK = 8
"""Hexadecimal digits of a node in `RowDigest.marks`."""
_AT_ONCE = 500


@value_class
class RowDigest:
    """Digest of the nodes of one label."""

    digest: str
    marks: str
    """The beginning of the hash of each node, in the order of their ids."""

    def encode(self) -> Mapping[str, object]:
        """Return it as a member of a sealed body."""
        return {"digest": self.digest, "marks": self.marks}


def run_chain(run: str) -> str:
    """Return the name of the evidence chain that holds the record of a run."""
    return f"{run}/run"


def row_hash(row: Row) -> str:
    """Return the hash of a node; an absent property is like none."""
    present = {name: value for name, value in row.items() if value is not None}
    return hash_text(pack(present))


def without_volatile(row: Row) -> Row:
    """Return a Run node without the properties that processes may change after its end."""
    return {name: value for name, value in row.items() if name not in VOLATILE}


def iterate_rows(reads: ReadOps, run: str, label: NodeLabel) -> Iterator[Row]:
    """Yield the covered nodes of a label by id, one batch in memory at a time.

    Not covered are the record itself, and the registrations of processes, which decide nothing.
    """
    if label is NodeLabel.RUN:
        row = reads.get(label, run)
        yield from [without_volatile(row)] if row else []
        return
    last = ""
    while True:
        where: Where = {"runId": run, "id": (">", last)}
        rows = reads.find(label, where, order=("id",), limit=_AT_ONCE)
        yield from (row for row in rows if _is_covered(row, run, label))
        if len(rows) < _AT_ONCE:
            return
        last = str(rows[-1]["id"])


def digest_of(hashes: Sequence[str]) -> RowDigest:
    """Return the digest of nodes from their hashes, in the order of their ids."""
    return RowDigest(
        digest=hashlib.sha256("".join(hashes).encode()).hexdigest(),
        marks="".join(one[:_MARK] for one in hashes),
    )


def digest_run(reads: ReadOps, run: str) -> Mapping[str, object]:
    """Return the digests of the nodes and edges of a run by their label."""
    found = {label: digest_rows(reads, run, label) for label in LABELS}
    edges = digest_of([row_hash(row) for row in list_edges(reads, run)])
    # Most runs have no question, and records of older versions know none.
    return {
        **{
            label.value: digest.encode()
            for label, digest in found.items()
            if digest.marks or label is not NodeLabel.QUESTION
        },
        EDGES: edges.encode(),
    }


def list_edges(reads: ReadOps, run: str) -> list[Row]:
    """Return the edges between the covered nodes of a run and its preambles, as rows in order.

    Not covered are edges of notes, which users add, and edges to other runs, which may not be in this store.
    """
    # The preambles of a project are few; those of other runs have no edge to these nodes.
    row = reads.get(NodeLabel.RUN, run) or {}
    project = str(row.get("projectId"))
    used = reads.find(NodeLabel.PREAMBLE, {"projectId": project}, order=("id",), only=("hash",))
    ids = [project, run, *(str(one["id"]) for one in used)]
    for label in _LINKED:
        ids += [str(one["id"]) for one in iterate_rows(reads, run, label)]
    names = (
        f"{source} {kind} {target}"
        for source, kind, target in reads.edges_among(ids)
        if kind not in (EdgeType.ABOUT, EdgeType.FOLLOWS)
    )
    return [{"id": name} for name in sorted(names)]


def list_subjects(reads: ReadOps, run: str) -> list[list[str]]:
    """Return [note, subject] of each edge from a note of a run to its subject."""
    notes = reads.find(NodeLabel.MEMORY, {"runId": run}, order=("id",), only=("kind",))
    names = [str(note["id"]) for note in notes]
    return [
        [name, one] for name in names for one in reads.neighbours(name, [EdgeType.ABOUT], "out")
    ]


def mark_beside(reads: ReadOps, run: str) -> Mapping[str, str]:
    """Return the marks of the notes and preambles of a run by their ids.

    A decision about a note comes later, and a user may remove it, so its state is not covered, and it
    may be gone. The text of a proposal may be edited; the sealed response has it as it was proposed.
    """
    notes = reads.find(NodeLabel.MEMORY, {"runId": run}, order=("id",))
    rows: list[Row] = [
        {name: note[name] for name in note if name not in (_EDITED if note.get("op") else _DECIDED)}
        for note in notes
    ]
    for name in (str(edge["id"]) for edge in list_edges(reads, run)):
        _, kind, target = name.split(" ", 2)
        if kind == EdgeType.USED_PREAMBLE and (row := reads.get(NodeLabel.PREAMBLE, target)):
            rows.append(row)
    return {str(row["id"]): row_hash(row)[:_MARK] for row in rows}


def digest_rows(reads: ReadOps, run: str, label: NodeLabel) -> RowDigest:
    """Return the digest of the nodes of a label."""
    return digest_of([row_hash(row) for row in iterate_rows(reads, run, label)])


def changed_rows(
    owner: str, rows: Sequence[Row], sealed: object, *, noun: str = "node"
) -> list[str]:
    """Name the nodes (in the order of their ids) that differ from a sealed digest of `owner`.

    A node that is gone or new is named by its neighbour; none: nothing differs.
    """
    hashes = [row_hash(row) for row in rows]
    body = as_object(sealed)
    if digest_of(hashes).digest == as_text(body.get("digest")):
        return []
    marks = as_text(body.get("marks"))
    before = [marks[at : at + _MARK] for at in range(0, len(marks), _MARK)]
    now = [one[:_MARK] for one in hashes]
    ids = [str(row["id"]) for row in rows]
    if len(before) == len(now):
        different = [id for id, a, b in zip(ids, before, now, strict=True) if a != b]
        return [f"{id}: this {noun} was changed" for id in different or ids[:1]]
    at = next((n for n, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), None)
    at = min(len(before), len(now)) if at is None else at
    if len(now) > len(before):
        return [f"{ids[at]}: this {noun} was added"]
    where = f"after {ids[at - 1]}" if at else "at the beginning"
    return [f"{owner}: {len(before) - len(now)} {noun}(s) are gone, the first {where}"]


def _is_covered(row: Row, run: str, label: NodeLabel) -> bool:
    if label is NodeLabel.EVIDENCE:
        return row.get("chain") != run_chain(run)
    return label is not NodeLabel.ARTIFACT or row.get("kind") != worker_processes.KIND
