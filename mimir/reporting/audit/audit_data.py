"""Input of the audit: a stored run, its evidence chains, and the statuses by its events."""

from collections.abc import Mapping

from mimir.domain.event import EventKind
from mimir.domain.json_value import as_text
from mimir.domain.task_states import TaskStatus
from mimir.domain.value_class import value_class
from mimir.reporting.audit.chain_audit import EvidenceChain, chain_of
from mimir.reporting.audit.run_audit import RunAudit, audit_run
from mimir.store.operations import runs
from mimir.store.operations.audit_loading import AuditedEvidence, AuditedRun, load_audited_run
from mimir.store.protocol import ReadOps
from mimir.store.records.audited_records import AuditedTaskRecord
from mimir.store.sealing.row_digests import run_chain

_STATUS_EVENTS = (
    EventKind.RUN_CREATED, EventKind.RUN_FINISHED, EventKind.ATTEMPT_STARTED, EventKind.WORK_ANSWERED,
    EventKind.JUDGING_STARTED, EventKind.VERDICT_GIVEN, EventKind.TASK_COMPLETED, EventKind.TASK_RETRIED,
    EventKind.TASK_FAILED, EventKind.TASK_BLOCKED, EventKind.TASK_CANCELLED,
)  # fmt: skip
"""Events that change a status, or say how the run ended."""


@value_class
class AuditData:
    """One run under audit."""

    stored: AuditedRun
    chains: Mapping[str, EvidenceChain]
    """Name → chain; those of attempts without any record too, and that of the final gate."""
    statuses: Mapping[str, TaskStatus]
    """Task → status that follows from the events alone."""
    commits: Mapping[str, str]
    """Completed task → commit that its event names."""
    end_seal: str
    """Seal that the event of the end names. Empty: none."""
    strays: tuple[str, ...]
    """Evidence nodes that belong to no chain of the run."""
    record: RunAudit
    """Comparison of the run with its record."""

    @property
    def id(self) -> str:
        """Id of the run."""
        return self.stored.run.id

    @property
    def gate(self) -> EvidenceChain:
        """Evidence chain of the final gate."""
        return self.chains[f"{self.id}/gate"]

    def accepted_chain(self, task: AuditedTaskRecord) -> EvidenceChain | None:
        """Return the evidence chain of a task's accepted attempt; None if there is none."""
        return self.chains.get(f"{task.id}/{task.accepted_attempt}")


def load_audit_data(reads: ReadOps, run: str) -> AuditData:
    """Load a run for the audit.

    Raises:
        UsageError: There is no such run.
        StoreError: The node of the run cannot be read.
    """
    stored = load_audited_run(reads, run, _STATUS_EVENTS)
    ends = [e for e in stored.events if e.kind is EventKind.RUN_FINISHED]
    # The evidence of a damaged attempt is not stray: the attempt is reported.
    names = {*stored.attempts, *stored.damaged, f"{run}/gate", run_chain(run)}
    chains = _chains(stored)
    end_seal = as_text(ends[-1].data.get("seal")) if ends else ""
    return AuditData(
        stored=stored,
        chains=chains,
        statuses=runs.fold(stored.events),
        commits={
            e.task: as_text(e.data.get("commit"))
            for e in stored.events
            if e.kind is EventKind.TASK_COMPLETED
        },
        end_seal=end_seal,
        strays=tuple(node.id for node in stored.evidence if node.chain not in names),
        record=audit_run(reads, run, chains[run_chain(run)], ended=bool(end_seal)),
    )


def _chains(stored: AuditedRun) -> dict[str, EvidenceChain]:
    nodes: dict[str, list[AuditedEvidence]] = {}
    for node in stored.evidence:
        nodes.setdefault(node.chain, []).append(node)
    run, gate = stored.run, f"{stored.run.id}/gate"
    owners = [(id, id, a.evidence_length, a.evidence_hash) for id, a in stored.attempts.items()]
    owners.append((gate, run.id, run.gate_length, run.gate_hash))
    record, sealed = run_chain(run.id), nodes.get(run_chain(run.id), [])
    # No node counts this chain: the record of the gate says whether there must be one.
    owners.append((record, run.id, len(sealed), sealed[-1].record.hash if sealed else None))
    return {
        name: chain_of(
            name,
            nodes.get(name, ()),
            length=length,
            last_hash=last_hash,
            linked=stored.backing.get(owner, frozenset()),
        )
        for name, owner, length, last_hash in owners
    }
