"""Verb `answer_question`: one transaction closes it, records the call, and wakes the task."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from mimir.domain.call_outcome import outcome_of_closing
from mimir.domain.event import EventKind
from mimir.domain.question import (
    QuestionClosing,
    QuestionForm,
    describe_values,
    parse_answer,
    placeholder,
    read_form,
)
from mimir.domain.question_states import OPEN
from mimir.domain.task_states import RUN_ENDED, TERMINAL, RunStatus
from mimir.errors import MimirError, UsageError
from mimir.orchestrator.questions.inbox import find_question
from mimir.store.operations import runs
from mimir.store.operations.record_loading import find_task
from mimir.store.protocol import WriteOps
from mimir.store.questions import question_rows
from mimir.store.records.question_records import QuestionRecord
from mimir.store.run_reading import load_run
from mimir.store.transcripts.waiting_calls import close_question

SAME = "It is what the task has assumed."
CORRECTED = (
    "The task assumed otherwise: it is tried again with your answer, and uses up no attempt."
)
ENDED = "Its task has ended and assumed otherwise; the report says so. Nothing was changed."
"""Effects of an answer to a question that did not wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnswer:
    """Answer as the user typed it."""

    text: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    """Typed values by field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerResult:
    """A question that was answered."""

    question: str
    run: str
    task: str
    answer: str
    """On one line."""
    is_served: bool
    """Whether a live process serves the run."""
    effect: str = ""
    """Effect of an answer to a question that did not wait, in words.

    Empty: the question waited, and its task continues.
    """

    @property
    def next_step(self) -> str:
        """Next command; empty: the run continues by itself, or nothing does."""
        return "" if self.is_served or self.effect == ENDED else f"mimir resume {self.run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answerer:
    """Origin of answers."""

    project_id: str
    by: str
    """`user`."""
    transport: str
    """`terminal` or `file`."""
    redact: Callable[[str], str]
    dead: Collection[str] = ()
    """Owners of leases whose process is dead."""


def answer_question(
    ops: WriteOps, name: str, given: GivenAnswer, answerer: Answerer
) -> AnswerResult:
    """Answer a question by its id, or by `RUN/TASK`.

    Raises:
        UsageError: There is no such question, or the answer does not fit its form.
        MimirError: It is closed; the message names the answer that holds.
    """
    question = find_question(ops, answerer.project_id, name)
    run = load_run(ops, question.run_id)
    if question.state != OPEN:
        raise MimirError(describe_closed(question), next_step=f"mimir show {run.id}")
    if run.status in RUN_ENDED:
        raise MimirError(
            f"{question.id} belongs to run {run.id}, which has ended ({run.status.value}). Nothing changed.",
            next_step=f"mimir report {run.id}",
        )
    # Checked before it is redacted, so that the user reads about the own words.
    values = _redact_texts(_parse(question, given), answerer.redact)
    closing = QuestionClosing(
        state="answered", values=values, by=answerer.by, transport=answerer.transport
    )
    closed = close_question(ops, question.id, closing, outcome_of_closing(closing))
    if closed is None:
        raise MimirError(describe_closed(question_rows.load(ops, question.id)))
    effect = "" if closed.is_blocking else _describe_effect(ops, closed)
    shown = run.shown_status(ops.now(), answerer.dead)
    return AnswerResult(
        question=question.id,
        run=run.id,
        task=question.task,
        answer=describe_values(values),
        is_served=shown is RunStatus.RUNNING,
        effect=effect,
    )


def _describe_effect(ops: WriteOps, question: QuestionRecord) -> str:
    """Return what follows from an answer to work that has gone on with the default."""
    if not question.is_correction:
        return SAME
    task = find_task(ops, question.run_id, question.task)
    if task is None or task.status not in TERMINAL:
        return CORRECTED
    message = (
        f"{question.task} had ended when you answered {question.id} ({question.name}): "
        f"{describe_values(question.values or {})}. It assumed {describe_values(question.default_values or {})}."
    )
    # Without a task: no attempt made this event, and a replay repeats it.
    runs.append_event(ops, question.run_id, EventKind.WARNING, data={"message": message})
    return ENDED


def describe_closed(question: QuestionRecord) -> str:
    """Describe how a closed question ended, for a later caller."""
    # To the minute: the stored time has microseconds.
    at = question.closed_at[:16].replace("T", " ")
    match question.state:
        case "answered":
            answer = describe_values(question.values or {})
            shown = json.dumps(answer[:200], ensure_ascii=False)
            how = f" ({question.transport})" if question.transport else ""
            what = f"was answered at {at} UTC by {question.answered_by}{how}: {shown}"
        case "expired":
            what = f"expired at {at} UTC"
        case _:
            what = f"was withdrawn at {at} UTC, when its run ended"
    return f"{question.id} {what}. Nothing changed."


def _parse(question: QuestionRecord, given: GivenAnswer) -> Mapping[str, object]:
    form = read_form(question.schema.mapping())
    if given.text is None and not given.fields:
        raise UsageError(f"{question.id} needs an answer.", next_step=_usage(question, form))
    try:
        return parse_answer(form, given.text, given.fields)
    except ValueError as error:
        raise UsageError(
            f"The answer to {question.id} was not taken: {error}. The question stays open.",
            next_step=_usage(question, form),
        ) from None


def _usage(question: QuestionRecord, form: QuestionForm) -> str:
    """Return the command that answers a question."""
    return f"mimir answer {question.id} {placeholder(form)}"


def _redact_texts(
    values: Mapping[str, object], redact: Callable[[str], str]
) -> Mapping[str, object]:
    """Replace the secrets of the settings in texts: answers go to a model and into reports."""
    return {
        name: redact(value) if isinstance(value, str) else value for name, value in values.items()
    }
