"""Rate limits of one endpoint: requests, tokens, concurrent calls, Retry-After.

`RateWindow` decides and `RateLimiter` waits. Any 60 seconds hold at most the allowed requests and tokens.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

from mimir.domain.clock import Clock
from mimir.domain.message import Answer, ModelRequest
from mimir.domain.usage import estimate
from mimir.errors import ModelError
from mimir.llm.protocol import ChatModel

WINDOW_SECONDS = 60.0
# Cap of a Retry-After.
LONGEST_HOLD_SECONDS = 120.0


@dataclass(slots=True, eq=False)
class AdmittedCall:
    """One call that was started."""

    at: float
    tokens: int
    counts: bool = True
    """False: older than a minute, or there is no limit."""


class RateWindow:
    """The calls of the last minute, and the room for the next one."""

    def __init__(self, requests: int | None = None, tokens: int | None = None) -> None:
        self._requests = requests
        self._tokens = tokens
        self._entries: deque[AdmittedCall] = deque()
        self._held_until = 0.0
        self._sum = 0

    def wait(self, now: float, tokens: int) -> float:
        """Return the seconds until a call of so many tokens may start; 0: now."""
        self._drop_old(now)
        until = self._held_until
        if self._requests is not None and len(self._entries) >= self._requests:
            until = max(until, self._entries[-self._requests].at + WINDOW_SECONDS)
        if self._tokens is not None:
            until = max(until, self._time_of_room(tokens))
        return max(0.0, until - now)

    def admit(self, now: float, tokens: int) -> AdmittedCall:
        """Count a call that starts; `settle` corrects its tokens."""
        is_limited = self._requests is not None or self._tokens is not None
        entry = AdmittedCall(now, tokens, counts=is_limited)
        if is_limited:
            self._entries.append(entry)
            self._sum += tokens
        return entry

    def settle(self, entry: AdmittedCall, tokens: int) -> None:
        """Replace the estimated tokens of a call by the used ones."""
        if entry.counts:
            self._sum += tokens - entry.tokens
        entry.tokens = tokens

    def hold(self, now: float, seconds: float) -> None:
        """Start no call for so long, as the endpoint asked."""
        self._held_until = max(self._held_until, now + seconds)

    def _time_of_room(self, tokens: int) -> float:
        assert self._tokens is not None
        over = self._sum + tokens - self._tokens
        until = 0.0
        # A call above the limit starts when the window is empty: otherwise it could never start.
        for entry in self._entries:
            if over <= 0:
                break
            over -= entry.tokens
            until = entry.at + WINDOW_SECONDS
        return until

    def _drop_old(self, now: float) -> None:
        while self._entries and self._entries[0].at + WINDOW_SECONDS <= now:
            entry = self._entries.popleft()
            entry.counts = False
            self._sum -= entry.tokens


class FairQueue:
    """A lock in the order of tickets: a refused call keeps its ticket, so it stays first."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._tickets = count(1)

    def ticket(self) -> int:
        """Return the next ticket."""
        return next(self._tickets)

    @asynccontextmanager
    async def turn(self, ticket: int) -> AsyncGenerator[None]:
        """Hold the lock during the block."""
        if self._taken:
            mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            # The second number breaks ties between calls with one ticket.
            heappush(self._waiting, (ticket, next(self._tickets), mine))
            try:
                await mine
            except asyncio.CancelledError:
                if mine.done() and not mine.cancelled():
                    self._release()  # the lock arrived together with the cancellation
                raise
        self._taken = True
        try:
            yield
        finally:
            self._release()

    def _release(self) -> None:
        self._taken = False
        while self._waiting:
            _, _, next_one = heappop(self._waiting)
            if not next_one.done():
                self._taken = True
                next_one.set_result(None)
                return


class RateLimiter:
    """The limits of one endpoint, shared by all its transcripts.

    After a refusal, at most twice the calls that it last accepted run at once, and each answer allows one more. So the limits
    of an unknown endpoint are found with few refused calls.
    """

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
        self._window = RateWindow(requests_per_minute, tokens_per_minute)
        self._slots = asyncio.Semaphore(concurrency) if concurrency else None
        self._turns = FairQueue()
        self._ended = asyncio.Event()
        self._under_way = 0
        self._most: int | None = None
        """Concurrent calls allowed since a refusal; None: there was none."""
        self._accepted = 0
        """Calls answered since the last refusal."""
        self._refused_at = -1.0
        self.answers = 0
        """Calls answered so far."""

    def ticket(self) -> int:
        """Return a place in the queue; a refused call keeps its place."""
        return self._turns.ticket()

    @asynccontextmanager
    async def admit(self, tokens: int, ticket: int) -> AsyncGenerator[AdmittedCall]:
        """Wait for room, in the order of tickets; the block is the call."""
        async with self._slots or nullcontext():
            entry = await self._admit(tokens, ticket)
            try:
                yield entry
            finally:
                self._under_way -= 1
                self._ended.set()

    def settle(self, entry: AdmittedCall, tokens: int) -> None:
        """Replace the estimated tokens of a call by the used ones."""
        self._window.settle(entry, tokens)

    def record_answer(self) -> None:
        """Count a call that the endpoint answered."""
        self.answers += 1
        self._accepted += 1
        if self._most is not None:
            self._most += 1

    def record_refusal(self, entry: AdmittedCall, seconds: float) -> None:
        """Start no call for so long, and fewer at once afterwards."""
        now = self._clock.monotonic()
        self._window.hold(now, min(seconds, LONGEST_HOLD_SECONDS))
        if entry.at > self._refused_at:  # a burst counts as one refusal
            self._most = max(1, 2 * self._accepted)
            self._accepted = 0
        self._refused_at = now

    async def _admit(self, tokens: int, ticket: int) -> AdmittedCall:
        async with self._turns.turn(ticket):
            # Checked again after each wait: another refusal may have extended the hold.
            while not await self._is_room(tokens):
                pass
            self._under_way += 1
            return self._window.admit(self._clock.monotonic(), tokens)

    async def _is_room(self, tokens: int) -> bool:
        """Return whether a call may start; if not, wait for the next change."""
        seconds = self._window.wait(self._clock.monotonic(), tokens)
        if seconds > 0:
            await self._sleep(seconds)
            return False
        if self._most is None or self._under_way < self._most:
            return True
        self._ended.clear()
        await self._ended.wait()
        return False


class RateLimitedModel:
    """A `ChatModel` within rate limits; below `RetryingModel`, so each try counts."""

    def __init__(self, inner: ChatModel, limits: RateLimiter) -> None:
        self._inner = inner
        self._limits = limits
        self._request: ModelRequest | None = None
        self._ticket = 0
        self._seen: int | None = None
        """Answers of the endpoint at the last refusal of this request; None: no refusal."""

    async def ask(self, request: ModelRequest) -> Answer:
        """Send a request when there is room; a Retry-After delays all transcripts."""
        # A transcript sends one request after another, so the same object again is a retry: it keeps its ticket.
        if request is not self._request:
            self._request, self._ticket, self._seen = request, self._limits.ticket(), None
        while True:
            try:
                return await self._try(request)
            except ModelError as error:
                # An endpoint that answers other calls is full, not broken: wait here, use up no retry.
                is_full = self._seen is not None and self._limits.answers > self._seen
                self._seen = self._limits.answers
                if not (is_full and error.retry_after_seconds and error.status == 429):
                    raise

    async def _try(self, request: ModelRequest) -> Answer:
        prompt = sum(estimate(message.text) for message in request.messages)
        async with self._limits.admit(prompt + request.max_tokens, self._ticket) as entry:
            try:
                answer = await self._inner.ask(request)
            except ModelError as error:
                if error.retry_after_seconds:
                    self._limits.record_refusal(entry, error.retry_after_seconds)
                if error.status is not None:  # refused before it cost tokens
                    self._limits.settle(entry, 0)
                raise
            self._limits.record_answer()
            if answer.usage is not None:
                self._limits.settle(entry, answer.usage.total)
            return answer
