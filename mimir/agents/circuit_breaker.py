"""When an agent must stop using tools. Pure: a function of the messages, so that a resumed conversation decides the same.

Decides which calls of a message may run, which result gets a warning, and what has tripped. A trip is not a failure: the loop asks
for a closing answer, and the verdict tells. Recursion limits of the machine are only a backstop behind these rules.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple, cast, get_args

from mimir.agents import tool_log
from mimir.domain.message import Message, ToolCall
from mimir.domain.plan import call_limit
from mimir.domain.usage import TokenUsage
from mimir.errors import StoreError

REPEATS = 3
"""The same call with the same result on the same tree: the second is warned, this one trips."""

TripKind = Literal["tool_calls", "messages", "repetition", "wall_clock", "tokens"]

_VOLATILE = re.compile(
    r"""0x[0-9a-f]+                                             # addresses
      | \d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)? # dates
      | \d\d:\d\d:\d\d(?:[.,]\d+)?                              # times of day
      | \d+(?:[.,]\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?)\b    # durations
    """,
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """What ended the use of tools, when, and what was left."""

    kind: TripKind
    detail: str
    """In words, for people. Never part of a prompt: it may hold a duration."""
    at: int
    """Number of messages of the conversation when it tripped; a recorded trip is taken at the same place again."""
    tool_calls: int
    """Let through so far."""
    tool_calls_left: int
    messages_left: int
    seconds_left: float | None = None
    """None: no limit."""
    tokens_left: int | None = None
    """None: no limit."""

    def as_json(self) -> dict[str, str | int | float | None]:
        """Return the trip as JSON values, names as in the store."""
        return {
            "kind": self.kind,
            "detail": self.detail,
            "at": self.at,
            "toolCalls": self.tool_calls,
            "toolCallsLeft": self.tool_calls_left,
            "messagesLeft": self.messages_left,
            "secondsLeft": self.seconds_left,
            "tokensLeft": self.tokens_left,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> "Trip":
        """Read what `as_json` wrote.

        Raises:
            StoreError: It is not of that form.
        """
        kind = values.get("kind")
        if kind not in get_args(TripKind):
            raise StoreError(f"A recorded trip is of the unknown kind {kind!r}.")
        tokens = _number(values, "tokensLeft")
        return cls(
            kind=cast("TripKind", kind),
            detail=str(values.get("detail", "")),
            at=int(_number(values, "at") or 0),
            tool_calls=int(_number(values, "toolCalls") or 0),
            tool_calls_left=int(_number(values, "toolCallsLeft") or 0),
            messages_left=int(_number(values, "messagesLeft") or 0),
            seconds_left=_number(values, "secondsLeft"),
            tokens_left=None if tokens is None else int(tokens),
        )


class CallAdmission(NamedTuple):
    """The calls of one message, split where the room ends; both in message order."""

    allowed: tuple[ToolCall, ...]
    refused: tuple[ToolCall, ...]


class _CallSignature(NamedTuple):
    """What makes two calls the same."""

    tool: str
    arguments: str
    result: str
    tree: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitBreaker:
    """Limits of one attempt of one agent."""

    limit: int
    """Tool calls let through in all; >= 1."""
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
        """Return the breaker for a plan's estimate."""
        return cls(limit=call_limit(estimate), seconds=seconds, max_tokens=max_tokens)

    @property
    def max_messages(self) -> int:
        """Assistant and tool messages that the loop may make."""
        return 3 * self.limit

    def admit(self, messages: Sequence[Message], calls: Sequence[ToolCall]) -> CallAdmission:
        """Split `calls` into those that may run and those for which there is no room.

        Args:
            messages: The conversation, the message that asks for `calls` included.
            calls: In message order.

        Returns:
            The first ones, as many as there is room for, and the rest. Over a whole conversation exactly `limit` are let through.
        """
        room = min(
            self.limit - tool_log.count_admitted_calls(messages),
            self.max_messages - count_loop_messages(messages),
        )
        room = max(0, room)
        return CallAdmission(allowed=tuple(calls[:room]), refused=tuple(calls[room:]))

    def find_trip(
        self, messages: Sequence[Message], elapsed_seconds: float, usage: TokenUsage
    ) -> Trip | None:
        """Return what has tripped, if anything has; the first of the kinds in their order.

        Args:
            messages: The conversation so far.
            elapsed_seconds: Time that counts; stands still while a lane is replayed.
            usage: All model calls of this agent in this attempt.
        """
        calls = tool_log.count_admitted_calls(messages)
        found = self._found(messages, calls, elapsed_seconds, usage)
        if found is None:
            return None
        kind, detail = found
        return Trip(
            kind=kind,
            detail=detail,
            at=len(messages),
            tool_calls=calls,
            tool_calls_left=max(0, self.limit - calls),
            messages_left=max(0, self.max_messages - count_loop_messages(messages)),
            seconds_left=None if self.seconds is None else max(0.0, self.seconds - elapsed_seconds),
            tokens_left=None if self.max_tokens is None else max(0, self.max_tokens - usage.total),
        )

    def _found(
        self, messages: Sequence[Message], calls: int, elapsed_seconds: float, usage: TokenUsage
    ) -> tuple[TripKind, str] | None:
        if calls >= self.limit:
            return "tool_calls", f"{calls} of {self.limit} tool calls used"
        if count_loop_messages(messages) >= self.max_messages:
            return (
                "messages",
                f"{count_loop_messages(messages)} of {self.max_messages} messages used",
            )
        if (tool := _repeated(messages)) is not None:
            return (
                "repetition",
                f"{tool[:80]!r} gave the same result on unchanged files {REPEATS} times",
            )
        if self.seconds is not None and elapsed_seconds >= self.seconds:
            return "wall_clock", f"{elapsed_seconds:.0f} of {self.seconds:.0f} seconds used"
        if self.max_tokens is not None and usage.total >= self.max_tokens:
            return "tokens", f"{usage.total} of {self.max_tokens} tokens used"
        return None


def _number(values: Mapping[str, object], name: str) -> float | None:
    value = values.get(name)
    if value is None or isinstance(value, int | float):
        return value
    raise StoreError(f"A recorded trip has {value!r} for {name}.")


def count_loop_messages(messages: Sequence[Message]) -> int:
    """Count assistant and tool messages of the loop, without "not run" results and without what follows a closing request."""
    return sum(
        not m.closing and (m.role == "assistant" or (m.role == "tool" and m.ran)) for m in messages
    )


def warn(messages: Sequence[Message], results: Sequence[Message]) -> tuple[Message, ...]:
    """Return `results` with a warning on each that says the same as one earlier message's call.

    A cycle A-B-A-B is the same rule met twice: its second round is warned, its third trips.

    Args:
        messages: The conversation up to and including the message that asked.
        results: What its calls that ran said, in message order.
    """
    together = (*messages, *results)
    second = {s for s, times in _repeats(together).items() if times == REPEATS - 1}
    if not second:
        return tuple(results)
    turn = tuple(tool_log.count_turns(together))[-1]
    warned: list[Message] = []
    for result, (call, _, tree) in zip(results, turn, strict=True):
        signature = _signature(call, result, tree)
        again = signature in second
        second.discard(signature)
        warned.append(replace(result, text=result.text + tool_log.REPEATED) if again else result)
    return tuple(warned)


def _repeated(messages: Sequence[Message]) -> str | None:
    """Return the name of a tool whose call was repeated too often."""
    for signature, times in _repeats(messages).items():
        if times >= REPEATS:
            return signature.tool
    return None


def _repeats(messages: Sequence[Message]) -> Mapping[_CallSignature, int]:
    """Count in how many messages each repeated call stands; equal calls of one message are one.

    Large results are compared only where tool, tree and arguments already agree: this runs after every step.
    """
    groups: dict[tuple[str, str], list[tuple[int, ToolCall, Message]]] = {}
    for number, turn in enumerate(tool_log.count_turns(messages)):
        for call, result, tree in turn:
            groups.setdefault((call.name, tree), []).append((number, call, result))
    met: dict[_CallSignature, set[int]] = {}
    for (_, tree), group in groups.items():
        if len(group) < REPEATS - 1:
            continue
        times = Counter(_canonical(call.arguments) for _, call, _ in group)
        for number, call, result in group:
            if times[_canonical(call.arguments)] > 1:
                met.setdefault(_signature(call, result, tree), set()).add(number)
    return {signature: len(numbers) for signature, numbers in met.items() if len(numbers) > 1}


def _signature(call: ToolCall, result: Message, tree: str) -> _CallSignature:
    # Test runners print how long they took: without this no command would ever repeat itself.
    text = _VOLATILE.sub("#", tool_log.plain(result))
    return _CallSignature(call.name, _canonical(call.arguments), text, tree)


@lru_cache(maxsize=128)
def _canonical(arguments: str) -> str:
    """Write arguments in one form; those that are no JSON stay as they are."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments
