"""Circuit breaker: the limits that end an agent's use of tools. Pure.

It decides which calls of a message run, which result gets a warning, and which limit has tripped, from the messages alone: a resumed
conversation decides the same. A trip is not a failure: the loop asks for a closing answer, and QC judges it.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from mimir.agents import tool_log
from mimir.agents.stored_fields import encode_fields
from mimir.domain.message import Message, ToolCall
from mimir.domain.tool_call_limit import call_limit
from mimir.domain.usage import TokenUsage
from mimir.domain.value_class import value_class

# The same call with the same result on the same tree: the second gets a warning, this one trips.
REPEATS = 3

TripKind = Literal["tool_calls", "messages", "repetition", "wall_clock", "tokens"]

# Parts of a result that differ in each run of the same command.
_VOLATILE = re.compile(
    r"""0x[0-9a-f]+                                             # addresses
      | \d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)? # dates
      | \d\d:\d\d:\d\d(?:[.,]\d+)?                              # times of day
      | \d+(?:[.,]\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?)\b    # durations
    """,
    re.IGNORECASE | re.VERBOSE,
)


@value_class
class Trip:
    """One trip of the circuit breaker, with the budgets that were left."""

    kind: TripKind
    detail: str = ""
    """In words, for users. Never part of a prompt: it may hold a duration."""
    at: int = 0
    """Number of messages at the trip; a recorded trip is repeated at the same place."""
    tool_calls: int = 0
    """Admitted so far."""
    tool_calls_left: int = 0
    messages_left: int = 0
    seconds_left: float | None = None
    """None: no limit."""
    tokens_left: int | None = None
    """None: no limit."""

    def as_json(self) -> dict[str, Any]:
        """Return the trip as JSON values, with the names of the store."""
        return encode_fields(self)


class CallAdmission(NamedTuple):
    """The calls of one message, split where the budget ends."""

    allowed: tuple[ToolCall, ...]
    refused: tuple[ToolCall, ...]


class _CallSignature(NamedTuple):
    """Two calls are the same if all of these are equal."""

    tool: str
    arguments: str
    result: str
    tree: str


@value_class
class CircuitBreaker:
    """Limits of one agent in one attempt."""

    limit: int
    """Admitted tool calls; >= 1."""
    seconds: float | None = None
    """Wall clock; None: no limit."""
    max_tokens: int | None = None
    """Of all its model calls together; None: no limit."""

    @classmethod
    def for_estimate(
        cls,
        estimate: int | None,
        *,
        seconds: float | None = None,
        max_tokens: int | None = None,
    ) -> "CircuitBreaker":
        """Return the breaker for a plan's estimate of tool calls."""
        return cls(limit=call_limit(estimate), seconds=seconds, max_tokens=max_tokens)

    @property
    def max_messages(self) -> int:
        """Most assistant and tool messages of the loop."""
        return 3 * self.limit  # two for each call, and some replies without calls

    def admit(self, messages: Sequence[Message], calls: Sequence[ToolCall]) -> CallAdmission:
        """Split the calls of the last message into those that may run and the rest.

        Over a whole conversation exactly `limit` calls are admitted.
        """
        room = min(
            self.limit - tool_log.count_admitted_calls(messages),
            self.max_messages - count_loop_messages(messages),
        )
        room = max(0, room)
        return CallAdmission(allowed=tuple(calls[:room]), refused=tuple(calls[room:]))

    def note_calls_left(
        self, messages: Sequence[Message], results: Sequence[Message]
    ) -> tuple[Message, ...]:
        """Add the number of calls that are left to the last result, when only few are left."""
        left = self.limit - tool_log.count_admitted_calls((*messages, *results))
        if not results or not 0 < left <= max(1, self.limit // 4):
            return tuple(results)
        text = tool_log.note_calls_left(results[-1].text, left, self.limit)
        return (*results[:-1], replace(results[-1], text=text))

    def find_trip(
        self, messages: Sequence[Message], elapsed_seconds: float, usage: TokenUsage
    ) -> Trip | None:
        """Return the first trip in the order of `TripKind`; None: no limit is reached."""
        calls = tool_log.count_admitted_calls(messages)
        count = count_loop_messages(messages)
        repeated = [s.tool for s, times in _count_repeats(messages).items() if times >= REPEATS]
        if calls >= self.limit:
            kind, detail = "tool_calls", f"{calls} of {self.limit} tool calls used"
        elif count >= self.max_messages:
            kind, detail = "messages", f"{count} of {self.max_messages} messages used"
        elif repeated:
            kind = "repetition"
            detail = f"{repeated[0][:80]!r} gave the same result on unchanged files {REPEATS} times"
        elif self.seconds is not None and elapsed_seconds >= self.seconds:
            kind = "wall_clock"
            detail = f"{elapsed_seconds:.0f} of {self.seconds:.0f} seconds used"
        elif self.max_tokens is not None and usage.total >= self.max_tokens:
            kind, detail = "tokens", f"{usage.total} of {self.max_tokens} tokens used"
        else:
            return None
        return Trip(
            kind=kind,
            detail=detail,
            at=len(messages),
            tool_calls=calls,
            tool_calls_left=max(0, self.limit - calls),
            messages_left=max(0, self.max_messages - count),
            seconds_left=None if self.seconds is None else max(0.0, self.seconds - elapsed_seconds),
            tokens_left=None if self.max_tokens is None else max(0, self.max_tokens - usage.total),
        )


def count_loop_messages(messages: Sequence[Message]) -> int:
    """Count assistant messages and tool results, without "not run" and closing ones."""
    return sum(
        not m.closing and (m.role == "assistant" or (m.role == "tool" and m.ran)) for m in messages
    )


def warn_repeated(messages: Sequence[Message], results: Sequence[Message]) -> tuple[Message, ...]:
    """Add a warning to each result that equals the result of one earlier, equal call.

    `messages` ends with the message whose calls gave `results`, in the same order.
    """
    together = (*messages, *results)
    # A cycle A-B-A-B follows the same rule: its second round is warned, its third trips.
    second = {s for s, times in _count_repeats(together).items() if times == REPEATS - 1}
    if not second:
        return tuple(results)
    turn = tuple(tool_log.iterate_turns(together))[-1]
    warned: list[Message] = []
    for result, (call, _, tree) in zip(results, turn, strict=True):
        signature = _signature(call, result, tree)
        is_repeated = signature in second
        second.discard(signature)  # equal calls of one message get one warning
        text = result.text + tool_log.REPEATED
        warned.append(replace(result, text=text) if is_repeated else result)
    return tuple(warned)


def _count_repeats(messages: Sequence[Message]) -> Mapping[_CallSignature, int]:
    """Count the messages that hold each repeated call; equal calls of one message are one."""
    groups: dict[tuple[str, str], list[tuple[int, ToolCall, Message]]] = {}
    for number, turn in enumerate(tool_log.iterate_turns(messages)):
        for call, result, tree in turn:
            groups.setdefault((call.name, tree), []).append((number, call, result))
    # This runs after every step, so large results are compared only if tool, tree and arguments agree.
    found: dict[_CallSignature, set[int]] = {}
    for (_, tree), group in groups.items():
        if len(group) < REPEATS - 1:  # too few to matter
            continue
        times = Counter(_canonical(call.arguments) for _, call, _ in group)
        for number, call, result in group:
            if times[_canonical(call.arguments)] > 1:
                found.setdefault(_signature(call, result, tree), set()).add(number)
    return {signature: len(numbers) for signature, numbers in found.items() if len(numbers) > 1}


def _signature(call: ToolCall, result: Message, tree: str) -> _CallSignature:
    # Test runners print durations: without this no command would ever repeat its result.
    text = _VOLATILE.sub("#", tool_log.result_text(result))
    return _CallSignature(call.name, _canonical(call.arguments), text, tree)


@lru_cache(maxsize=128)
def _canonical(arguments: str) -> str:
    # Models write equal arguments in another order and spacing.
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments
