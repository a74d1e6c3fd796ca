"""CPU turns: one attempt at a time runs, from a model's answer to its next call.

All attempts share one thread. In small alternating steps, those whose answers came together would send their next calls late and
together. One that runs to its next call first lets its model work while the others run. A turn ends at the next call, at any wait
for a program, and after `MOST_SECONDS`.

Switched off, wall time over httpx2 rose from 1.70 to 1.88 (2026-11-26, alternating runs of the engine benchmark's subject process,
loaded machine).
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
"""Faster answers: turns gain nothing, and without them more writes share one commit."""


class CpuTurns:
    """Turns of one process."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.pay = True
        """Whether the last answer took longer than `AT_ONCE_SECONDS`; the first one decides."""


class CpuTurn:
    """Turns of one attempt."""

    def __init__(self, turns: CpuTurns) -> None:
        self._turns = turns
        self._until: asyncio.TimerHandle | None = None

    async def acquire(self) -> None:
        """Wait for a turn, in order; return at once if it is held or turns do not pay."""
        if self._until is None and self._turns.pay:
            await self._turns.lock.acquire()
            self._until = asyncio.get_running_loop().call_later(MOST_SECONDS, self.yield_turn)

    def yield_turn(self) -> None:
        """End the turn, if this attempt holds it."""
        if self._until is not None:
            self._until.cancel()
            self._until = None
            self._turns.lock.release()

    async def away(self, work: Awaitable[T]) -> T:
        """End the turn during `work`; return its result in a new turn."""
        loop = asyncio.get_running_loop()
        # One step of the loop later: the call must be sent before the next attempt runs.
        leaving = loop.call_soon(self.yield_turn)
        since = loop.time()
        try:
            result = await work
        finally:
            leaving.cancel()
            self.yield_turn()
        self._turns.pay = loop.time() - since > AT_ONCE_SECONDS
        await self.acquire()
        return result


class TurnTakingModels:
    """Models of an attempt that runs in turns."""

    def __init__(self, models: ModelSource, turn: CpuTurn) -> None:
        self._models = models
        self._turn = turn

    def for_lane(self, role: str, lane: str, model: str = "") -> ChatModel:
        """Return the model of a role, bound to a transcript."""
        return _TurnTakingModel(self._models.for_lane(role, lane, model), self._turn)


class _TurnTakingModel:
    """Model whose calls end the attempt's turn."""

    def __init__(self, inner: ChatModel, turn: CpuTurn) -> None:
        self._inner = inner
        self._turn = turn

    async def ask(self, request: ModelRequest) -> Answer:
        """Ask, and return the answer in a new turn."""
        return await self._turn.away(self._inner.ask(request))
