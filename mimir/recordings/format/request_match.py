"""Comparison of recorded requests to models with new ones: the first difference.

Outputs of tools and checks, and durations, do not count; names, arguments and exit codes of tools do.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from mimir.agents.context.pm import AGENTS, MEMORY, SANDBOX
from mimir.domain.json_value import as_array, is_object
from mimir.domain.message import Message, ModelRequest
from mimir.domain.value_class import value_class
from mimir.llm import codec
from mimir.llm.wrappers.journaled_model import settings_json
from mimir.recordings.format.recording import RecordedCall
from mimir.store.schema import pack

SHOWN = 60
"""Characters of a difference that are shown for each side."""
_VOLATILE = re.compile(
    r"""0x[0-9a-f]+
      | \d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?Z?)?
      | \d\d:\d\d:\d\d(?:[.,]\d+)?
      | \d+(?:[.,]\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SAID = re.compile(
    r"^((?:=== source (?:check:|call:|qc:)[^\n]* ===|Check \S+ of attempt \d+: [^\n]*)\n(?:(`{3,})text\n))(.*?)(^\2$)",
    re.MULTILINE | re.DOTALL,
)
"""Block of a brief with the output of a check or a tool."""
_OF_MACHINE = re.compile(
    rf"^(?:{re.escape(MEMORY)}|{re.escape(SANDBOX)}|{re.escape(AGENTS)})\n.*?(?=^## |\Z)",
    re.MULTILINE | re.DOTALL,
)
"""Parts of the PM's brief that depend on the store and the machine, not on the request."""
_OUTPUT = "end of its output after the work:"
_EXIT = re.compile(r"\A(?:\[(?:call|qc):\d+\]\n)?(exit code -?\d+|Error: )")


@value_class
class RecordedRequest:
    """One request: its messages, and the settings that influence the answer."""

    messages: tuple[Message, ...]
    settings: Mapping[str, object]


@value_class
class RequestDifference:
    """First difference of two requests."""

    part: str
    """`message 3 (tool)`, `setting 'tools'`."""
    recorded: str
    """Excerpt. Empty: there is no text."""
    asked: str
    first: int = 0
    """First differing character of the part, 1-based. 0: the whole part."""
    last: int = 0

    def __str__(self) -> str:
        where = f"{self.part}, characters {self.first}–{self.last}" if self.first else self.part
        return f"{where}: recorded {self.recorded!r}, now {self.asked!r}"


def request_of(request: ModelRequest) -> RecordedRequest:
    """Return a new request in the form of recorded ones."""
    return RecordedRequest(messages=request.messages, settings=settings_json(request))


def iterate_requests(
    calls: Sequence[RecordedCall],
) -> Iterator[tuple[RecordedCall, RecordedRequest]]:
    """Yield the model calls of a transcript with their whole requests."""
    messages: tuple[Message, ...] = ()
    settings: Mapping[str, object] = {}
    for call in calls:
        kept = call.request.get("kept")
        rows = as_array(call.request.get("messages"))
        keep = kept if isinstance(kept, int) else 0
        messages = (*messages[:keep], *(codec.read_message(row) for row in rows))
        given = call.request.get("settings")
        if is_object(given):
            settings = given
        yield call, RecordedRequest(messages=messages, settings=settings)


def difference(
    before: RecordedRequest, now: RecordedRequest, *, exactly: bool
) -> RequestDifference | None:
    """Return the first difference of two requests; None: there is none.

    Args:
        before: Recorded request.
        now: New request.
        exactly: False: outputs of tools and checks, and the model's name, do not count.
    """
    for at, (one, other) in enumerate(zip(before.messages, now.messages, strict=False), start=1):
        found = _diff_messages(at, one, other, exactly=exactly)
        if found:
            return found
    if len(before.messages) != len(now.messages):
        at = min(len(before.messages), len(now.messages))
        longer = before.messages if len(before.messages) > at else now.messages
        text = _short(longer[at].text)
        is_old = longer is before.messages
        return RequestDifference(
            part=f"message {at + 1} ({longer[at].role})",
            recorded=text if is_old else "",
            asked="" if is_old else text,
        )
    return _diff_settings(before.settings, now.settings, exactly=exactly)


def describe_drift(before: RecordedRequest, now: RecordedRequest) -> RequestDifference | None:
    """Return the first difference that does not count, in equal requests; None: there is none."""
    for at, (one, other) in enumerate(zip(before.messages, now.messages, strict=False), start=1):
        if one.text != other.text:
            return differing_characters(
                f"message {at} ({other.tool or other.role})", one.text, other.text
            )
    return None


def _diff_messages(
    at: int, one: Message, other: Message, *, exactly: bool
) -> RequestDifference | None:
    part = f"message {at} ({other.role})"
    if one.role != other.role:
        return RequestDifference(part=part, recorded=one.role, asked=other.role)
    left, right = (
        (one.text, other.text) if exactly else (comparable_text(one), comparable_text(other))
    )
    if left != right:
        return differing_characters(part, left, right)
    for number, (a, b) in enumerate(zip(one.calls, other.calls, strict=False), start=1):
        if a != b:
            old, new = f"{a.name} {a.arguments}", f"{b.name} {b.arguments}"
            return differing_characters(f"{part}, tool call {number}", old, new)
    if len(one.calls) != len(other.calls):
        return RequestDifference(part=part, recorded=_calls(one), asked=_calls(other))
    if one.tool != other.tool:
        return RequestDifference(part=part, recorded=one.tool, asked=other.tool)
    return None


def _calls(message: Message) -> str:
    return f"{len(message.calls)} tool calls"


def _diff_settings(
    before: Mapping[str, object], now: Mapping[str, object], *, exactly: bool
) -> RequestDifference | None:
    for name in sorted(before.keys() | now.keys()):
        # Another model may answer, as long as the request is the same.
        if name == "model" and not exactly:
            continue
        one, other = pack(before.get(name)), pack(now.get(name))
        if one != other:
            return differing_characters(f"setting {name!r}", one, other)
    return None


# Each request repeats the messages of the one before.
@lru_cache(maxsize=4096)
def comparable_text(message: Message) -> str:
    """Return the part of a message's text that is compared."""
    if message.role == "tool":
        ended = _EXIT.match(message.text)
        return ended[1] if ended else "ran" if message.ran else message.text
    if message.role == "user":
        text = _OF_MACHINE.sub("", message.text).rstrip()
        return _VOLATILE.sub("<time>", _SAID.sub(_without_output, text))
    return message.text


def _without_output(block: re.Match[str]) -> str:
    head, _, _ = block[3].partition(_OUTPUT)
    kept = head if _OUTPUT in block[3] else ""
    return f"{block[1]}{kept}{block[4]}"


def differing_characters(part: str, old: str, new: str) -> RequestDifference:
    """Return the differing characters of a part."""
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    tail = 0
    while tail < min(len(old), len(new)) - first and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return RequestDifference(
        part=part,
        recorded=_short(old[first : len(old) - tail]),
        asked=_short(new[first : len(new) - tail]),
        first=first + 1,
        last=max(first + 1, len(new) - tail),
    )


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
