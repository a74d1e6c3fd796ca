"""Attempts of one process think one after another, from an answer to the next question.

All of them share one thread. If each went a small step in turn, those whose answers came at the same moment would all ask their next
question late, and together, and so on in step. One that goes on to its question first lets its model think while the others go on.

A turn is given away at the next question, by whatever waits for a program, and at the latest after a while: it makes nobody wait for long.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from mimir.attempts.services import ModelSource
from mimir.domain.message import Answer, ModelRequest
from mimir.llm.protocol import ChatModel

T = TypeVar("T")

MOST_SECONDS = 0.05
AT_ONCE_SECONDS = 0.02
"""Where models answer sooner nothing is gained by asking sooner, and without turns more is committed together."""


class CpuTurns:
    """The turns of one process."""

    def __init__(self) -> None:
        """Begin with turns: the first answer tells whether they pay."""
        self.lock = asyncio.Lock()
        self.pay = True
        """Whether the last answer was waited for."""


class CpuTurn:
    """One attempt's turns."""

    def __init__(self, turns: CpuTurns) -> None:
        self._turns = turns
        self._until: asyncio.TimerHandle | None = None

    async def acquire(self) -> None:
        """Wait for a turn, first come first served; nothing if it is this attempt's already, or turns do not pay."""
        if self._until is None and self._turns.pay:
            await self._turns.lock.acquire()
            self._until = asyncio.get_running_loop().call_later(MOST_SECONDS, self.yield_turn)

    def yield_turn(self) -> None:
        """Let the next one think; nothing if it is not this attempt's turn."""
        if self._until is not None:
            self._until.cancel()
            self._until = None
            self._turns.lock.release()

    async def away(self, thinking: Awaitable[T]) -> T:
        """Give the turn away while somebody else thinks; what came of that, once there is a turn for what it leads to."""
        loop = asyncio.get_running_loop()
        # A step of the loop later: the question must be on its way before the next one begins to think.
        leaving = loop.call_soon(self.yield_turn)
        since = loop.time()
        try:
            thought = await thinking
        finally:
            leaving.cancel()
            self.yield_turn()
        self._turns.pay = loop.time() - since > AT_ONCE_SECONDS
        await self.acquire()
        return thought


class TurnTakingModels:
    """Models of an attempt that thinks in turns."""

    def __init__(self, models: ModelSource, turn: CpuTurn) -> None:
        self._models = models
        self._turn = turn

    def for_lane(self, role: str, lane: str, model: str = "") -> ChatModel:
        """Return the model of a role, bound to a lane."""
        return _TurnTakingModel(self._models.for_lane(role, lane, model), self._turn)


class _TurnTakingModel:
    """A model that others think beside while it does."""

    def __init__(self, inner: ChatModel, turn: CpuTurn) -> None:
        self._inner = inner
        self._turn = turn

    async def ask(self, request: ModelRequest) -> Answer:
        """Ask; the answer is had when there is a turn for what it leads to."""
        return await self._turn.away(self._inner.ask(request))
