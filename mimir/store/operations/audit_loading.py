"""Loading of a run for the audit: a damaged node is named, and hides no other node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from mimir.domain.event import Event, EventKind
from mimir.domain.evidence import EvidenceRecord
from mimir.domain.plan import Plan
from mimir.domain.value_class import value_class
from mimir.errors import StoreError
from mimir.store import run_reading
from mimir.store.operations import evidence, record_loading, runs
from mimir.store.protocol import ReadOps, Row, Where
from mimir.store.records.audited_records import (
    AuditedArtifactRecord,
    AuditedAttemptRecord,
    AuditedRunRecord,
    AuditedTaskRecord,
    AuditedVerdictRecord,
)
from mimir.store.records.record_codec import StoredRecord, decode
from mimir.store.schema import EdgeType, NodeLabel, pack

R = TypeVar("R", bound=StoredRecord)

_EDGES = (
    EdgeType.HAS_TASK,
    EdgeType.HAS_ATTEMPT,
    EdgeType.HAS_VERDICT,
    EdgeType.BACKED_BY,
    EdgeType.PRODUCED,
)


@value_class
class AuditedEvidence:
    """One evidence node as stored."""

    id: str
    chain: str
    """Evidence chain that it names."""
    record: EvidenceRecord
    differs: tuple[str, ...]
    """Stored names of properties that differ from the record's body."""
    error: str = ""
    """Reason of a missing comparison with the record. Empty: it was compared."""


@value_class
class AuditedRun:
    """One run as stored."""

    run: AuditedRunRecord
    plan: Plan | None
    tasks: Mapping[str, AuditedTaskRecord]
    """By id in the plan."""
    attempts: Mapping[str, AuditedAttemptRecord]
    """By id of the node."""
    answers: Mapping[str, AuditedArtifactRecord]
    """By id of the node."""
    verdicts: Sequence[AuditedVerdictRecord]
    evidence: Sequence[AuditedEvidence]
    """By place in their chains."""
    backing: Mapping[str, frozenset[str]]
    """Attempt or run → evidence nodes that its edges lead to."""
    events: Sequence[Event]
    unread: tuple[str, ...]
    """Errors of the records that could not be read."""
    damaged: frozenset[str]
    """Ids of nodes that could not be read."""


def load_audited_run(reads: ReadOps, run: str, events: Sequence[EventKind]) -> AuditedRun:
    """Load a run for the audit, with its events of these kinds.

    Raises:
        UsageError: There is no such run.
        StoreError: The node of the run cannot be read.
    """
    # The node of the run itself must be readable: everything else hangs on it.
    row = run_reading.load_run_row(reads, run)
    reader = _AuditReader(reads, run)
    attempts = {one.id: one for one in reader.records(AuditedAttemptRecord)}
    nodes = [decode_evidence(each, run) for each in reader.rows(NodeLabel.EVIDENCE)]
    tasks = {one.task_id: one for one in reader.records(AuditedTaskRecord)}
    answers = {one.id: one for one in reader.records(AuditedArtifactRecord, "answer")}
    verdicts = reader.records(AuditedVerdictRecord)
    facts, plan = reader.events(events), reader.plan()
    return AuditedRun(
        run=decode(AuditedRunRecord, row),
        plan=plan,
        tasks=tasks,
        attempts=attempts,
        answers=answers,
        verdicts=verdicts,
        evidence=nodes,
        backing=_load_backing(reads, [*attempts, run, *(node.id for node in nodes)]),
        events=facts,
        unread=tuple(reader.unread),
        damaged=frozenset(reader.damaged),
    )


@dataclass(slots=True)
class _AuditReader:
    """Reader of the nodes of one run that remembers which ones are damaged."""

    reads: ReadOps
    run: str
    unread: list[str] = field(default_factory=list[str])
    damaged: set[str] = field(default_factory=set[str])
    labels: Mapping[str, str] | None = None
    """Id → label of every node that edges lead to; looked up when something is damaged."""

    def records(self, kind: type[R], of_kind: str = "") -> list[R]:
        """Return the run's records of a class in order, without the damaged ones."""
        found: list[R] = []
        for row in self.rows(kind.label, of_kind):
            try:
                found.append(decode(kind, row))
            except StoreError:
                self._note_damage(str(row["id"]))
        return found

    def rows(self, label: NodeLabel, of_kind: str = "") -> list[Row]:
        """Return the run's nodes of a label in order, without the damaged ones."""
        where: Where = {"runId": self.run, **({"kind": of_kind} if of_kind else {})}
        try:
            return self.reads.find(label, where, order=("seq",))
        except StoreError:
            # One damaged node fails the query: read one by one instead, along the edges.
            names = [id for id, found in self._known_labels().items() if found == label.value]
            rows = [row for row in (self._row(label, id) for id in names) if row is not None]
            rows = [row for row in rows if not of_kind or row.get("kind") == of_kind]
            return sorted(rows, key=lambda row: (_place(row), str(row["id"])))

    def events(self, kinds: Sequence[EventKind]) -> list[Event]:
        """Return the run's events; none if they are damaged."""
        try:
            return runs.events(self.reads, self.run, kinds=kinds)
        except (StoreError, ValueError) as error:
            self.unread.append(f"{self.run}: its events cannot be read: {error}")
            return []

    def plan(self) -> Plan | None:
        """Return the pinned plan; None if there is none or it is damaged."""
        try:
            text = record_loading.find_plan_text(self.reads, self.run)
            return runs.read_plan(text) if text else None
        except StoreError as error:
            self.unread.append(f"{self.run}#plan: the pinned plan cannot be read: {error}")
            return None

    def _row(self, label: NodeLabel, id: str) -> Row | None:
        try:
            return self.reads.get(label, id)
        except StoreError:
            self._note_damage(id)
            return None

    def _note_damage(self, id: str) -> None:
        self.unread.append(f"{id}: it cannot be read; it was changed")
        self.damaged.add(id)

    def _known_labels(self) -> Mapping[str, str]:
        if self.labels is None:
            self.labels = self.reads.labels_of(self.reads.reach(self.run, _EDGES, "out", None))
        return self.labels


def decode_evidence(row: Row, run: str) -> AuditedEvidence:
    """Decode an evidence node, with its damage in words."""
    record, chain, error = evidence.record_of(row), str(row.get("chain")), ""
    differs: tuple[str, ...] = ()
    try:
        wanted = evidence.row_of(record, chain, run)
        # Compared as JSON: to Python, True equals 1, and 1 equals 1.0.
        differs = tuple(
            name
            for name in sorted({*row, *wanted})
            if pack(row.get(name)) != pack(wanted.get(name))
        )
    except StoreError as problem:
        error = str(problem)
    return AuditedEvidence(
        id=str(row["id"]), chain=chain, record=record, differs=differs, error=error
    )


def _load_backing(reads: ReadOps, nodes: Sequence[str]) -> dict[str, frozenset[str]]:
    backing: dict[str, set[str]] = {}
    for source, kind, target in reads.edges_among(nodes):
        if kind == EdgeType.BACKED_BY:
            backing.setdefault(source, set()).add(target)
    return {source: frozenset(targets) for source, targets in backing.items()}


def _place(row: Row) -> float:
    seq = row.get("seq")
    return float(seq) if isinstance(seq, int | float) else -1.0
