"""The numbered record of an agent's tool calls: what the engine writes around a result, and how to read it back. Pure.

Calls are numbered from 1 in the order in which they were let through. The number stands before the result, so that the agent can cite it:
`[call:7] "3 passed"` (QC: `[qc:7]`). Everything follows from the messages, so a resumed conversation numbers as the first one did.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mimir.domain.message import Message, ToolCall

Label = Literal["call", "qc"]
"""`call`: the worker's ledger; `qc`: the judge's own."""

REPEATED = (
    "\n\n[engine] This is the second time that this call gave this result on unchanged files. "
    "A third time ends your use of tools: change something, or give your closing answer."
)
"""Added to a result by the loop; `plain` takes it off again."""

_NUMBER = re.compile(r"\A\[(?:call|qc):\d+\]\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLogEntry:
    """One call that was let through, and what it said."""

    number: int
    """1-based; what a citation names."""
    tool: str
    arguments: str
    """Raw, as the model wrote them."""
    text: str
    """The result as the tool gave it."""
    tree: str
    """Workspace tree after the call; the last one known, empty before the first."""


def number_result(label: Label, number: int, text: str) -> str:
    """Put a call's number before its result."""
    return f"[{label}:{number}]\n{text}"


def plain(message: Message) -> str:
    """Return a tool message's text without what the engine wrote around it."""
    return _NUMBER.sub("", message.text, count=1).removesuffix(REPEATED)


def count_admitted_calls(messages: Sequence[Message]) -> int:
    """Count the calls that were let through; denied, unknown and invalid ones among them, "not run" ones not."""
    return sum(m.role == "tool" and m.ran for m in messages)


def count_turns(messages: Sequence[Message]) -> Iterator[tuple[tuple[ToolCall, Message, str], ...]]:
    """Yield, for each message that asked for tools, its calls that ran: (call, result, tree after it).

    Calls and results are paired by position, not by id: ids come from the model and may repeat.
    """
    tree = ""
    at = 0
    while at < len(messages):
        asking = messages[at]
        at += 1
        if asking.role != "assistant" or not asking.calls:
            continue
        ran: list[tuple[ToolCall, Message, str]] = []
        for call in asking.calls:
            if at == len(messages) or messages[at].role != "tool":
                break
            result = messages[at]
            at += 1
            tree = result.tree or tree
            if result.ran:
                ran.append((call, result, tree))
        yield tuple(ran)


def entries(messages: Sequence[Message]) -> Mapping[int, ToolLogEntry]:
    """Return the ledger of a conversation, by number."""
    ran = [one for turn in count_turns(messages) for one in turn]
    return {
        number: ToolLogEntry(
            number=number, tool=call.name, arguments=call.arguments, text=plain(result), tree=tree
        )
        for number, (call, result, tree) in enumerate(ran, start=1)
    }
