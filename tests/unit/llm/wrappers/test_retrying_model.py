import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.errors import ModelError, Paused
from mimir.llm.wrappers.retrying_model import RetryingModel, RetryPolicy
from tests.support.clock import FrozenClock
from tests.support.model_requests import Middle, Sleeper, Troubled, question, trouble


def retrying(model: Troubled, policy: RetryPolicy | None = None) -> tuple[RetryingModel, Sleeper]:
    clock = FrozenClock()
    sleep = Sleeper(clock)
    made = RetryingModel(model, policy or RetryPolicy(), clock=clock, sleep=sleep, chance=Middle())
    return made, sleep


async def test_short_provider_error_is_retried_with_growing_delays():
    model = Troubled(*(trouble() for _ in range(5)))
    retry, sleep = retrying(model)
    assert (await retry.ask(question())).message.text == "done"
    assert sleep.slept == [1, 2, 4, 8, 16]
    assert len(model.asked) == 6


async def test_retry_sends_the_same_request():
    model = Troubled(trouble())
    await retrying(model)[0].ask(question())
    assert model.asked == [question(), question()]


async def test_lasting_model_error_pauses_the_run():
    model = Troubled(*(trouble() for _ in range(9)))
    retry, _ = retrying(model)
    with pytest.raises(Paused) as caught:
        await retry.ask(question())
    assert len(model.asked) == 6
    assert (caught.value.reason, caught.value.exit_code) == ("provider", 75)
    assert "http://model/v1" in str(caught.value)
    assert "6 times" in str(caught.value)
    assert "mimir resume" in (caught.value.next_step or "")


async def test_retry_after_is_the_shortest_wait():
    retry, sleep = retrying(Troubled(trouble(wait=7), trouble(wait=30)))
    await retry.ask(question())
    assert sleep.slept == [pytest.approx(7, rel=0.1), pytest.approx(30, rel=0.1)]
    assert sleep.slept[0] >= 7
    assert sleep.slept[1] >= 30


async def test_large_retry_after_is_limited():
    retry, sleep = retrying(Troubled(trouble(wait=1e9)))
    await retry.ask(question())
    assert sleep.slept[0] == pytest.approx(120, rel=0.1)


async def test_retry_after_zero_is_used_once():
    retry, sleep = retrying(Troubled(trouble(wait=0), trouble(wait=0), trouble(wait=-3)))
    await retry.ask(question())
    assert sleep.slept == [0, 2, 4]


async def test_no_try_begins_after_five_minutes():
    model = Troubled(*(trouble(wait=110) for _ in range(9)))
    retry, sleep = retrying(model)
    with pytest.raises(Paused):
        await retry.ask(question())
    assert len(model.asked) == 3
    assert sum(sleep.slept) <= 300


async def test_a_long_first_answer_does_not_use_up_the_window():
    clock = FrozenClock()

    class Slow(Troubled):
        async def ask(self, request):
            clock.advance(400)
            return await super().ask(request)

    model = Slow(trouble())
    retry = RetryingModel(model, RetryPolicy(), clock=clock, sleep=Sleeper(clock), chance=Middle())
    await retry.ask(question())
    assert len(model.asked) == 2


async def test_a_wrong_setting_pauses_at_once_with_78():
    error = ModelError(
        "The model endpoint: refused the key (401).", scope="run", next_step="Set llm.api_key."
    )
    model = Troubled(error)
    retry, sleep = retrying(model)
    with pytest.raises(Paused) as caught:
        await retry.ask(question())
    assert (caught.value.reason, caught.value.exit_code) == ("configuration", 78)
    assert "llm.api_key" in (caught.value.next_step or "")
    assert sleep.slept == []
    assert caught.value.__context__ is None


async def test_a_fatal_error_after_a_retry_pauses_too():
    retry, _ = retrying(Troubled(trouble(), trouble("run")))
    with pytest.raises(Paused) as caught:
        await retry.ask(question())
    assert caught.value.reason == "configuration"


async def test_error_with_attempt_scope_is_not_retried():
    model = Troubled(trouble("attempt"))
    retry, sleep = retrying(model)
    with pytest.raises(ModelError):
        await retry.ask(question())
    assert (len(model.asked), sleep.slept) == (1, [])


async def test_other_errors_pass_through():
    retry, _ = retrying(Troubled(KeyError("bug")))
    with pytest.raises(KeyError):
        await retry.ask(question())


@given(
    st.integers(1, 50),
    st.none() | st.floats(allow_nan=False),
    st.integers(0, 2**32),
)
def test_no_delay_is_negative_or_endless(failures: int, asked: float | None, seed: int):
    delay = RetryPolicy().delay(failures, asked, random.Random(seed).random())
    assert 0 <= delay <= 126
