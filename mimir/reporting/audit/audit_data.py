"""Reads what there is to be audited, in one view of the store; a node that cannot be read is named and hides no other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mimir.domain.event import Event, EventKind
from mimir.domain.plan import Plan
from mimir.domain.task_states import TaskStatus
from mimir.errors import StoreError, UsageError
from mimir.reporting.audit.chain_audit import EvidenceChain, chain_of
from mimir.store.operations import runs
from mimir.store.protocol import ReadOps, Row
from mimir.store.schema import EdgeType, NodeLabel

_WALK = (
    EdgeType.HAS_TASK,
    EdgeType.HAS_ATTEMPT,
    EdgeType.HAS_VERDICT,
    EdgeType.BACKED_BY,
    EdgeType.PRODUCED,
)
_TOLD = (
    EventKind.RUN_CREATED,
    EventKind.RUN_FINISHED,
    EventKind.ATTEMPT_STARTED,
    EventKind.WORK_ANSWERED,
    EventKind.JUDGING_STARTED,
    EventKind.VERDICT_GIVEN,
    EventKind.TASK_COMPLETED,
    EventKind.TASK_RETRIED,
    EventKind.TASK_FAILED,
    EventKind.TASK_BLOCKED,
    EventKind.TASK_CANCELLED,
)
"""Events that move a status, or say how the run ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditData:
    """One run, as stored."""

    run: Row
    plan: Plan | None
    tasks: Mapping[str, Row]
    """By id in the plan."""
    attempts: Mapping[str, Row]
    """By id of the node."""
    chains: Mapping[str, EvidenceChain]
    """By name; those of attempts without any record too, and the gate's."""
    answers: Mapping[str, Row]
    """Artifacts by id."""
    verdicts: Sequence[Row]
    folded: Mapping[str, TaskStatus]
    """Where each task stands by the events alone."""
    commits: Mapping[str, str]
    """Completed task → the commit that its event names."""
    told_seal: str
    """By the event that ended the run; empty: none did, or it names none."""
    strays: tuple[str, ...]
    """Evidence nodes that belong to no chain of the run."""
    unread: tuple[str, ...]
    """What could not be read, in words."""
    damaged: frozenset[str]
    """Nodes that could not be read."""

    @property
    def id(self) -> str:
        """Of the run."""
        return str(self.run["id"])

    @property
    def gate(self) -> EvidenceChain:
        """The chain of the final gate."""
        return self.chains[f"{self.id}/gate"]


@dataclass(slots=True)
class _AuditReader:
    """Reads nodes of one run and remembers what is damaged."""

    reads: ReadOps
    run: str
    unread: list[str] = field(default_factory=list[str])
    damaged: set[str] = field(default_factory=set[str])
    known: Mapping[str, str] | None = None
    """Id → label of every node that edges lead to; looked up when something is damaged."""

    def rows(self, label: NodeLabel, kind: str = "") -> list[Row]:
        """Return the run's nodes of a label, ordered by `seq`; those that cannot be read are named and left out."""
        where = {"runId": self.run, "kind": kind} if kind else {"runId": self.run}
        try:
            return self.reads.find(label, where, order=("seq",))
        except StoreError:
            ids = [id for id, found in self._labels().items() if found == label.value]
            rows = [row for row in (self.one(label, id) for id in ids) if row is not None]
            rows = [row for row in rows if not kind or row.get("kind") == kind]
            return sorted(rows, key=lambda row: (_place(row), str(row["id"])))

    def one(self, label: NodeLabel, id: str) -> Row | None:
        """Return one node; None: it is not there, or it cannot be read and was named."""
        try:
            return self.reads.get(label, id)
        except StoreError:
            self.unread.append(f"{id}: it cannot be read; it was changed")
            self.damaged.add(id)
            return None

    def _labels(self) -> Mapping[str, str]:
        if self.known is None:
            ids = self.reads.reach(self.run, _WALK, "out", None)
            self.known = self.reads.labels_of(ids)
        return self.known


def text(row: Row, name: str) -> str:
    """Return a text of a node; empty where it is none: that it was changed is found by what it is compared with."""
    value = row.get(name)
    return value if isinstance(value, str) else ""


def load_audit_data(reads: ReadOps, run: str) -> AuditData:
    """Read the books of a run.

    Raises:
        UsageError: There is no such run.
        StoreError: The run's own node cannot be read.
    """
    row = reads.get(NodeLabel.RUN, run)
    if row is None:
        row = runs.get(reads, run)  # names the nearest
    reader = _AuditReader(reads, run)
    attempts = {str(r["id"]): r for r in reader.rows(NodeLabel.ATTEMPT)}
    evidence = reader.rows(NodeLabel.EVIDENCE)
    tasks = {text(r, "taskId"): r for r in reader.rows(NodeLabel.TASK)}
    answers = {str(r["id"]): r for r in reader.rows(NodeLabel.ARTIFACT, "answer")}
    verdicts = reader.rows(NodeLabel.VERDICT)
    names = {*attempts, *reader.damaged, f"{run}/gate"}
    events = _events(reader)
    plan = _plan(reader)
    return AuditData(
        run=row,
        plan=plan,
        tasks=tasks,
        attempts=attempts,
        chains=_chains(reads, row, attempts, evidence),
        answers=answers,
        verdicts=verdicts,
        folded=runs.fold(events),
        commits={
            e.task: str(e.data.get("commit") or "")
            for e in events
            if e.kind is EventKind.TASK_COMPLETED
        },
        told_seal=next(
            (
                str(e.data.get("seal") or "")
                for e in reversed(events)
                if e.kind is EventKind.RUN_FINISHED
            ),
            "",
        ),
        strays=tuple(str(r["id"]) for r in evidence if r.get("chain") not in names),
        unread=tuple(reader.unread),
        damaged=frozenset(reader.damaged),
    )


def _chains(
    reads: ReadOps, run: Row, attempts: Mapping[str, Row], evidence: Sequence[Row]
) -> dict[str, EvidenceChain]:
    id = str(run["id"])
    of_chain: dict[str, list[Row]] = {}
    for row in evidence:
        of_chain.setdefault(str(row.get("chain")), []).append(row)
    nodes = [*attempts, id, *(str(row["id"]) for row in evidence)]
    linked: dict[str, set[str]] = {}
    for source, kind, target in reads.edges_among(nodes):
        if kind == EdgeType.BACKED_BY:
            linked.setdefault(source, set()).add(target)
    chains = {
        name: chain_of(name, of_chain.get(name, ()), row, "chain", linked.get(name, set()))
        for name, row in attempts.items()
    }
    gate = f"{id}/gate"
    chains[gate] = chain_of(gate, of_chain.get(gate, ()), run, "gate", linked.get(id, set()))
    return chains


def _events(reader: _AuditReader) -> list[Event]:
    try:
        return runs.events(reader.reads, reader.run, kinds=_TOLD)
    except (StoreError, ValueError) as error:
        reader.unread.append(f"{reader.run}: its events cannot be read: {error}")
        return []


def _plan(reader: _AuditReader) -> Plan | None:
    try:
        row = runs.get(reader.reads, reader.run)
        return runs.plan_of(row) if row.get("planJson") else None
    except UsageError:
        return None
    except StoreError as error:
        reader.unread.append(f"{reader.run}#plan: the pinned plan cannot be read: {error}")
        return None


def _place(row: Row) -> float:
    seq = row.get("seq")
    return float(seq) if isinstance(seq, int | float) else -1.0
