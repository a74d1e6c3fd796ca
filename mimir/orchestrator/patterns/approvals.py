"""Stops of a planning run at which the user approves or rejects a file."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from mimir.domain.approval import (
    ApprovalDecision,
    ApprovalSubject,
    new_approval,
    read_decision,
)
from mimir.domain.question import QuestionLimits, remove_control
from mimir.domain.text_hash import hash_text
from mimir.domain.value_class import value_class
from mimir.errors import RejectedError
from mimir.store.transcripts.stored_transcript import StoredTranscript
from mimir.workspace.state_dir import write_state_file

Check = Callable[[str], tuple[str, ...]]
"""Returns the faults of a subject as sentences; empty: it has none."""
Revise = Callable[[str], Awaitable[str]]
"""Returns the text that the author wrote after a rejection, from the words for it."""


@value_class
class ApprovalStop:
    """One stop: a subject, asked about until the user approves it."""

    noun: str
    path: str
    consequence: str
    """Consequence of the approval, as a sentence."""
    transcript: StoredTranscript
    project: Path
    limits: QuestionLimits
    rejections: int
    """Rejections that end the run."""

    async def approve(self, text: str, revise: Revise, check: Check) -> str:
        """Return the text that the user approved.

        Args:
            text: Text of the author.
            revise: Called after each rejection, with the words of the user.
            check: Finds faults of a text. The user reads them; an approved text with a fault is asked about again.

        Raises:
            RejectedError: The user rejected it too often.
            Waiting: The user has not decided.
        """
        rejected = 0
        while True:
            asked = _readable(text)
            decision = await self._ask(asked, check(asked))
            # It expired: nothing was decided, so the same text is asked about again.
            if decision is None:
                continue
            if decision.is_approved:
                # The user may have edited the file: the approved text counts.
                if decision.text == asked or not check(decision.text):
                    return decision.text
                text = decision.text
                continue
            rejected += 1
            if rejected >= self.rejections:
                raise RejectedError(
                    f"The {self.noun} was rejected {rejected} times. The last reason: {decision.reason}",
                    next_step="Write a new request that answers the reasons of the rejections.",
                )
            text = await revise(_describe_rejection(self.noun, decision, asked))

    async def _ask(self, text: str, problems: tuple[str, ...]) -> ApprovalDecision | None:
        subject = ApprovalSubject(noun=self.noun, path=self.path, text=text)
        # Once it was asked, the file is the user's: a resume must not undo an edit.
        if not self.transcript.is_next_begun:
            write_state_file(self.project, self.path, text.encode())
        notes = f"Noted by mimir: {'; '.join(problems)}." if problems else ""
        question = new_approval(subject, self.consequence, notes, self.limits)
        # Of the text as it was written, so that a resume finds the same call.
        request = {"tool": "approve", "subject": self.path, "hash": hash_text(text)}
        outcome = await self.transcript.ask(request, question, title=question.title)
        return read_decision(outcome)


def _describe_rejection(noun: str, decision: ApprovalDecision, asked: str) -> str:
    """Return the words of the user for the author of a subject."""
    edited = ""
    if decision.text != asked:
        edited = f"\n\nThe user edited it first; it reads now:\n\n{decision.text}"
    return f"The user rejected this {noun}. The reason, word for word:\n\n{decision.reason}{edited}"


def _readable(text: str) -> str:
    """Return a text as a file that the user can read: without control characters."""
    return remove_control(text.strip().replace("\r\n", "\n")) + "\n"
