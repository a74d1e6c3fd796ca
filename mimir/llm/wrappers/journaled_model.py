"""Model wrapper that records each call in a transcript, or answers from it.

Only the messages that are new since the previous request are recorded: a transcript grows linearly with its conversation.
"""

import hashlib
import json
import operator
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mimir.domain.call_outcome import CallOutcome, Transcript
from mimir.domain.message import Answer, Message, ModelRequest
from mimir.domain.usage import estimate
from mimir.errors import StoreError
from mimir.llm import codec
from mimir.llm.protocol import ChatModel


class JournaledModel:
    """A `ChatModel` bound to one transcript, whose calls come one after another."""

    def __init__(self, inner: ChatModel, lane: Transcript) -> None:
        self._inner = inner
        self._lane = lane
        self._before: tuple[Message, ...] = ()
        self._tokens: list[int] = []
        """Estimated tokens of each message of `_before`."""
        self._settings_digest = ""

    async def ask(self, request: ModelRequest) -> Answer:
        """Send a request, or answer from the transcript.

        Raises:
            StoreError: The recorded answer cannot be read.
        """
        kept = _common_prefix(self._before, request.messages)
        new = request.messages[kept:]
        settings = _RequestSettings.of_request(request)
        hashed: dict[str, object] = {
            "kept": kept,
            "messages": [codec.encode_message(message) for message in new],
            "settings": settings.digest,
        }
        delta: dict[str, object] = {
            "kept": kept,
            "messages": [codec.message_json(message) for message in new],
        }
        if settings.digest != self._settings_digest:
            delta["settings"] = settings.values
        self._tokens = [*self._tokens[:kept], *map(_tokens, new)]
        self._before, self._settings_digest = request.messages, settings.digest

        async def work() -> CallOutcome:
            answer = await self._inner.ask(request)
            return CallOutcome(value=codec.answer_json(answer), usage=answer.usage)

        outcome = await self._lane.call(
            "model",
            hashed,
            delta,
            work,
            effectful=True,
            reserve=sum(self._tokens) + settings.tool_tokens + request.max_tokens,
            of_answer=request.max_tokens,
            title=request.model,
        )
        try:
            return codec.read_answer(outcome.value)
        except ValueError as error:
            raise StoreError(f"A recorded answer cannot be read: {error}.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class _RequestSettings:
    """All of a request but its messages; computed once, since most requests share it."""

    bare: ModelRequest
    """Without messages."""
    values: Mapping[str, object]
    """As `settings_json` writes them."""
    digest: str
    tool_tokens: int

    @classmethod
    def of_request(cls, request: ModelRequest) -> "_RequestSettings":
        bare = replace(request, messages=())
        for known in _KNOWN_SETTINGS:
            if _have_equal_json(bare, known.bare):
                return known
        values, tokens = settings_json(request), _tool_tokens(request)
        settings = cls(bare=bare, values=values, digest=_digest(values), tool_tokens=tokens)
        _KNOWN_SETTINGS.append(settings)
        return settings


_KNOWN_SETTINGS: deque[_RequestSettings] = deque(maxlen=8)


def _have_equal_json(bare: ModelRequest, other: ModelRequest) -> bool:
    # Equal values may differ in JSON (0 and 0.0); the same objects cannot.
    return (
        bare == other
        and repr(bare.temperature) == repr(other.temperature)
        and bare.schema is other.schema
        and all(map(operator.is_, bare.tools, other.tools))
    )


def _common_prefix(before: tuple[Message, ...], now: tuple[Message, ...]) -> int:
    """Return the number of messages with which both begin."""
    if now[: len(before)] == before:
        return len(before)
    return next((n for n, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), len(now))


def settings_json(request: ModelRequest) -> dict[str, object]:
    """Return everything but the messages that decides the answer."""
    return {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "tools": [codec.spec_json(spec) for spec in request.tools],
        "tool_choice": request.tool_choice,
        "schema": dict(request.schema) if request.schema is not None else None,
        "schema_name": request.schema_name,
    }


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _tokens(message: Message) -> int:
    return estimate(message.text) + sum(estimate(c.name + c.arguments) for c in message.calls)


def _tool_tokens(request: ModelRequest) -> int:
    return sum(
        estimate(spec.description) + estimate(json.dumps(dict(spec.input_schema)))
        for spec in request.tools
    )
