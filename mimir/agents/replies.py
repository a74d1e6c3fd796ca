"""Classification of model replies: act on it, take it as the answer, or ask again. Pure.

An answer that was cut short is never taken for a complete one, and a call that was cut short never runs.
"""

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Literal

from mimir.agents.text_calls import ends_with_call
from mimir.domain.json_value import as_object, as_text
from mimir.domain.message import Answer, Message, ToolCall
from mimir.domain.usage import estimate
from mimir.domain.value_class import value_class

# Messages in a row with cut tool calls; after one more the conversation fails.
CUT_CALLS_ALLOWED = 3
# Repeated requests in a row for an answer that is empty or cut.
ASKED_AGAIN = 1
# A reply so many times its limit is dropped: it would fill the context of every later call.
TOO_LONG = 4

NOT_RUN_BUDGET = "not run: tool budget used up"
NOT_RUN_CLOSING = "not run: a closing answer was asked for"
NOT_RUN_CUT = (
    "not run: your message was cut off at its token limit before this call was complete. Write in parts: "
    "make the file with its first part, then add the rest with further calls, each well below the limit."
)
_FENCES = ("```", "```markdown", "```md")

EMPTY = "Your last message was empty: no text and no tool call. Go on with the task, or give your closing answer."
CLOSING_EMPTY = (
    "Your last message held no text. No further tool call will be run: give your closing answer now, as text, "
    "in the form that your instructions ask for."
)

TEXT_CALL = (
    "Your last message ended with a tool call written as text. Text does not run. Call a tool in the field for tool calls of "
    "your message, by the function-calling interface; your tools: {tools}. If the text was your closing answer, give it again "
    "and end it with a sentence."
)

Kind = Literal[
    "act", "answer", "cut_calls", "cut_text", "text_call", "too_long", "empty", "filtered"
]


@value_class
class UnusableReplies:
    """Number of unusable replies in a row; a good one resets it."""

    unusable: int = 0
    """Empty or cut answers."""
    cut_calls: int = 0

    def count_reply(self, kind: Kind) -> "UnusableReplies":
        """Return the numbers after one more reply."""
        if kind == "cut_calls":
            return UnusableReplies(unusable=self.unusable, cut_calls=self.cut_calls + 1)
        if kind in ("cut_text", "text_call", "too_long", "empty"):
            return UnusableReplies(unusable=self.unusable + 1, cut_calls=self.cut_calls)
        return UnusableReplies()

    @property
    def exhausted(self) -> bool:
        """True if the model must not be asked again."""
        return self.unusable > ASKED_AGAIN or self.cut_calls > CUT_CALLS_ALLOWED


def classify_reply(
    answer: Answer, *, closing: bool, max_tokens: int, tools: Collection[str] = ()
) -> Kind:
    """Classify a reply; after a request for a closing answer its calls are ignored."""
    calls = () if closing else answer.message.calls
    if answer.finish == "content_filter":
        return "filtered"
    # Before `length`: a far too long reply must not enter the context at all.
    message = answer.message
    size = estimate(message.text) + sum(estimate(call.arguments) for call in message.calls)
    if size > TOO_LONG * max_tokens:
        return "too_long"
    if answer.finish == "length":
        return "cut_calls" if calls else "cut_text"
    if calls:
        return "act"
    if not closing and ends_with_call(answer.message.text, tools):
        return "text_call"
    return "answer" if answer.message.text.strip() else "empty"


def take_reasoning(answer: Answer) -> Answer:
    """Return the answer with its reasoning as text, if it has no other text."""
    # Some servers put a whole answer there; the first time, the model is asked again.
    try:
        members = as_object(json.loads(answer.message.opaque or "{}"))
    except ValueError:
        return answer
    text = as_text(members.get("reasoning_content")) or as_text(members.get("reasoning"))
    return replace(answer, message=replace(answer.message, text=text))


def ask_again(kind: Kind, *, max_tokens: int, closing: bool, tools: Collection[str] = ()) -> str:
    """Return the user message that follows an unusable reply."""
    if kind == "text_call":
        return TEXT_CALL.format(tools=", ".join(sorted(tools)))
    if kind == "empty":
        return CLOSING_EMPTY if closing else EMPTY
    # Half of the limit, since models count badly.
    words = max(50, max_tokens * 3 // 8)
    return (
        "Your last message was longer than its token limit, and a part of an answer is not accepted. "
        f"Give the whole answer again, shorter: at most {words} words, in the form that your instructions ask for."
    )


_FAULTS: dict[Kind, str] = {
    "cut_calls": "its tool calls were cut off at the token limit again and again",
    "cut_text": "it was cut off at the token limit, also when asked for a shorter one (max_tokens of [roles.NAME])",
    "text_call": "it wrote a tool call as text, also when told how to call a tool; "
    "the server's parser of tool calls may be off",
    "too_long": "it was far longer than allowed, also when asked for a shorter one",
}


def describe_fault(kind: Kind) -> str:
    """Return the fault of the last reply, for the error that ends the conversation."""
    return _FAULTS.get(kind, "it was empty, also when asked again")


def not_run(call: ToolCall, why: str, *, closing: bool = False) -> Message:
    """Return the result of a call that did not run: providers need one for each call."""
    return Message(
        role="tool", text=why, call_id=call.id, tool=call.name, ran=False, closing=closing
    )


def strip_fence(text: str) -> str:
    """Return the document of an answer without its fence and the words before that."""
    lines = text.strip().splitlines()
    start = next((n for n, line in enumerate(lines) if line.strip() in _FENCES), len(lines))
    inner = lines[start + 1 : -1]
    is_document = any(line.startswith("#") for line in inner)
    # A heading before the fence begins the document: the fence is a part of it.
    is_whole = is_document and not any(line.startswith("#") for line in lines[:start])
    return "\n".join(inner).strip() if is_whole and lines[-1].strip() == "```" else text
