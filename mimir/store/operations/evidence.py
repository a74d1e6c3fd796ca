"""Evidence of deliverables: sealed records, artifacts, verdicts; append-only.

An evidence node stores the sealed body and, next to it, the properties that a user reads. `row_of` makes both, so an audit finds a change of
either.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import cast

from mimir.domain import ids, json_value
from mimir.domain.event import EventKind
from mimir.domain.evidence import CheckRun, EvidenceRecord, RecordKind
from mimir.domain.plan import Check
from mimir.domain.verdict import Verdict
from mimir.errors import StoreError
from mimir.store import codec
from mimir.store.operations import claims, runs
from mimir.store.protocol import ReadOps, Row, Value, WriteOps
from mimir.store.row_fields import int_field, text_field
from mimir.store.schema import PROMOTED, EdgeType, NodeLabel, accept, pack, unpack, well_formed

CHECK_RUN_KIND = "check-run"
# Longest text of a sealed body that becomes a property.
_SHOWN = 300
_OWN = frozenset({"id", "name", "body", "previous", "hash", *PROMOTED})
_LARGEST = 2**63


def append(
    ops: WriteOps,
    run: str,
    task: str,
    attempt: int,
    fence: int | None,
    chain: str,
    records: Sequence[EvidenceRecord],
) -> int:
    """Append sealed records to a chain, with an event per check; return how many are new.

    Without `task`, the chain is the run's own (its final gate) and `attempt` is 0. Existing records must be equal.

    Raises:
        LeaseLost: The fence is old.
        StoreError: A record does not follow the one before, or differs from the existing one.
    """
    # A resumed attempt seals the same records again; equal ones are skipped.
    owner = _ChainOwner(run, task, attempt)
    row = ops.patch_if(owner.label, owner.id, {}, {})
    if row is None:
        raise StoreError(f"Chain {chain!r} has no {owner.label} {owner.id!r}.")
    length, last = int_field(row, owner.length), text_field(row, owner.hash)
    fresh: list[EvidenceRecord] = []
    for record in records:
        if record.seq < length:
            _must_stand(ops, chain, run, record)
            continue
        if record.seq != length or (length and record.previous != last):
            raise StoreError(
                f"Record {record.seq} does not follow the chain {chain!r} of {length}."
            )
        fresh.append(record)
        length, last = length + 1, record.hash
    if fence is not None:
        claims.record_progress(ops, run, task, fence, len(fresh))
    if fresh:
        rows = [row_of(record, chain, run) for record in fresh]
        ops.upsert(NodeLabel.EVIDENCE, rows)
        ops.link(EdgeType.BACKED_BY, [(owner.id, str(r["id"])) for r in rows])
        ops.patch(owner.label, owner.id, {owner.length: length, owner.hash: last})
        _emit_check_events(ops, run, task, attempt, fresh)
    return len(fresh)


def records(reads: ReadOps, chain: str) -> list[EvidenceRecord]:
    """Return a chain's records as stored, in order; the seal finds damage in them."""
    found = reads.find(NodeLabel.EVIDENCE, {"chain": chain}, order=("seq",))
    return [record_of(row) for row in found]


def row_of(record: EvidenceRecord, chain: str, run: str) -> Row:
    """Return the whole node of a record: the sealed values, and the visible ones.

    A member of the body keeps its name; if the node has a property of that name, the kind of the record is put before it (`checkKind`).
    """
    row: dict[str, Value] = {
        "id": f"{chain}#{record.seq:05d}",
        "name": f"{record.kind} {record.seq}",
        "runId": run,
        "chain": chain,
        "seq": record.seq,
        "kind": record.kind,
        "body": record.body,
        "previous": record.previous,
        "hash": record.hash,
    }
    for name, value in _members(record.body).items():
        shown = _visible_value(value)
        if shown is not None and name.isidentifier() and name.isascii() and name[0].islower():
            row[f"{record.kind}{name[0].upper()}{name[1:]}" if name in _OWN else name] = shown
    return accept(row)


def put_artifact(
    ops: WriteOps, id: str, run: str, kind: str, text: str, produced_by: str | Sequence[str] = ()
) -> str:
    """Store a whole text, linked from the nodes that produced it; return its SHA-256.

    Raises:
        StoreError: A node that produced it does not exist.
    """
    # The hash covers the text as it is stored, so a replaced half surrogate is no damage.
    kept = well_formed(text)
    sha256 = hashlib.sha256(kept.encode()).hexdigest()
    row: Row = {
        "id": id, "name": kind, "runId": run, "kind": kind, "text": kept, "sha256": sha256, "length": len(kept),
    }  # fmt: skip
    ops.upsert(NodeLabel.ARTIFACT, [row])
    producers = [produced_by] if isinstance(produced_by, str) else produced_by
    ops.link(EdgeType.PRODUCED, [(producer, id) for producer in producers if producer])
    return sha256


def save_check_run(
    ops: WriteOps, id: str, run: str, owner: str, place: str, check: Check, result: CheckRun
) -> None:
    """Write a check run; `place` is the task and attempt, or the part of the engine."""
    row: Row = {
        "id": id, "name": f"check {check.id}", "runId": run, "kind": CHECK_RUN_KIND, "createdAt": ops.now(), "by": place,
        "owner": owner, "timeoutSeconds": float(check.timeout_seconds), "text": pack(codec.encode(result)),
    }  # fmt: skip
    ops.upsert(NodeLabel.ARTIFACT, [row])


def artifact(reads: ReadOps, id: str) -> str | None:
    """Return a stored text; None if there is none."""
    row = reads.get(NodeLabel.ARTIFACT, id)
    return None if row is None else text_field(row, "text")


def put_verdict(
    ops: WriteOps, run: str, task: str, attempt: int, number: int, judgement: Verdict
) -> str:
    """Store a verdict on an attempt, flat for users and whole; return the node's id.

    A merged tree is judged again, so an attempt may have verdict `number` 2.
    """
    owner = ids.attempt_id(run, task, attempt)
    id = f"{owner}/verdict/{number}"
    verdict = judgement.verdict
    row: Row = {
        "name": f"{task} verdict {number}", "runId": run, "taskId": task, "attemptNumber": attempt, "seq": number,
        "passed": judgement.passed, "score": float(judgement.score), "modelScore": float(judgement.model_score),
        "verdict": verdict.verdict, "feedback": verdict.feedback, "issues": list(judgement.issues),
        "requiredFixes": list(judgement.required_fixes), "reasons": list(judgement.reasons),
        "unverifiable": judgement.unverifiable, "criteriaImpossible": judgement.criteria_impossible,
        "judgementJson": pack(codec.encode(judgement)), "at": ops.now(), "id": id,
    }  # fmt: skip
    ops.upsert(NodeLabel.VERDICT, [row])
    ops.link(EdgeType.HAS_VERDICT, [(owner, id)])
    return id


class _ChainOwner:
    """Node that counts a chain: an attempt, or the run for its final gate."""

    def __init__(self, run: str, task: str, attempt: int) -> None:
        self.label = NodeLabel.ATTEMPT if task else NodeLabel.RUN
        self.id = ids.attempt_id(run, task, attempt) if task else run
        self.hash = "chainHash" if task else "gateHash"
        self.length = "chainLength" if task else "gateLength"


def _must_stand(reads: ReadOps, chain: str, run: str, record: EvidenceRecord) -> None:
    wanted = row_of(record, chain, run)
    if reads.get(NodeLabel.EVIDENCE, str(wanted["id"])) != wanted:
        raise StoreError(f"Another record is at {record.seq} of the chain {chain!r}.")


def _emit_check_events(
    ops: WriteOps, run: str, task: str, attempt: int, fresh: Sequence[EvidenceRecord]
) -> None:
    events = [
        runs.NewEvent(
            kind=EventKind.CHECK_RUN,
            task=task or str(_members(record.body).get("task") or ""),
            attempt=attempt,
            data=_check_event_data(record),
        )
        for record in fresh
        if record.kind == "check"
    ]
    if events:
        runs.emit_all(ops, run, events)


def _check_event_data(record: EvidenceRecord) -> dict[str, object]:
    body = _members(record.body)
    names = ("check", "phase", "state", "exitCode", "cutShort", "required", "again", "flaky")
    return {"record": record.seq, "seal": record.hash, **{n: body[n] for n in names if n in body}}


def _members(body: str) -> Mapping[str, object]:
    """Return the members of a sealed body; none if it is damaged."""
    try:
        return json_value.as_object(unpack(body))
    except StoreError:
        return {}


def _visible_value(value: object) -> Value:
    """Return a member as it is visible; None: only the body has it."""
    # Long texts would be written twice with each record.
    match value:
        case bool() | float():
            return value
        case int():
            return value if -_LARGEST <= value < _LARGEST else None
        case str():
            return value if len(value) <= _SHOWN else None
        case _ if json_value.is_array(value):
            texts = [text for text in json_value.as_texts(value) if len(text) <= _SHOWN]
            return texts if len(texts) == len(value) else None
        case _:
            return None


def record_of(row: Row) -> EvidenceRecord:
    """Return the record of an evidence node as stored; the seal finds damage in it."""
    seq = row.get("seq")
    return EvidenceRecord(
        seq=seq if isinstance(seq, int) else -1,
        kind=cast(RecordKind, str(row.get("kind") or "")),
        body=str(row.get("body") or ""),
        previous=str(row.get("previous") or ""),
        hash=str(row.get("hash") or ""),
    )
