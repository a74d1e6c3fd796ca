"""A model that remembers: each question is in the lane before it is asked, each answer after; a replayed lane answers by itself.

What is recorded of a question is what is new in it since the one before, so a lane grows with the conversation, not with its square.
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
    """A `ChatModel` bound to one lane; calls of one lane come one after another."""

    def __init__(self, inner: ChatModel, lane: Transcript) -> None:
        self._inner = inner
        self._lane = lane
        self._before: tuple[Message, ...] = ()
        self._tokens: list[int] = []
        """Estimated tokens of each message of `_before`."""
        self._terms: _RequestSettings | None = None

    async def ask(self, request: ModelRequest) -> Answer:
        """Ask, or answer from the record.

        Raises:
            StoreError: The record holds no answer that can be read.
        """
        kept = _common(self._before, request.messages)
        new = request.messages[kept:]
        terms, before = _RequestSettings.of(request), self._terms
        asked: dict[str, object] = {
            "kept": kept,
            "messages": [codec.encode_message(message) for message in new],
            "settings": terms.digest,
        }
        delta: dict[str, object] = {
            "kept": kept,
            "messages": [codec.message_json(message) for message in new],
        }
        if before is None or terms.digest != before.digest:
            delta["settings"] = terms.settings
        self._tokens = [*self._tokens[:kept], *map(_tokens, new)]
        self._before, self._terms = request.messages, terms

        async def work() -> CallOutcome:
            answer = await self._inner.ask(request)
            return CallOutcome(value=codec.answer_json(answer), usage=answer.usage)

        outcome = await self._lane.call(
            "model",
            asked,
            delta,
            work,
            effectful=True,
            reserve=sum(self._tokens) + terms.tool_tokens + request.max_tokens,
            of_answer=request.max_tokens,
            title=request.model,
        )
        try:
            return codec.read_answer(outcome.value)
        except ValueError as error:
            raise StoreError(f"A recorded answer cannot be read: {error}.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class _RequestSettings:
    """What a request holds besides its messages; the same in most requests of all lanes, so it is looked through once."""

    bare: ModelRequest
    """Without messages."""
    settings: Mapping[str, object]
    """As `settings_json` writes them."""
    digest: str
    tool_tokens: int

    @classmethod
    def of(cls, request: ModelRequest) -> "_RequestSettings":
        """Return a request's terms."""
        bare = replace(request, messages=())
        for known in _KNOWN_TERMS:
            if _are_written_alike(bare, known.bare):
                return known
        settings, tokens = settings_json(request), _tool_tokens(request)
        terms = cls(bare=bare, settings=settings, digest=_digest(settings), tool_tokens=tokens)
        _KNOWN_TERMS.append(terms)
        return terms


_KNOWN_TERMS: deque[_RequestSettings] = deque(maxlen=8)
"""Of requests of this process; each follows from its request alone."""


def _are_written_alike(bare: ModelRequest, other: ModelRequest) -> bool:
    """Tell whether requests have the same terms to the letter: what is equal need not be (0 and 0.0), what is the same object is."""
    return (
        bare == other
        and repr(bare.temperature) == repr(other.temperature)
        and bare.schema is other.schema
        and all(map(operator.is_, bare.tools, other.tools))
    )


def _common(before: tuple[Message, ...], now: tuple[Message, ...]) -> int:
    """Return how many messages both begin with; as a rule all of `before`."""
    if now[: len(before)] == before:
        return len(before)
    return next((n for n, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), len(now))


def settings_json(request: ModelRequest) -> dict[str, object]:
    """Return all that decides the answer besides the messages."""
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
