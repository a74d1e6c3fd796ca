"""Audit of one evidence chain: each record is unchanged, in order, and correctly shown."""

from collections.abc import Iterator, Sequence

from mimir.domain.evidence import EvidenceRecord
from mimir.domain.json_value import JsonObject, as_object, as_objects, as_text, as_texts
from mimir.domain.value_class import value_class
from mimir.qc.evidence import seal
from mimir.reporting.summary.proofs import members, record_id
from mimir.store.operations.audit_loading import AuditedEvidence


@value_class
class AuditedRecord:
    """One evidence record with its body."""

    id: str
    """Id that its node must have, by its place in the chain."""
    node: AuditedEvidence
    body: JsonObject

    @property
    def record(self) -> EvidenceRecord:
        """Record as stored."""
        return self.node.record

    def text(self, name: str) -> str:
        """Return a text of the body; empty: absent."""
        return as_text(self.body.get(name))

    def texts(self, name: str) -> list[str]:
        """Return a list of texts of the body; empty: absent."""
        return as_texts(self.body.get(name))

    def objects(self, name: str) -> list[JsonObject]:
        """Return a list of objects of the body; empty: absent."""
        return as_objects(self.body.get(name))

    @property
    def about(self) -> str:
        """Tree that a check run proves something about."""
        # The check may have run on another tree, in which its own files were restored.
        return self.text("standsFor") or self.text("tree")

    @property
    def green(self) -> bool:
        """Whether a check run ended with exit code 0, and no test result contradicts it."""
        is_stopped = any(
            self.body.get(name) is True for name in ("timedOut", "missing", "cutShort")
        )
        is_stopped |= as_object(self.body.get("tests")).get("green") is False
        return self.body.get("exitCode") == 0 and not is_stopped

    @property
    def passed(self) -> bool:
        """Whether it is a verdict that passed."""
        return self.body.get("passed") is True


@value_class
class EvidenceChain:
    """Evidence chain as stored, with the length and hash that its owner states."""

    name: str
    records: tuple[AuditedRecord, ...]
    """By place."""
    length: int | None
    """None: the owner states none."""
    last_hash: str | None
    linked: frozenset[str]
    """Evidence nodes that edges of the owner lead to."""

    @property
    def end(self) -> str:
        """Hash of the last record; of an empty chain the hash of its name."""
        return self.records[-1].record.hash if self.records else seal.first_link(self.name)

    @property
    def deliverable(self) -> AuditedRecord | None:
        """Record of the deliverable; None: none is sealed."""
        return next((one for one in self.records if one.record.kind == "deliverable"), None)

    @property
    def checks(self) -> list[AuditedRecord]:
        """Runs of the attempt's own checks on its deliverable."""
        return [r for r in self.records if r.record.kind == "check" and "task" not in r.body]

    @property
    def controls(self) -> list[AuditedRecord]:
        """Negative controls of the attempt's checks."""
        return [one for one in self.records if one.record.kind == "control"]

    @property
    def merged(self) -> list[AuditedRecord]:
        """Check runs on a merged tree; the body names the task of the check."""
        return [r for r in self.records if r.record.kind == "check" and "task" in r.body]

    @property
    def verdicts(self) -> list[AuditedRecord]:
        """Verdicts, oldest first."""
        return [one for one in self.records if one.record.kind == "verdict"]


def chain_of(
    name: str,
    nodes: Sequence[AuditedEvidence],
    *,
    length: int | None,
    last_hash: str | None,
    linked: frozenset[str],
) -> EvidenceChain:
    """Return a chain of its nodes, with the length and hash that its owner states."""
    records = tuple(
        AuditedRecord(id=record_id(name, node.record), node=node, body=members(node.record))
        for node in nodes
    )
    return EvidenceChain(
        name=name, records=records, length=length, last_hash=last_hash, linked=linked
    )


def problems(chain: EvidenceChain) -> Iterator[str]:
    """Yield each record that is changed, missing, added, out of order, or wrongly shown."""
    if chain.records and (chain.length is None or chain.last_hash is None):
        yield f"{chain.name}: its node does not say how long its chain is; it was changed"
    found = seal.verify(
        chain.name,
        [one.record for one in chain.records],
        length=chain.length or 0,
        last_hash=chain.last_hash if chain.length else None,
    )
    # One problem for each record: the problems that follow from it would only repeat it.
    named = {problem.seq for problem in found}
    for problem in found:
        yield f"{chain.name}#{problem.seq:05d}: {problem.what}"
    for one in chain.records:
        if one.record.seq not in named and one.node.error:
            yield f"{one.id}: its node cannot be compared with the sealed values: {one.node.error}"
        elif one.record.seq not in named and one.node.differs:
            name = one.node.differs[0]
            yield f"{one.id}: property {name!r} was changed; it differs from the record"
        if one.id not in chain.linked:
            yield f"{one.id}: the edge that leads to it is gone"
