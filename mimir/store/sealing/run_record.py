"""Record of a run: facts, report and digests of its nodes; later changes follow.

The record is written in the transaction that ends the run, so that no crash can come between. A change after the end is sealed as a
record of kind `later`, in the transaction that makes it.
"""

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar

from mimir.domain.evidence import EvidenceRecord
from mimir.domain.json_value import NO_MEMBERS, JsonObject, as_object
from mimir.store import run_reading
from mimir.store.operations import evidence
from mimir.store.protocol import ReadOps, Row, Where, WriteOps
from mimir.store.schema import EdgeType, NodeLabel, unpack
from mimir.store.sealing.row_digests import (
    RowDigest,
    digest_rows,
    digest_run,
    list_subjects,
    mark_beside,
    row_hash,
    run_chain,
    without_volatile,
)
from mimir.store.sealing.run_facts import has_record_form, load_facts

T = TypeVar("T")
RunRecordKind = Literal["run", "later"]
Body = Mapping[str, object]
SealBody = Callable[[str, EvidenceRecord | None, RunRecordKind, Body], EvidenceRecord]
"""Seals a body as the next record of a chain: (chain, last record, kind, body)."""


def record_body(reads: ReadOps, run: str, report: Mapping[str, object]) -> Mapping[str, object]:
    """Return the body of the record of a run as stored now.

    `report`: path and hash of the report, with those of the plan's file if there is one.
    """
    row = run_reading.load_run_row(reads, run)
    return {
        **load_facts(reads, run),
        "status": row.get("status"),
        "seal": row.get("seal"),
        "gate": row.get("gateHash"),
        "report": report,
        "nodes": digest_run(reads, run),
        "beside": _encode_marks(mark_beside(reads, run)),
        "about": list_subjects(reads, run),
        "plannedBy": planning_calls(reads, row).encode() if row.get("planRun") else None,
    }


def write_record(ops: WriteOps, run: str, report: Body, seal: SealBody) -> None:
    """Seal a run that has just ended; a run of an older form gets no record."""
    if has_record_form(ops, run):
        _append(ops, run, "run", record_body(ops, run, report), seal)


def change_ended_run(
    ops: WriteOps,
    run: str,
    reason: str,
    change: Callable[[WriteOps], T],
    seal: SealBody,
    report: Body | None = None,
) -> T:
    """Make a change of a run, with its reason; seal it if the run has its record.

    The change may set properties of the Run node and append events. `report`: path and hash of a new report.
    """
    before = run_reading.load_run_row(ops, run)
    result = change(ops)
    if not evidence.records(ops, run_chain(run)):
        return result
    row = run_reading.load_run_row(ops, run)
    names = sorted(without_volatile({**before, **row}))
    changed = {n: [before.get(n), row.get(n)] for n in names if before.get(n) != row.get(n)}
    where: Where = {"runId": run, "seq": (">", before.get("eventSeq"))}
    events = {str(e["id"]): row_hash(e) for e in ops.find(NodeLabel.EVENT, where)}
    body = {"what": reason, "changed": changed, "events": events, "report": report}
    _append(ops, run, "later", body, seal)
    return result


def find_sealed_report(reads: ReadOps, run: str) -> JsonObject:
    """Return path and hash of the sealed report of a run; empty: there is none."""
    sealed = [unpack(one.body) for one in evidence.records(reads, run_chain(run))]
    reports = (as_object(as_object(body).get("report")) for body in reversed(sealed))
    return next((one for one in reports if one), NO_MEMBERS)


def planning_calls(reads: ReadOps, row: Row) -> RowDigest:
    """Return the digest of the PM's calls that made the plan of a run."""
    return digest_rows(reads, str(row.get("planRun")), NodeLabel.CALL)


def _encode_marks(marks: Mapping[str, str]) -> Body:
    return {"ids": list(marks), "marks": "".join(marks.values())}


def _append(ops: WriteOps, run: str, kind: RunRecordKind, body: Body, seal: SealBody) -> None:
    chain = run_chain(run)
    sealed = evidence.records(ops, chain)
    record = seal(chain, sealed[-1] if sealed else None, kind, body)
    row = evidence.row_of(record, chain, run)
    ops.upsert(NodeLabel.EVIDENCE, [row])
    ops.link(EdgeType.BACKED_BY, [(run, str(row["id"]))])
