"""Tool log: the numbered tool calls of one conversation, for citations. Pure.

Admitted calls are numbered from 1. The number precedes the result, so the agent can cite it: `[call:7] "3 passed"` (QC: `[qc:7]`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from mimir.domain.message import Message, ToolCall
from mimir.domain.value_class import value_class

Label = Literal["call", "qc"]
"""`call`: the worker's tool log; `qc`: QC's own."""

# Added to a result by the loop; `result_text` removes it.
REPEATED = (
    "\n\n[engine] This is the second time that this call gave this result on unchanged files. "
    "A third time ends your use of tools: change something, or give your closing answer."
)

_NUMBER = re.compile(r"\A\[(?:call|qc):\d+\]\n")
_CALLS_LEFT = re.compile(r"\n\n\[engine\] \d+ of \d+ tool calls left\.\Z")


@value_class
class ToolLogEntry:
    """One admitted call and its result."""

    number: int
    """From 1; used by citations."""
    tool: str
    arguments: str
    """Raw, as the model wrote them."""
    text: str
    """The result as the tool gave it."""
    tree: str
    """Workspace tree after the call, or the last known one; empty before the first."""


def number_result(label: Label, number: int, text: str) -> str:
    """Return a result with its number."""
    return f"[{label}:{number}]\n{text}"


def note_calls_left(text: str, left: int, limit: int) -> str:
    """Return a result with the number of tool calls that are left."""
    return f"{text}\n\n[engine] {left} of {limit} tool calls left."


def result_text(message: Message) -> str:
    """Return the text of a tool message without number, warning and calls that are left."""
    text = _NUMBER.sub("", message.text, count=1)
    return _CALLS_LEFT.sub("", text).removesuffix(REPEATED)


def count_admitted_calls(messages: Sequence[Message]) -> int:
    """Count admitted calls: denied and invalid ones included, "not run" ones not."""
    return sum(m.role == "tool" and m.ran for m in messages)


def iterate_turns(
    messages: Sequence[Message],
) -> Iterator[tuple[tuple[ToolCall, Message, str], ...]]:
    """Yield, for each message with calls, those that ran: (call, result, tree after it)."""
    tree, at = "", 0
    while at < len(messages):
        asking = messages[at]
        at += 1
        if asking.role != "assistant" or not asking.calls:
            continue
        ran: list[tuple[ToolCall, Message, str]] = []
        # Paired by position, not by id: ids come from the model and may repeat.
        for call in asking.calls:
            if at == len(messages) or messages[at].role != "tool":
                break
            result = messages[at]
            at += 1
            tree = result.tree or tree  # reading tools leave it empty
            if result.ran:
                ran.append((call, result, tree))
        yield tuple(ran)


def entries(messages: Sequence[Message]) -> Mapping[int, ToolLogEntry]:
    """Return the tool log of a conversation, by number."""
    ran = [one for turn in iterate_turns(messages) for one in turn]
    return {
        number: ToolLogEntry(
            number=number,
            tool=call.name,
            arguments=call.arguments,
            text=result_text(result),
            tree=tree,
        )
        for number, (call, result, tree) in enumerate(ran, start=1)
    }
