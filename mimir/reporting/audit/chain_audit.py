"""One chain of sealed records: is each record the one that was sealed, at its place, and shown as it was sealed?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from mimir.domain.evidence import EvidenceRecord
from mimir.errors import StoreError
from mimir.qc.evidence import seal
from mimir.reporting.summary.proofs import Body, members
from mimir.store.operations import evidence
from mimir.store.operations.evidence import record_of
from mimir.store.protocol import Row
from mimir.store.schema import pack


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRecord:
    """One record with its body read."""

    id: str
    """Of its node, by its place in the chain."""
    record: EvidenceRecord
    body: Body

    def text(self, name: str) -> str:
        """Return a text of the body; empty: not there."""
        value = self.body.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> list[str]:
        """Return a list of texts of the body; empty: not there."""
        value = self.body.get(name)
        return list(map(str, cast("list[object]", value))) if isinstance(value, list) else []

    def objects(self, name: str) -> list[Mapping[str, object]]:
        """Return a list of objects of the body; empty: not there."""
        value = self.body.get(name)
        if not isinstance(value, list):
            return []
        items = cast("list[object]", value)
        return [cast("Mapping[str, object]", item) for item in items if isinstance(item, dict)]

    @property
    def about(self) -> str:
        """Tree that the run of a check says something of: also where it ran with the check's own files put back."""
        return self.text("standsFor") or self.text("tree")

    @property
    def green(self) -> bool:
        """True if the run of a check came to its end, and that was 0."""
        stopped = any(self.body.get(name) is True for name in ("timedOut", "missing", "cutShort"))
        return self.body.get("exitCode") == 0 and not stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceChain:
    """A chain as stored, with what its owner says of it."""

    name: str
    rows: tuple[Row, ...]
    """By `seq`."""
    records: tuple[AuditedRecord, ...]
    length: int | None
    """As its owner says; None: it says nothing."""
    last_hash: str | None
    linked: frozenset[str]
    """Evidence nodes that its owner leads to."""

    @property
    def end(self) -> str:
        """Hash of the last record; that of the chain's name where there is none."""
        return self.records[-1].record.hash if self.records else seal.first_link(self.name)

    @property
    def deliverable(self) -> AuditedRecord | None:
        """What was delivered; None: nothing was sealed of it."""
        return next((one for one in self.records if one.record.kind == "deliverable"), None)

    @property
    def checks(self) -> list[AuditedRecord]:
        """Runs of the attempt's own checks on its own deliverable."""
        return [r for r in self.records if r.record.kind == "check" and "task" not in r.body]

    @property
    def merged(self) -> list[AuditedRecord]:
        """Runs of checks on a merged tree; the body names whose check it is."""
        return [r for r in self.records if r.record.kind == "check" and "task" in r.body]

    @property
    def verdicts(self) -> list[AuditedRecord]:
        """Rulings, oldest first."""
        return [one for one in self.records if one.record.kind == "verdict"]


def chain_of(
    name: str, rows: Sequence[Row], owner: Row, prefix: str, linked: set[str]
) -> EvidenceChain:
    """Return a chain from its nodes and the node that counts it (`<prefix>Length`, `<prefix>Hash`)."""
    length, last = owner.get(f"{prefix}Length"), owner.get(f"{prefix}Hash")
    records = [record_of(row) for row in rows]
    return EvidenceChain(
        name=name,
        rows=tuple(rows),
        records=tuple(
            AuditedRecord(id=f"{name}#{record.seq:05d}", record=record, body=members(record))
            for record in records
        ),
        length=length if isinstance(length, int) else None,
        last_hash=last if isinstance(last, str) else None,
        linked=frozenset(linked),
    )


def problems(chain: EvidenceChain, run: str) -> Iterator[str]:
    """Name every record of a chain that is edited, missing, added, out of place, or shown otherwise than it was sealed."""
    if chain.records and (chain.length is None or chain.last_hash is None):
        yield f"{chain.name}: its node does not say how long its chain is; it was changed"
    found = seal.verify(
        chain.name,
        [one.record for one in chain.records],
        length=chain.length or 0,
        last_hash=chain.last_hash if chain.length else None,
    )
    named = {problem.seq for problem in found}
    for problem in found:
        yield f"{chain.name}#{problem.seq:05d}: {problem.what}"
    for row, one in zip(chain.rows, chain.records, strict=True):
        if one.record.seq not in named:
            yield from _shown_otherwise(row, one, run)
        if one.id not in chain.linked:
            yield f"{one.id}: the edge that leads to it is gone"


def _shown_otherwise(row: Row, one: AuditedRecord, run: str) -> Iterator[str]:
    """Name a property of the node that is not what the sealed body says."""
    chain = one.id.rpartition("#")[0]
    try:
        wanted = evidence.row_of(one.record, chain, run)
        differs = [
            name
            for name in sorted({*row, *wanted})
            # As JSON: to Python `true` would equal 1, and 1 would equal 1.0.
            if pack(row.get(name)) != pack(wanted.get(name))
        ]
    except StoreError as error:
        yield f"{one.id}: its node cannot be compared with what was sealed: {error}"
        return
    if differs:
        yield f"{one.id}: property {differs[0]!r} was changed; it is not what the record says"
