"""How fast one endpoint may be asked, shared by all who ask it: requests and tokens a minute, calls at once, and its own "not now".

`RateWindow` decides, pure but for what it remembers; `RateLimiter` waits. Any 60 seconds hold at most the allowed requests and tokens.
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
LONGEST_HOLD_SECONDS = 120.0
"""As long as a Retry-After is believed."""
TOO_MANY = 429


@dataclass(slots=True, eq=False)
class AdmittedCall:
    """One call that was let through."""

    at: float
    tokens: int
    counts: bool = True
    """False: older than a minute, or nothing is limited."""


class RateWindow:
    """What was let through in the last minute, and what may be."""

    def __init__(self, requests: int | None = None, tokens: int | None = None) -> None:
        self._requests = requests
        self._tokens = tokens
        self._entries: deque[AdmittedCall] = deque()
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

    def admit(self, now: float, tokens: int) -> AdmittedCall:
        """Let a call through; its entry is corrected with `settle`."""
        is_limited = self._requests is not None or self._tokens is not None
        entry = AdmittedCall(now, tokens, counts=is_limited)
        if is_limited:
            self._entries.append(entry)
            self._sum += tokens
        return entry

    def settle(self, entry: AdmittedCall, tokens: int) -> None:
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


class FairQueue:
    """Lets one at a time through, whoever has asked for longest first: a call that was refused keeps its place."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._tickets = count(1)

    def ticket(self) -> int:
        """Return the next place in the queue."""
        return next(self._tickets)

    @asynccontextmanager
    async def turn(self, ticket: int) -> AsyncGenerator[None]:
        """Wait for the turn; it is passed on when the block ends."""
        if self._taken:
            mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heappush(self._waiting, (ticket, next(self._tickets), mine))
            try:
                await mine
            except asyncio.CancelledError:
                if mine.done() and not mine.cancelled():
                    self._pass_on()
                raise
        self._taken = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        self._taken = False
        while self._waiting:
            _, _, next_one = heappop(self._waiting)
            if not next_one.done():
                self._taken = True
                next_one.set_result(None)
                return


class RateLimiter:
    """The limits of one endpoint: one object for all its lanes.

    An endpoint that says "not now" is heard by all of them. Afterwards no more calls are under way at once than twice what it took
    the last time, and each answer makes room for one more: an endpoint whose limits nobody has told us is found out without
    asking it in vain over and over.
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
        self._given = (requests_per_minute, tokens_per_minute, concurrency)
        self._window = RateWindow(requests_per_minute, tokens_per_minute)
        self._slots = asyncio.Semaphore(concurrency) if concurrency else None
        self._turns = FairQueue()
        self._ended = asyncio.Event()
        self._under_way = 0
        self._most: int | None = None
        """Calls at once since the endpoint has refused one; None: it never has."""
        self._taken = 0
        """Calls that it answered since it has refused one."""
        self._refused_at = -1.0
        self.answers = 0
        """So far, to anybody."""

    def like(self) -> "RateLimiter":
        """Return the same limits for another endpoint."""
        requests, tokens, concurrency = self._given
        return RateLimiter(
            clock=self._clock,
            sleep=self._sleep,
            requests_per_minute=requests,
            tokens_per_minute=tokens,
            concurrency=concurrency,
        )

    def ticket(self) -> int:
        """Return a place in the queue; who was refused comes back with the one it had."""
        return self._turns.ticket()

    @asynccontextmanager
    async def admit(self, tokens: int, ticket: int | None = None) -> AsyncGenerator[AdmittedCall]:
        """Wait for room, who asked first first; a slot is held until the call ends."""
        place = self.ticket() if ticket is None else ticket
        async with self._slots or nullcontext():
            entry = await self._admit(tokens, place)
            try:
                yield entry
            finally:
                self._under_way -= 1
                self._ended.set()

    def settle(self, entry: AdmittedCall, tokens: int) -> None:
        """Replace the estimate of a call by what it used."""
        self._window.settle(entry, tokens)

    def record_answer(self) -> None:
        """Take in that the endpoint has answered a call."""
        self.answers += 1
        self._taken += 1
        if self._most is not None:
            self._most += 1

    def record_refusal(self, entry: AdmittedCall, seconds: float) -> None:
        """Let nothing through for so long, and fewer at once afterwards."""
        self.hold(seconds)
        if entry.at > self._refused_at:  # the others of a burst are refused for the same reason
            self._most = max(1, 2 * self._taken)
            self._taken = 0
        self._refused_at = self._clock.monotonic()

    def hold(self, seconds: float) -> None:
        """Let nothing through for so long."""
        self._window.hold(self._clock.monotonic(), min(seconds, LONGEST_HOLD_SECONDS))

    async def _admit(self, tokens: int, ticket: int) -> AdmittedCall:
        async with self._turns.turn(ticket):
            # Asked again after each wait: somebody may have held everything back meanwhile.
            while not await self._is_room(tokens):
                pass
            self._under_way += 1
            return self._window.admit(self._clock.monotonic(), tokens)

    async def _is_room(self, tokens: int) -> bool:
        """Tell whether a call may go now; if not, wait for what could change that."""
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
    """A `ChatModel` that keeps to an endpoint's limits. Stands below `RetryingModel`: each try counts.

    One a lane: a lane asks one thing after another, so a request that comes again is one that was refused.
    """

    def __init__(self, inner: ChatModel, limits: RateLimiter) -> None:
        self._inner = inner
        self._limits = limits
        self._request: ModelRequest | None = None
        self._ticket = 0
        self._seen: int | None = None
        """Answers of the endpoint when it refused this request last; None: it has not."""

    async def ask(self, request: ModelRequest) -> Answer:
        """Ask when there is room; a Retry-After holds back everybody.

        An endpoint that goes on answering others is not in trouble, it is full: then the request waits for its turn here, and no
        try is used up.
        """
        if request is not self._request:
            self._request, self._ticket, self._seen = request, self._limits.ticket(), None
        while True:
            try:
                return await self._try(request)
            except ModelError as error:
                goes_on = self._seen is not None and self._limits.answers > self._seen
                self._seen = self._limits.answers
                if not (goes_on and error.retry_after_seconds and error.status == TOO_MANY):
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
