"""Recorded answers to questions, given again where a run with replayed models asks them."""

from collections.abc import Iterator, Mapping
from typing import get_args

from mimir.domain.call_outcome import outcome_of_closing
from mimir.domain.event import EventKind
from mimir.domain.json_value import as_member, as_object, as_text, is_object
from mimir.domain.question import QuestionClosing, check_values, read_form
from mimir.domain.question_states import OPEN, QuestionState
from mimir.recordings.format.recording import RecordedRun, Recording
from mimir.store.protocol import WriteOps
from mimir.store.questions import question_rows
from mimir.store.records.question_records import QuestionRecord
from mimir.store.transcripts.waiting_calls import close_question

Asked = tuple[str, str]
"""(task, title)."""


def give_recorded_answers(ops: WriteOps, run: str, recording: Recording) -> bool:
    """Close open questions of a run as the same ones were; return whether there was one."""
    # Ids differ: they are of the run. One title that a task repeats keeps its order.
    known: dict[Asked, list[QuestionClosing]] = {}
    for recorded in recording.runs.values():
        for asked, closing in _closings(recorded):
            known.setdefault(asked, []).append(closing)
    given = False
    for one in question_rows.load_of_run(ops, run):
        left = known.get((one.task, one.name))
        # A file never approves: only the user does.
        if left and one.is_blocking and one.kind == "input":
            closing = left.pop(0)
            given |= one.state == OPEN and _close(ops, one, closing)
    return given


def _closings(recorded: RecordedRun) -> Iterator[tuple[Asked, QuestionClosing]]:
    """Yield the recorded ends of questions in the order in which they were asked."""
    ends: Mapping[str, Mapping[str, object]] = {
        as_text(event.data.get("question")): event.data
        for event in recorded.events
        if event.kind is EventKind.QUESTION_CLOSED
    }
    for event in recorded.events:
        data = as_object(ends.get(as_text(event.data.get("question"))))
        if event.kind is EventKind.QUESTION_ASKED and data:
            answer = data.get("answer")
            closing = QuestionClosing(
                state=as_member(data.get("state"), get_args(QuestionState)) or "withdrawn",
                values=answer if is_object(answer) else None,
                by=as_text(data.get("by")),
                transport="recording",
            )
            yield (event.task, as_text(event.data.get("title"))), closing


def _close(ops: WriteOps, question: QuestionRecord, closing: QuestionClosing) -> bool:
    # A recording may be edited, and the question may have another form by now.
    if closing.values is None or closing.state not in ("answered", "expired", "rejected"):
        return False
    try:
        check_values(read_form(question.schema.mapping()), closing.values)
    except ValueError:
        return False
    return close_question(ops, question.id, closing, outcome_of_closing(closing)) is not None
