"""An endpoint with a rate limit that refuses by HTTP, and time that passes only when everybody waits for it."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from mimir.domain.message import Answer, ModelRequest
from mimir.llm.protocol import ChatModel
from tests.support import script_responses as wire
from tests.support.script_responses import Line
from tests.support.script_server import PlayServer

START = datetime(2030, 1, 2, tzinfo=UTC)
SETTLED = 30
"""Turns of the loop after which each ready task has continued."""


class Travel:
    """A clock that goes to the next end of a sleep, once no answer is on its way."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._on_their_way = 0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.seconds + seconds, mine))
        await mine

    def counted(self, model: ChatModel, takes: float) -> "Counted":
        """Return a model whose answers stop the clock while they are on their way, and take so long on it."""
        return Counted(self, model, takes)

    def left(self) -> None:
        self._on_their_way += 1

    def came(self) -> None:
        self._on_their_way -= 1

    async def until(self, everyone: "asyncio.Future[Any]") -> None:
        """Let time pass until they are done."""
        while not everyone.done():
            for _ in range(SETTLED):
                await asyncio.sleep(0)
            if self._on_their_way:
                await asyncio.sleep(0.001)
            elif self._sleepers:
                self._sleepers.sort(key=lambda one: one[0])
                self.seconds, first = self._sleepers.pop(0)
                if not first.done():
                    first.set_result(None)
        everyone.result()


class Counted:
    """See `Travel.counted`."""

    def __init__(self, travel: Travel, inner: ChatModel, takes: float) -> None:
        self._travel = travel
        self._inner = inner
        self._takes = takes

    async def ask(self, request: ModelRequest) -> Answer:
        self._travel.left()
        try:
            answer = await self._inner.ask(request)
        finally:
            self._travel.came()
        await self._travel.sleep(self._takes)  # a refusal comes at once
        return answer


class Rolling:
    """So many requests in any minute; returns the time of the next free one."""

    def __init__(self, travel: Travel, a_minute: int) -> None:
        self._travel = travel
        self._most = a_minute
        self.taken: deque[float] = deque()

    def __call__(self) -> float | None:
        now = self._travel.seconds
        recent = [at for at in self.taken if at > now - 60]
        if len(recent) >= self._most:
            return recent[-self._most] + 60 - now
        self.taken.append(now)
        return None


class Bucket:
    """So many requests a second and so many at once; returns whole seconds, as most endpoints do."""

    def __init__(self, travel: Travel, a_second: float, at_once: int) -> None:
        self._travel = travel
        self._rate, self._size = a_second, at_once
        self._level, self._at = float(at_once), 0.0
        self.taken: deque[float] = deque()

    def __call__(self) -> float | None:
        now = self._travel.seconds
        self._level = min(self._size, self._level + (now - self._at) * self._rate)
        self._at = now
        if self._level < 1 - 1e-9:
            return max(1, -(-(1 - self._level) // self._rate))
        self._level -= 1
        self.taken.append(now)
        return None


class LimitedServer(PlayServer):
    """A play server that asks a gate before it answers: seconds to wait, or None."""

    def __init__(self, play: Mapping[str, object], gate: Callable[[], float | None]) -> None:
        super().__init__(play)
        self._gate = gate
        self.refused = 0

    async def _completion(
        self, line: Line, connection: int, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> bool:
        seconds = self._gate()
        if seconds is None:
            return await super()._completion(line, connection, headers, body)
        return await self._refuse(line, seconds)

    async def _refuse(self, line: Line, seconds: float) -> bool:
        self.refused += 1
        said = wire.error_body("Rate limit reached.", "rate_limit_exceeded")
        await line.whole(429, wire.JSON, said, [("Retry-After", f"{seconds:.3f}")])
        return True
