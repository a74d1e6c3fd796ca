"""Model wrapper that records each call in a transcript, or answers from it.

Only the messages that are new since the previous request are recorded: a transcript grows linearly with its conversation.
"""

import hashlib
import json
import operator
from dataclasses import replace

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
        self._bare = ModelRequest(messages=())
        self._digest = ""
        self._tool_tokens = 0

    async def ask(self, request: ModelRequest) -> Answer:
        """Send a request, or answer from the transcript; raise `StoreError` if unreadable."""
        kept = _common_prefix(self._before, request.messages)
        new = request.messages[kept:]
        changed_settings = self._note_settings(request)
        hashed: dict[str, object] = {
            "kept": kept,
            "messages": [codec.encode_message(message) for message in new],
            "settings": self._digest,
        }
        delta: dict[str, object] = {
            "kept": kept,
            "messages": [codec.message_json(message) for message in new],
            **changed_settings,
        }
        # Only new messages are estimated: the cost of a conversation stays linear.
        self._tokens = [*self._tokens[:kept], *map(_tokens, new)]
        self._before = request.messages

        async def work() -> CallOutcome:
            answer = await self._inner.ask(request)
            return CallOutcome(value=codec.answer_json(answer), usage=answer.usage)

        outcome = await self._lane.call(
            "model",
            hashed,
            delta,
            work,
            effectful=True,  # a model call costs money, so its intent is written first
            reserve=sum(self._tokens) + self._tool_tokens + request.max_tokens,
            of_answer=request.max_tokens,
            title=request.model,
        )
        try:
            return codec.read_answer(outcome.value)
        except ValueError as error:
            raise StoreError(f"A recorded answer cannot be read: {error}.") from None

    def _note_settings(self, request: ModelRequest) -> dict[str, object]:
        """Return the settings of a request for the record; empty if they are unchanged."""
        bare, earlier = replace(request, messages=()), self._digest
        # Tools and schema are long, so the digest is computed only for settings that may have changed.
        if earlier and _have_equal_json(bare, self._bare):
            return {}
        settings = settings_json(request)
        text = json.dumps(settings, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        self._bare, self._digest = bare, hashlib.sha256(text.encode()).hexdigest()
        self._tool_tokens = sum(
            estimate(spec.description) + estimate(json.dumps(dict(spec.input_schema)))
            for spec in request.tools
        )
        return {} if self._digest == earlier else {"settings": settings}


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


def _tokens(message: Message) -> int:
    calls = sum(estimate(c.name + c.arguments + c.opaque) for c in message.calls)
    return estimate(message.text) + estimate(message.opaque) + calls
