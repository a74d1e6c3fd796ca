"""Verb `answer_question`: one transaction closes it, records the call, and wakes the task."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from mimir.domain import approval
from mimir.domain.call_outcome import CallOutcome, outcome_of_closing
from mimir.domain.event import EventKind
from mimir.domain.question import (
    QuestionClosing,
    describe_values,
    parse_answer,
    placeholder,
    read_form,
)
from mimir.domain.question_states import OPEN
from mimir.domain.task_states import RUN_ENDED, TERMINAL, RunStatus
from mimir.domain.text_hash import hash_text
from mimir.domain.value_class import value_class
from mimir.errors import MimirError, UsageError
from mimir.orchestrator.questions.inbox import find_question
from mimir.store.operations import runs
from mimir.store.operations.record_loading import find_task
from mimir.store.protocol import Transactions, WriteOps
from mimir.store.questions import question_rows
from mimir.store.records.question_records import QuestionRecord
from mimir.store.run_reading import load_run
from mimir.store.transcripts.waiting_calls import close_question, replace_question
from mimir.workspace.state_dir import write_state_file

DECLINED = "The user declined the form, without words."
"""Reason of a rejection in a form that was declined."""
SAME = "It equals the assumption of the task."
CORRECTED = (
    "The task assumed otherwise: it is tried again with your answer, and uses up no attempt."
)
ENDED = "Its task has ended and assumed otherwise; the report says so. Nothing was changed."
"""Effects of an answer to a question that did not wait."""


@value_class
class GivenAnswer:
    """Answer as the user typed it."""

    text: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    """Typed values by field."""
    reason: str = ""
    """Words of a rejection."""
    edited: str | None = None
    """Text that is approved in place of the subject. None: the file as it is."""
    is_declined: bool = False
    """Whether the user declined a form: an approval is rejected, or the default applies."""


@value_class
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
    refusal: str = ""
    """Reason of its refusal: another answer was first, or the subject changed. Empty: taken."""
    refusal_step: str = "mimir inbox"
    """Next command after a refusal."""
    edited: tuple[str, str] | None = None
    """(path, text) of a subject that the user approved in another form."""

    @property
    def next_step(self) -> str:
        """Next command; empty: the run continues automatically, or nothing does."""
        return "" if self.is_served or self.effect == ENDED else f"mimir resume {self.run}"


@value_class
class Answerer:
    """Origin of answers."""

    project_id: str
    by: str
    """`user`."""
    transport: str
    """`terminal` or `file`."""
    redact: Callable[[str], str]
    project: Path
    """Directory with the files that approvals are about."""
    dead: Collection[str] = ()
    """Owners of leases whose process is dead."""


async def give_answer(
    store: Transactions, name: str, given: GivenAnswer, answerer: Answerer
) -> AnswerResult:
    """Answer a question by its id, or by `RUN/TASK`, in a transaction of its own.

    Raises:
        UsageError: There is no such question, or the answer does not fit its form.
        MimirError: It is closed, or its subject has changed.
    """
    write = partial(answer_question, name=name, given=given, answerer=answerer)
    return conclude_answer(await store.write(write), answerer)


def conclude_answer(result: AnswerResult, answerer: Answerer) -> AnswerResult:
    """Return the result of `answer_question` after its transaction; write an edited subject.

    Raises:
        MimirError: The subject of an approval has changed, so it was not taken.
    """
    if result.refusal:
        raise MimirError(result.refusal, next_step=result.refusal_step)
    # After the transaction, which may be repeated; the outcome of the call has the text.
    if result.edited is not None:
        path, text = result.edited
        write_state_file(answerer.project, path, text.encode())
    return result


def answer_question(
    ops: WriteOps, name: str, given: GivenAnswer, answerer: Answerer
) -> AnswerResult:
    """Answer a question; an approval whose subject changed is asked again instead.

    Raises:
        UsageError: There is no such question, or the answer does not fit its form.
        MimirError: Its run has ended.
    """
    question = find_question(ops, answerer.project_id, name)
    run = load_run(ops, question.run_id)
    shown = run.shown_status(ops.now(), answerer.dead)
    result = AnswerResult(
        question=question.id,
        run=run.id,
        task=question.task,
        answer="",
        is_served=shown is RunStatus.RUNNING,
    )
    if question.state != OPEN:
        # A run that has ended is sealed with its events.
        return _refuse_late(
            ops, question, answerer, result, is_recorded=run.status not in RUN_ENDED
        )
    if run.status in RUN_ENDED:
        raise MimirError(
            f"{question.id} belongs to run {run.id}, which has ended ({run.status.value}). Nothing changed.",
            next_step=f"mimir report {run.id}",
        )
    if question.kind == "approval":
        return _decide(ops, question, given, answerer, result)
    if given.reason or given.edited is not None:
        raise UsageError(
            f"{question.id} is no approval: it takes no reason and no edited file.",
            next_step=answer_command(question),
        )
    if given.is_declined:
        # As if no answer had come in time, but at once.
        state, values = "rejected", question.default_values
    else:
        # Checked before it is redacted, so that the user reads about the own words.
        state, values = "answered", _redact_texts(_parse(question, given), answerer.redact)
    closing = QuestionClosing(
        state=state, values=values, by=answerer.by, transport=answerer.transport
    )
    outcome = outcome_of_closing(closing)
    return _close(ops, question, closing, outcome, answerer, result)


def _decide(
    ops: WriteOps,
    question: QuestionRecord,
    given: GivenAnswer,
    answerer: Answerer,
    result: AnswerResult,
) -> AnswerResult:
    """Close an approval with the subject as it is now; ask again if that is another one."""
    values = _redact_texts(_parse(question, given), answerer.redact)
    is_rejected = approval.is_rejection(values)
    if is_rejected and given.edited is not None:
        raise UsageError(
            "--edit approves the edited file, so it excludes a rejection.",
            next_step=answer_command(question),
        )
    text = given.edited
    if text is None:
        text = read_subject(answerer.project, question.subject)
        # The user has not seen this text, so even a rejection needs a new question.
        if hash_text(text) != question.subject_hash:
            shown = answerer.redact(approval.describe_change(question.text, text))
            id = replace_question(ops, question, hash_text(text), shown)
            noun = approval.subject_noun(question.name)
            refusal = f"The {noun} changed after {question.id} was asked. {question.id} is withdrawn; {id} replaces it."
            return replace(result, refusal=refusal)
    closing = QuestionClosing(
        state="rejected" if is_rejected else "answered",
        values=values,
        by=answerer.by,
        transport=answerer.transport,
    )
    outcome = approval.outcome_of_decision(closing, text)
    edited = None if given.edited is None else (question.subject, text)
    closed = _close(ops, question, closing, outcome, answerer, result)
    return closed if closed.refusal else replace(closed, edited=edited)


def _refuse_late(
    ops: WriteOps,
    question: QuestionRecord,
    answerer: Answerer,
    result: AnswerResult,
    *,
    is_recorded: bool,
) -> AnswerResult:
    """Refuse an answer to a closed question; its text may be a secret, and is not recorded."""
    if is_recorded:
        message = f"{answerer.by} ({answerer.transport}) answered {question.id} too late."
        data = {
            "question": question.id,
            "by": answerer.by,
            "transport": answerer.transport,
            "message": message,
        }
        runs.append_event(ops, question.run_id, EventKind.ANSWER_REFUSED, data=data)
    step = f"mimir show {question.run_id}"
    return replace(result, refusal=describe_closed(question), refusal_step=step)


def read_subject(project: Path, path: str) -> str:
    """Return the text of the file that an approval is about.

    Raises:
        UsageError: It cannot be read; the question stays open.
    """
    try:
        data = (project / path).read_bytes()
        if len(data) > approval.MAX_SUBJECT_BYTES:
            raise ValueError(f"it has more than {approval.MAX_SUBJECT_BYTES:,} bytes")
        return data.decode()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}. The question stays open.",
            next_step="Write the file again, or give its text: --edit FILE",
        ) from None


def _close(
    ops: WriteOps,
    question: QuestionRecord,
    closing: QuestionClosing,
    outcome: CallOutcome,
    answerer: Answerer,
    result: AnswerResult,
) -> AnswerResult:
    closed = close_question(ops, question.id, closing, outcome)
    if closed is None:
        late = question_rows.load(ops, question.id)
        return _refuse_late(ops, late, answerer, result, is_recorded=True)
    effect = "" if closed.is_blocking else _describe_effect(ops, closed)
    return replace(result, answer=describe_values(closing.values or {}), effect=effect)


def _describe_effect(ops: WriteOps, question: QuestionRecord) -> str:
    """Return the effect of an answer on work that continued with the default."""
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
        case "answered" | "rejected":
            answer = describe_values(question.values) if question.values else "no answer"
            shown = json.dumps(answer[:200], ensure_ascii=False)
            how = f" ({question.transport})" if question.transport else ""
            end = f"was {question.state} at {at} UTC by {question.answered_by}{how}: {shown}"
        case "expired":
            end = f"expired at {at} UTC"
        case _ if question.kind == "approval":
            end = f"was withdrawn at {at} UTC, when its subject changed or its run ended"
        case _:
            end = f"was withdrawn at {at} UTC, when its run ended"
    return f"{question.id} {end}. Nothing changed."


def _parse(question: QuestionRecord, given: GivenAnswer) -> Mapping[str, object]:
    usage = answer_command(question)
    is_empty = given.text is None and not given.fields and given.edited is None
    if is_empty and not given.is_declined:
        raise UsageError(f"{question.id} needs an answer.", next_step=usage)
    try:
        if question.kind == "approval":
            return _parse_decision(given)
        form = read_form(question.schema.mapping())
        return parse_answer(form, given.text, given.fields)
    except ValueError as error:
        raise UsageError(
            f"The answer to {question.id} was not taken: {error}. The question stays open.",
            next_step=usage,
        ) from None


def _parse_decision(given: GivenAnswer) -> Mapping[str, object]:
    if given.is_declined:
        return approval.parse_decision("no", DECLINED)
    typed = dict(given.fields)
    # A file of answers names it `decision`, a form has the field of the question.
    named = typed.pop("decision", None) or typed.pop(approval.DECISION, None)
    text = given.text if given.text is not None else named
    reason = given.reason or typed.pop("reason", "")
    if typed:
        raise ValueError(f"an approval has no field {next(iter(typed))[:60]!r}")
    # A file that was edited for it is an approval by itself.
    return approval.parse_decision(
        "yes" if text is None and given.edited is not None else text, reason
    )


def answer_command(question: QuestionRecord) -> str:
    """Return the command that answers a question."""
    if question.kind == "approval":
        return f"mimir answer {question.id} {approval.USAGE}"
    return f"mimir answer {question.id} {placeholder(read_form(question.schema.mapping()))}"


def _redact_texts(
    values: Mapping[str, object], redact: Callable[[str], str]
) -> Mapping[str, object]:
    """Replace the secrets of the settings in texts: answers go to a model and into reports."""
    return {
        name: redact(value) if isinstance(value, str) else value for name, value in values.items()
    }
