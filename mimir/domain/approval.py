"""Approvals: the decision of the user on a subject, bound to its hash. Pure."""

import re
from collections.abc import Mapping
from typing import Literal

from mimir.domain.call_outcome import CallOutcome, encode_result
from mimir.domain.json_value import as_text, is_object
from mimir.domain.message import ToolResult
from mimir.domain.question import (
    MAX_ANSWER,
    MAX_TEXT,
    FormField,
    NewQuestion,
    QuestionClosing,
    QuestionForm,
    QuestionLimits,
    find_control,
    remove_control,
)
from mimir.domain.text_hash import hash_text
from mimir.domain.value_class import value_class

Decision = Literal["approve", "reject"]
APPROVE: Decision = "approve"
REJECT: Decision = "reject"
DECISION = "answer"
"""Name of the field with the decision."""
REASON = "reason"
MAX_SUBJECT_BYTES = 400_000

FORM = QuestionForm(
    fields=(
        FormField(name=DECISION, kind="choice", options=(APPROVE, REJECT)),
        FormField(name=REASON, kind="string", title="Reason of a rejection", is_optional=True),
    )
)
USAGE = 'yes, or no --reason "TEXT"'
_YES = ("yes", "y", "true", APPROVE, "approved", "accept")
_NO = ("no", "n", "false", REJECT, "rejected", "decline")
_WORDS = re.compile(r"\s*([A-Za-z]+)\s*(?:[,.:;–—-]+\s*|\s+|$)(.*)", re.DOTALL)
_SHOWN = 3000
"""Characters of a subject that a question quotes."""


@value_class
class ApprovalSubject:
    """Subject of a decision of the user."""

    noun: str
    """`summary`, `specification` or `plan`."""
    path: str
    """File in the project."""
    text: str

    @property
    def hash(self) -> str:
        """SHA-256 of the text."""
        return hash_text(self.text)


@value_class
class ApprovalDecision:
    """Decision of the user."""

    decision: Decision
    reason: str
    """Words of a rejection."""
    text: str
    """The subject as it was when the user decided."""

    @property
    def is_approved(self) -> bool:
        """Whether the user approved."""
        return self.decision == APPROVE


def new_approval(
    subject: ApprovalSubject, consequence: str, notes: str, limits: QuestionLimits
) -> NewQuestion:
    """Return the question that asks for an approval.

    Args:
        subject: The subject of the approval.
        consequence: Consequence of the approval.
        notes: Further facts that the user must know; empty: none.
        limits: Of the questions of the run.
    """
    head = f"yes: {consequence} no: your words go back to its author."
    return NewQuestion(
        title=f"Approve the {subject.noun}?",
        text=_quote_subject(head, notes, subject.text),
        form=FORM,
        default=None,
        is_blocking=True,
        limits=limits,
        subject=subject.path,
        subject_hash=subject.hash,
    )


def describe_change(asked: str, text: str) -> str:
    """Return the text of the question that replaces one, because its subject changed.

    Args:
        asked: Text of the question that is withdrawn.
        text: The subject as it is now.
    """
    head = asked.partition("\n\n")[0]
    return _quote_subject(head, "The file has changed since the last question. Now it is:", text)


def _quote_subject(head: str, notes: str, text: str) -> str:
    shown = remove_control(text.strip())
    cut = f"{shown[:_SHOWN]}\n… [the rest is in the file]" if len(shown) > _SHOWN else shown
    # First the effect of the answer, as the quoted text may be long.
    parts = (head, remove_control(notes.strip())[:700], cut)
    return "\n\n".join(part for part in parts if part)[:MAX_TEXT]


def subject_noun(title: str) -> str:
    """Return the noun of the subject in the title of an approval."""
    return title.removesuffix("?").rsplit(" ", 1)[-1]


def parse_decision(text: str | None, reason: str) -> Mapping[str, object]:
    """Return the values of a typed decision: `yes`, or `no` with words.

    Raises:
        ValueError: It is neither, or a rejection has no words.
    """
    found = _WORDS.fullmatch(text or "")
    word = found[1].lower() if found else ""
    rest = found[2].strip() if found else ""
    words = reason.strip() or rest
    # "yes, but …" is no approval: the words would be lost.
    if word in _YES and not rest:
        if words:
            raise ValueError(
                "a reason belongs to a rejection; to change the subject, edit its file"
            )
        return {DECISION: APPROVE}
    if word not in _NO:
        raise ValueError("it must be yes, or no with a reason")
    if not words:
        raise ValueError("a rejection needs a reason: it goes back to the author")
    if len(words) > MAX_ANSWER:
        raise ValueError(
            f"the reason has {len(words):,} characters; at most {MAX_ANSWER:,} are taken"
        )
    if control := find_control(words):
        raise ValueError(f"the reason holds the control character {control}")
    return {DECISION: REJECT, REASON: words}


def is_rejection(values: Mapping[str, object]) -> bool:
    """Return whether the values of an approval reject it."""
    return values.get(DECISION) == REJECT


def outcome_of_decision(closing: QuestionClosing, subject: str) -> CallOutcome:
    """Return the outcome of the call that asked for an approval."""
    result = encode_result(ToolResult(text=f"{closing.state}."))
    return CallOutcome(value={**result, "answer": closing.values, "subject": subject})


def read_decision(outcome: CallOutcome) -> ApprovalDecision | None:
    """Return the decision of a recorded outcome; None: it expired.

    Only an explicit approval approves: any other value rejects.
    """
    value = outcome.value
    answer = value.get("answer")
    if not is_object(answer):
        return None
    # In doubt it is rejected: nothing is executed by mistake.
    is_approved = answer.get(DECISION) == APPROVE
    return ApprovalDecision(
        decision=APPROVE if is_approved else REJECT,
        reason=as_text(answer.get(REASON)),
        text=as_text(value.get("subject")),
    )
