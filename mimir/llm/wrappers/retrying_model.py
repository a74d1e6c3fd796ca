"""Model wrapper that retries: the only place that repeats a model call.

Every layer below raises at once. Every layer above gets an answer, a pause, or an error that ends the attempt.
"""

from collections.abc import Awaitable, Callable

from mimir.domain.clock import Clock
from mimir.domain.message import Answer, ModelRequest
from mimir.domain.value_class import value_class
from mimir.errors import ModelError, Paused
from mimir.llm.protocol import ChatModel

# Calls that failed together must not return together.
_JITTER = 0.25
# After a Retry-After: never earlier than asked, at most this share later.
_WAIT_JITTER = 0.05


@value_class
class RetryPolicy:
    """Number and spacing of tries."""

    tries: int = 6
    """The first one included."""
    window_seconds: float = 300.0
    """No try starts later than this after the first failure."""
    first_delay_seconds: float = 1.0
    factor: float = 2.0
    longest_delay_seconds: float = 60.0
    longest_wait_seconds: float = 120.0
    """Cap of a Retry-After."""

    def delay(self, failures: int, asked: float | None, spread: float) -> float:
        """Return the seconds before the next try; `asked` by a Retry-After, `spread` from 0 to 1."""
        # A wait of 0 means "at once" and is believed only the first time.
        if asked is not None and (asked > 0 or failures == 1):
            wait = min(max(asked, 0.0), self.longest_wait_seconds)
            return wait * (1 + _WAIT_JITTER * spread)
        # The exponent is bounded: a float must not overflow.
        delay = self.first_delay_seconds * self.factor ** min(failures - 1, 30)
        return min(delay, self.longest_delay_seconds) * (1 + _JITTER * (2 * spread - 1))


class RetryingModel:
    """A `ChatModel` that retries short failures and pauses the run for long ones."""

    def __init__(
        self,
        inner: ChatModel,
        policy: RetryPolicy,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]],
        chance: Callable[[], float],
    ) -> None:
        self._inner = inner
        self._policy = policy
        self._clock = clock
        self._sleep = sleep
        self._chance = chance

    async def ask(self, request: ModelRequest) -> Answer:
        """Send a request until there is an answer.

        Raises:
            ModelError: Scope `attempt`: this conversation cannot be answered.
            Paused: Reason `provider` (75): the retries are used up. Reason `configuration` (78): the user must act.
        """
        failures, first_failure = 0, 0.0
        while True:
            try:
                return await self._inner.ask(request)
            except ModelError as error:
                trouble = error
            if trouble.scope == "run":
                raise _configuration_pause(trouble)
            if trouble.scope != "call":
                raise trouble
            failures += 1
            now = self._clock.monotonic()
            first_failure = first_failure if failures > 1 else now
            delay = self._policy.delay(failures, trouble.retry_after_seconds, self._chance())
            late = now + delay - first_failure > self._policy.window_seconds
            tries = min(self._policy.tries, trouble.most_tries or self._policy.tries)
            if failures >= tries or late:
                raise _provider_pause(trouble, failures)
            await self._sleep(delay)


def _provider_pause(trouble: ModelError, failures: int) -> Paused:
    times = "once" if failures == 1 else f"{failures} times"
    wait = trouble.retry_after_seconds
    until = f" It asks to wait {wait:.0f} s." if wait else ""
    return Paused(
        f"{trouble} Tried {times}.{until}",
        reason="provider",
        exit_code=75,
        next_step=f"{trouble.next_step} Then: `mimir resume`."
        if trouble.next_step
        else "Nothing is lost. Continue when the endpoint answers again: `mimir resume`.",
    )


def _configuration_pause(trouble: ModelError) -> Paused:
    fix = trouble.next_step or "Correct llm.base_url, llm.api_key or llm.model."
    return Paused(
        str(trouble),
        reason="configuration",
        exit_code=78,
        next_step=f"{fix} Then: `mimir resume`.",
    )
