import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.message import Answer, ModelRequest
from mimir.domain.usage import TokenUsage
from mimir.errors import ModelError
from mimir.llm.wrappers.rate_limits import WINDOW_SECONDS, RateLimitedModel, RateLimiter, RateWindow
from tests.support.clock import FrozenClock
from tests.support.model_requests import Sleeper, Troubled, assistant_message, question, trouble


@given(
    st.lists(st.tuples(st.floats(0, 50), st.integers(1, 120)), min_size=1, max_size=40),
    st.none() | st.integers(1, 5),
    st.none() | st.integers(1, 100),
)
def test_no_minute_holds_more_than_is_allowed(arrivals, requests, tokens):
    window = RateWindow(requests, tokens)
    now, let = 1000.0, []
    for gap, size in arrivals:
        now += gap
        for _ in range(1000):
            wait = window.wait(now, size)
            if wait == 0:
                break
            now += wait
        else:
            pytest.fail("never let through")
        window.admit(now, size)
        let.append((now, size))
    for at, size in let:
        minute = [(t, s) for t, s in let if at - WINDOW_SECONDS + 1e-6 < t <= at]
        if requests is not None:
            assert len(minute) <= requests
        if tokens is not None and len(minute) > 1:
            assert sum(s for _, s in minute) <= tokens or size > tokens


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30))
def test_unused_tokens_return_to_the_rate_window(used):
    window = RateWindow(tokens=100)
    now = 0.0
    for tokens in used:
        assert window.wait(now, 50) == 0 or sum(used) > 50
        if window.wait(now, 50) == 0:
            window.settle(window.admit(now, 50), tokens)
    assert window.wait(now + WINDOW_SECONDS, 100) == 0


def test_an_entry_older_than_a_minute_is_not_corrected():
    window = RateWindow(tokens=100)
    entry = window.admit(0, 100)
    assert window.wait(61, 100) == 0
    window.settle(entry, 5000)
    assert window.wait(61, 100) == 0


def test_without_limits_nothing_waits():
    window = RateWindow()
    for _ in range(1000):
        assert window.wait(0, 10**6) == 0
        window.admit(0, 10**6)


async def test_requests_wait_for_their_minute():
    clock = FrozenClock()
    sleep = Sleeper(clock)
    model = RateLimitedModel(
        Troubled(), RateLimiter(clock=clock, sleep=sleep, requests_per_minute=2)
    )
    for _ in range(3):
        await model.ask(question())
    assert sleep.slept == [WINDOW_SECONDS]


async def test_retry_after_delays_all_callers():
    clock = FrozenClock()
    sleep = Sleeper(clock)
    limits = RateLimiter(clock=clock, sleep=sleep)
    with pytest.raises(ModelError):
        await RateLimitedModel(Troubled(trouble(wait=9)), limits).ask(question())
    await RateLimitedModel(Troubled(), limits).ask(question())
    assert sleep.slept == [9]


async def test_a_refused_call_gives_its_tokens_back():
    clock = FrozenClock()
    sleep = Sleeper(clock)
    limits = RateLimiter(clock=clock, sleep=sleep, tokens_per_minute=5000)
    error = ModelError("429", scope="call", status=429)
    with pytest.raises(ModelError):
        await RateLimitedModel(Troubled(error), limits).ask(question())
    await RateLimitedModel(Troubled(), limits).ask(question())
    assert sleep.slept == []


class Gate:
    """A model that answers when it is let, and knows how many ask at once."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.inside = self.most = 0
        self.entered = asyncio.Event()

    async def ask(self, request: ModelRequest) -> Answer:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.entered.set()
        await self.open.wait()
        self.inside -= 1
        return Answer(message=assistant_message("x"), usage=TokenUsage(input_tokens=1))


async def test_no_more_calls_at_once_than_allowed():
    clock = FrozenClock()
    gate = Gate()
    model = RateLimitedModel(gate, RateLimiter(clock=clock, sleep=Sleeper(clock), concurrency=3))
    tasks = [asyncio.create_task(model.ask(question())) for _ in range(10)]
    await gate.entered.wait()
    gate.open.set()
    await asyncio.gather(*tasks)
    assert gate.most == 3


async def test_a_cancelled_call_gives_its_slot_back():
    clock = FrozenClock()
    gate = Gate()
    model = RateLimitedModel(gate, RateLimiter(clock=clock, sleep=Sleeper(clock), concurrency=1))
    first = asyncio.create_task(model.ask(question()))
    await gate.entered.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    gate.open.set()
    assert (await model.ask(question())).message.text == "x"
