"""What the loop makes of a model's reply: act on it, take it as the answer, or ask again. Pure.

The rule of the file: an answer that was cut short is never taken for a complete one, and a call that was cut short is never run.
"""

from dataclasses import dataclass
from typing import Literal

from mimir.domain.message import Answer, Message, ToolCall
from mimir.domain.usage import estimate

CUT_CALLS_ALLOWED = 3
"""Messages in a row whose tool calls were cut off; one more, and the model cannot be helped."""
ASKED_AGAIN = 1
"""Re-asks in a row for an answer that is empty or cut off."""
TOO_LONG = 4
"""A reply this many times longer than was allowed is not kept: it would fill the context of every later call."""

NOT_RUN_BUDGET = "not run: tool budget used up"
NOT_RUN_CLOSING = "not run: a closing answer was asked for"
NOT_RUN_CUT = (
    "not run: your message was cut off at its token limit before this call was complete. Write in parts: "
    "make the file with its first part, then add the rest with further calls, each well below the limit."
)
EMPTY = "Your last message was empty: no text and no tool call. Go on with the task, or give your closing answer."
CLOSING_EMPTY = (
    "Your last message held no text. No further tool call will be run: give your closing answer now, as text, "
    "in the form that your instructions ask for."
)

Kind = Literal["act", "answer", "cut_calls", "cut_text", "too_long", "empty", "filtered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableReplies:
    """Replies in a row that could not be used; a good one starts again from none."""

    unusable: int = 0
    """Empty or cut-off answers."""
    cut_calls: int = 0

    def after(self, kind: Kind) -> "UnusableReplies":
        """Return the count after one more reply."""
        if kind == "cut_calls":
            return UnusableReplies(unusable=self.unusable, cut_calls=self.cut_calls + 1)
        if kind in ("cut_text", "too_long", "empty"):
            return UnusableReplies(unusable=self.unusable + 1, cut_calls=self.cut_calls)
        return UnusableReplies()

    @property
    def exhausted(self) -> bool:
        """True when asking again has no more sense."""
        return self.unusable > ASKED_AGAIN or self.cut_calls > CUT_CALLS_ALLOWED


def kind_of(answer: Answer, *, closing: bool, max_tokens: int) -> Kind:
    """Say what to make of a reply.

    Args:
        answer: As the model gave it.
        closing: True once a closing answer was asked for; calls are then ignored.
        max_tokens: What the reply was allowed.
    """
    calls = () if closing else answer.message.calls
    if answer.finish == "content_filter":
        return "filtered"
    if _size(answer.message) > TOO_LONG * max_tokens:
        return "too_long"
    if answer.finish == "length":
        return "cut_calls" if calls else "cut_text"
    if calls:
        return "act"
    return "answer" if answer.message.text.strip() else "empty"


def ask_again(kind: Kind, *, max_tokens: int, closing: bool) -> str:
    """Write what the model is told after a reply that could not be used."""
    if kind == "empty":
        return CLOSING_EMPTY if closing else EMPTY
    # Half of the limit leaves room for a model that counts badly.
    words = max(50, max_tokens * 3 // 8)
    return (
        "Your last message was longer than its token limit, and a part of an answer is not accepted. "
        f"Give the whole answer again, shorter: at most {words} words, in the form that your instructions ask for."
    )


def fault(kind: Kind) -> str:
    """Name what was wrong with the last reply, for the error that ends the conversation."""
    match kind:
        case "cut_calls":
            return "its tool calls were cut off at the token limit again and again"
        case "cut_text":
            return "it was cut off at the token limit, also when asked for a shorter one"
        case "too_long":
            return "it was far longer than allowed, also when asked for a shorter one"
        case _:
            return "it was empty, also when asked again"


def not_run(call: ToolCall, why: str, *, closing: bool = False) -> Message:
    """Answer a call that was not let through: providers want a result for each call of a message."""
    return Message(
        role="tool", text=why, call_id=call.id, tool=call.name, ran=False, closing=closing
    )


def _size(message: Message) -> int:
    return estimate(message.text) + sum(estimate(call.arguments) for call in message.calls)
