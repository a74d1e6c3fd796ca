"""Rows of questions: created and closed with their events, found and listed."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from mimir.domain import ids
from mimir.domain.clock import moment, stamp
from mimir.domain.event import EventKind
from mimir.domain.question import NewQuestion, QuestionClosing, QuestionLimits, correction_text
from mimir.domain.question_states import OPEN, QuestionKind
from mimir.domain.value_class import value_class
from mimir.errors import StoreError
from mimir.store import run_reading
from mimir.store.operations import runs
from mimir.store.protocol import ReadOps, Where, WriteOps
from mimir.store.records.question_records import QuestionCloseChange, QuestionRecord
from mimir.store.records.record_codec import ABSENT, PackedJson, encode
from mimir.store.schema import EdgeType, NodeLabel

_DIGITS = 10
_RISKS: Mapping[QuestionKind, int] = {"input": 1, "approval": 2}


@value_class
class QuestionPlace:
    """Call of a transcript that asks."""

    run: str
    task: str
    attempt: int
    role: str
    fence: int
    """0: a planning run asks."""
    lane: str
    seq: int
    request_hash: str

    @property
    def asker(self) -> str:
        """Node that asks: the attempt, or the planning run."""
        return ids.attempt_id(self.run, self.task, self.attempt) if self.fence else self.run


def refusal(reads: ReadOps, place: QuestionPlace, limits: QuestionLimits) -> str:
    """Return why no further question can be asked; empty: one can."""
    found = load_open(reads, place.run)
    own = sum(one.task == place.task for one in found)
    if own >= limits.open_per_task:
        return f"the limit of open questions of a task is reached ({limits.open_per_task})."
    if len(found) >= limits.open_per_run:
        return f"the limit of open questions of a run is reached ({limits.open_per_run})."
    return ""


def put_question(ops: WriteOps, place: QuestionPlace, new: NewQuestion) -> str:
    """Create a question with its event; return its id. One that was asked before stays."""
    id, is_open = _next_id(ops, place)
    # A process may have died between the question and the outcome of its call.
    if is_open:
        return id
    run = run_reading.load_run(ops, place.run)
    # The store's time, as for leases: clocks of processes may differ.
    days = new.limits.expire_days
    expires = stamp(moment(ops.now()) + timedelta(days=days)) if days else ""
    record = QuestionRecord(
        id=id,
        name=new.title,
        run_id=place.run,
        project_id=run.project_id,
        task=place.task,
        attempt=place.attempt,
        transcript=place.lane,
        number=place.seq,
        fence=place.fence,
        kind=new.kind,
        risk=_RISKS[new.kind],
        text=new.text,
        schema=PackedJson.pack(new.form.as_schema()),
        default=ABSENT if new.default is None else PackedJson.pack(new.default),
        is_blocking=new.is_blocking,
        asked_by=place.role,
        subject=new.subject,
        subject_hash=new.subject_hash,
        created_at=ops.now(),
        expires_at=expires,
    )
    _write_question(ops, place, record)
    return id


def replace_question(
    ops: WriteOps, old: QuestionRecord, place: QuestionPlace, subject_hash: str, text: str
) -> str:
    """Withdraw an approval whose subject changed, ask again, and return the new id."""
    id, _ = _next_id(ops, place, beside=old.id)
    closing = QuestionClosing(
        state="withdrawn",
        values=None,
        by="",
        transport="",
        replaced_by=id,
        subject_hash=subject_hash,
        text=text,
    )
    close(ops, old.id, closing)
    expires = old.expires_at
    if expires:
        lasts = moment(expires) - moment(old.created_at)
        expires = stamp(moment(ops.now()) + lasts)
    again = replace(
        old,
        id=id,
        text=text,
        subject_hash=subject_hash,
        created_at=ops.now(),
        expires_at=expires,
    )
    _write_question(ops, place, again)
    return id


def _write_question(ops: WriteOps, place: QuestionPlace, record: QuestionRecord) -> None:
    ops.upsert(NodeLabel.QUESTION, [encode(record)])
    ops.link(EdgeType.ASKED, [(place.asker, record.id)])
    data: dict[str, object] = {
        "question": record.id,
        "kind": record.kind,
        "title": record.name,
        "blocking": record.is_blocking,
    }
    if record.subject:
        data |= {"subject": record.subject, "subjectHash": record.subject_hash}
    kind = EventKind.QUESTION_ASKED
    runs.append_event(ops, place.run, kind, task=place.task, attempt=place.attempt, data=data)


def _next_id(ops: WriteOps, place: QuestionPlace, beside: str = "") -> tuple[str, bool]:
    """Return the id of the next question of a call, and whether it is asked already."""
    number = 0
    while (known := find(ops, id := _id(place, number))) is not None:
        if known.state == OPEN and id != beside:
            return id, True
        number += 1
    return id, False


def close(ops: WriteOps, id: str, closing: QuestionClosing) -> QuestionRecord | None:
    """Close an open question with its event; None if it is closed already."""
    change = QuestionCloseChange(
        state=closing.state,
        answer=ABSENT if closing.values is None else PackedJson.pack(closing.values),
        answered_by=closing.by,
        transport=closing.transport,
        closed_at=ops.now(),
    )
    # Compared in the transaction of the answer: of two answers, one finds it closed.
    row = ops.patch_if(NodeLabel.QUESTION, id, {"state": OPEN}, encode(change))
    if row is None:
        return None
    record = QuestionRecord.from_row(row)
    data: dict[str, object] = {
        "question": id,
        "state": closing.state,
        "answer": closing.values,
        "by": closing.by,
        "transport": closing.transport,
        "blocking": record.is_blocking,
    }
    if closing.replaced_by:
        data |= {
            "replacedBy": closing.replaced_by,
            "subjectHash": closing.subject_hash,
            "text": closing.text,
        }
    kind = EventKind.QUESTION_CLOSED
    runs.append_event(ops, record.run_id, kind, task=record.task, attempt=record.attempt, data=data)
    return record


def withdraw_open(ops: WriteOps, run: str) -> None:
    """Withdraw the open questions of a run that ends."""
    closing = QuestionClosing(state="withdrawn", values=None, by="", transport="")
    for one in load_open(ops, run):
        close(ops, one.id, closing)


def load(reads: ReadOps, id: str) -> QuestionRecord:
    """Load a question.

    Raises:
        StoreError: There is none.
    """
    record = find(reads, id)
    if record is None:
        raise StoreError(f"There is no question {id!r}.")
    return record


def load_open(reads: ReadOps, run: str) -> list[QuestionRecord]:
    """Load the open questions of a run, oldest first."""
    return _find(reads, {"runId": run, "state": OPEN})


def load_of_run(reads: ReadOps, run: str) -> list[QuestionRecord]:
    """Load the questions of a run, oldest first."""
    return _find(reads, {"runId": run})


def load_of_project(reads: ReadOps, project_id: str, *, every: bool) -> list[QuestionRecord]:
    """Load the questions of a project, oldest first; only open ones unless `every`."""
    state: Where = {} if every else {"state": OPEN}
    return _find(reads, {"projectId": project_id, **state})


def list_corrections(reads: ReadOps, run: str, task: str, *, before: str = "") -> list[str]:
    """Return the answers of a task that differ from its assumptions, as required fixes.

    `before` is a time, ISO-8601 UTC: later answers do not count. Empty: all count.
    """
    return [
        correction_text(one.id, one.name, assumed=one.default_values or {}, answer=one.values or {})
        for one in _find(reads, {"runId": run, "task": task, "state": "answered"})
        if one.is_correction and not (before and one.closed_at >= before)
    ]


def _find(reads: ReadOps, where: Where) -> list[QuestionRecord]:
    return run_reading.find_records(reads, QuestionRecord, where, order=("createdAt", "id"))


def find(reads: ReadOps, id: str) -> QuestionRecord | None:
    """Return a question; None: there is none."""
    return run_reading.load_record(reads, QuestionRecord, id)


def _id(place: QuestionPlace, number: int) -> str:
    """Return the id of a question: a replay gives the same one."""
    # Of the call and not random; the number tells apart a call that was cut and made again.
    call = f"{ids.call_id(place.lane, place.seq)} {place.request_hash} {number}"
    return f"q-{hashlib.sha256(call.encode()).hexdigest()[:_DIGITS]}"
