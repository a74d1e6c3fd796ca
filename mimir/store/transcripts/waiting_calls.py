"""Calls that ask the user: the question with its intent, the answer with its outcome.

Each is one transaction. Between the two the task has no lease, and only the answer writes to the transcript.
"""

from mimir.domain import ids
from mimir.domain.call_outcome import CallOutcome
from mimir.domain.question import NewQuestion, QuestionClosing
from mimir.domain.usage import TokenUsage
from mimir.errors import StoreError
from mimir.store.operations import claims
from mimir.store.protocol import WriteOps
from mimir.store.questions import question_rows
from mimir.store.questions.question_rows import QuestionPlace
from mimir.store.records.call_records import CallRecord
from mimir.store.records.question_records import QuestionRecord
from mimir.store.run_reading import load_record
from mimir.store.schema import NodeLabel
from mimir.store.transcripts import call_rows
from mimir.store.transcripts.call_rows import CallRequest, CompletedCall, StoredCall, TranscriptKey


def write_question(
    ops: WriteOps,
    place: TranscriptKey,
    asked: CallRequest,
    question: NewQuestion,
) -> tuple[str, str]:
    """Write the intent of a call that asks, and its question; return (question, refusal).

    With a blocking question, the lease of the task ends in the same transaction. A planning run has no task: it pauses.

    Raises:
        LeaseLost: The fence is old.
    """
    call_rows.write_intent(ops, place, asked, ())
    where = _place_of(place, asked.seq, asked.hash)
    if place.fence is None and not question.is_blocking:
        return "", "before the plan is made, every question waits: leave out `blocking`."
    # The limits apply to agents: the engine asks for each approval once.
    if question.kind == "input" and (reason := question_rows.refusal(ops, where, question.limits)):
        return "", reason
    id = question_rows.put_question(ops, where, question)
    if question.is_blocking:
        ops.patch(NodeLabel.CALL, ids.call_id(place.lane, asked.seq), {"waitsFor": id})
        if place.fence is not None:
            claims.wait(ops, place.run, place.task, place.fence, id)
    return id, ""


def replace_question(ops: WriteOps, old: QuestionRecord, subject_hash: str, text: str) -> str:
    """Withdraw an open approval whose subject changed, and ask with `text`; return the new id."""
    call = _load_waiting(ops, old)
    where = _place_of(_key_of(old), old.number, call.request_hash)
    id = question_rows.replace_question(ops, old, where, subject_hash, text)
    ops.patch(NodeLabel.CALL, call.id, {"waitsFor": id})
    return id


def close_question(
    ops: WriteOps, id: str, closing: QuestionClosing, outcome: CallOutcome
) -> QuestionRecord | None:
    """Close a question; a task that waits for it gets `outcome` and can be claimed again.

    Returns:
        The question as it was closed. None: it was closed before; nothing was changed.

    Raises:
        StoreError: The task does not wait for it.
    """
    # Its event comes first: a replay repeats the whole transaction at this event.
    record = question_rows.close(ops, id, closing)
    if record is None or not record.is_blocking:
        return record
    call = _load_waiting(ops, record)
    # Under the fence of the question: no process has claimed the task since.
    call_rows.write_outcomes(ops, _key_of(record), [_complete_call(ops, call, outcome)])
    # A planning run has no task to wake; its transcript continues when it is resumed.
    is_awake = not record.fence or claims.wake(ops, record.run_id, record.task, record.fence, id)
    if not is_awake:
        raise StoreError(f"Task {record.task!r} of run {record.run_id} does not wait for {id}.")
    return record


def _load_waiting(ops: WriteOps, question: QuestionRecord) -> CallRecord:
    """Load the call that waits for a question."""
    name = ids.call_id(question.transcript, question.number)
    call = load_record(ops, CallRecord, name)
    if call is None or call.is_done:
        raise StoreError(f"The call {name!r} does not wait for the question {question.id}.")
    return call


def _key_of(question: QuestionRecord) -> TranscriptKey:
    return TranscriptKey(
        run=question.run_id,
        task=question.task,
        attempt=question.attempt,
        role=question.asked_by,
        fence=question.fence or None,
        lane=question.transcript,
    )


def _place_of(key: TranscriptKey, number: int, request_hash: str) -> QuestionPlace:
    return QuestionPlace(
        run=key.run,
        task=key.task,
        attempt=key.attempt,
        role=key.role,
        fence=key.fence or 0,
        lane=key.lane,
        seq=number,
        request_hash=request_hash,
    )


def _complete_call(ops: WriteOps, call: CallRecord, outcome: CallOutcome) -> CompletedCall:
    """Return the waiting call with its outcome, hashed over the calls before it."""
    rows = {call_rows.seq_of(row): row for row in call_rows.rows(ops, call.transcript)}
    # A tool call has no shared texts: the stored delta is the whole delta.
    asked = CallRequest(
        seq=call.number,
        kind="tool",
        hash=call.request_hash,
        delta=call.delta.text,
        kept=call.delta.text,
        tool=call.tool,
        title=call.title,
        bound=TokenUsage(),
    )
    before = call_rows.hash_before(call.transcript, rows, call.number)
    number = call_rows.tools_before(rows, call.number) + 1
    return CompletedCall.after(before, StoredCall.of(asked, outcome), number)
