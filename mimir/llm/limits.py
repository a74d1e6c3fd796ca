"""How fast one endpoint may be asked, shared by all who ask it: requests and tokens a minute, calls at once, and its own "not now".

`Window` decides, pure but for what it remembers; `Limits` waits. Any 60 seconds hold at most the allowed requests and tokens.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mimir.domain.clock import Clock
from mimir.domain.message import Answer, ModelRequest
from mimir.domain.usage import estimate
from mimir.errors import ModelError
from mimir.llm.protocol import ChatModel

WINDOW_SECONDS = 60.0


@dataclass(slots=True, eq=False)
class Entry:
    """One call that was let through."""

    at: float
    tokens: int
    counts: bool = True
    """False: older than a minute."""


class Window:
    """What was let through in the last minute, and what may be."""

    def __init__(self, requests: int | None = None, tokens: int | None = None) -> None:
        self._requests = requests
        self._tokens = tokens
        self._entries: deque[Entry] = deque()
        self._held_until = 0.0
        self._sum = 0

    def wait(self, now: float, tokens: int) -> float:
        """Return the seconds until a call of so many tokens may go; 0: now.

        A call that alone is larger than the limit goes when the minute before it is empty: it could never go otherwise.
        """
        self._forget(now)
        until = self._held_until
        if self._requests is not None and len(self._entries) >= self._requests:
            until = max(until, self._entries[-self._requests].at + WINDOW_SECONDS)
        if self._tokens is not None:
            until = max(until, self._when_room(tokens))
        return max(0.0, until - now)

    def admit(self, now: float, tokens: int) -> Entry:
        """Let a call through; its entry is corrected with `settle`."""
        entry = Entry(now, tokens)
        self._entries.append(entry)
        self._sum += tokens
        return entry

    def settle(self, entry: Entry, tokens: int) -> None:
        """Replace the estimate of a call by what it used."""
        if entry.counts:
            self._sum += tokens - entry.tokens
        entry.tokens = tokens

    def hold(self, now: float, seconds: float) -> None:
        """Let nothing through for so long: the endpoint asked for it."""
        self._held_until = max(self._held_until, now + seconds)

    def _when_room(self, tokens: int) -> float:
        assert self._tokens is not None
        over = self._sum + tokens - self._tokens
        until = 0.0
        for entry in self._entries:
            if over <= 0:
                break
            over -= entry.tokens
            until = entry.at + WINDOW_SECONDS
        return until

    def _forget(self, now: float) -> None:
        while self._entries and self._entries[0].at + WINDOW_SECONDS <= now:
            gone = self._entries.popleft()
            gone.counts = False
            self._sum -= gone.tokens


class Limits:
    """The limits of one endpoint: one object for all its lanes."""

    def __init__(
        self,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]],
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        concurrency: int | None = None,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._window = Window(requests_per_minute, tokens_per_minute)
        self._slots = asyncio.Semaphore(concurrency) if concurrency else None
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def admitted(self, tokens: int) -> AsyncGenerator[Entry]:
        """Wait for room, first come first served; a slot is held until the call ends."""
        if self._slots is None:
            yield await self._admit(tokens)
            return
        async with self._slots:
            yield await self._admit(tokens)

    def settle(self, entry: Entry, tokens: int) -> None:
        """Replace the estimate of a call by what it used."""
        self._window.settle(entry, tokens)

    def hold(self, seconds: float) -> None:
        """Let nothing through for so long."""
        self._window.hold(self._clock.monotonic(), seconds)

    async def _admit(self, tokens: int) -> Entry:
        async with self._turn:
            # Asked again after each wait: somebody may have held everything back meanwhile.
            while (seconds := self._window.wait(self._clock.monotonic(), tokens)) > 0:
                await self._sleep(seconds)
            return self._window.admit(self._clock.monotonic(), tokens)


class LimitedModel:
    """A `ChatModel` that keeps to an endpoint's limits. Stands below `RetryingModel`: each try counts."""

    def __init__(self, inner: ChatModel, limits: Limits) -> None:
        self._inner = inner
        self._limits = limits

    async def ask(self, request: ModelRequest) -> Answer:
        """Ask when there is room; a Retry-After holds back everybody."""
        prompt = sum(estimate(message.text) for message in request.messages)
        async with self._limits.admitted(prompt + request.max_tokens) as entry:
            try:
                answer = await self._inner.ask(request)
            except ModelError as error:
                if error.retry_after_seconds:
                    self._limits.hold(error.retry_after_seconds)
                if error.status is not None:  # refused before it cost tokens
                    self._limits.settle(entry, 0)
                raise
            if answer.usage is not None:
                self._limits.settle(entry, answer.usage.total)
            return answer
