"""The stack that `app` builds, against a server that fails: retry over limits over the real client. Nothing really sleeps."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mimir.domain.message import Answer
from mimir.errors import ModelError, Paused
from mimir.llm.config import EndpointConfig
from mimir.llm.openai.endpoint import OpenAIEndpoint
from mimir.llm.scripted.faults import FAULTS
from mimir.llm.wrappers.rate_limits import RateLimitedModel, RateLimiter
from mimir.llm.wrappers.retrying_model import RetryingModel, RetryPolicy
from tests.support.clock import FrozenClock
from tests.support.model_requests import Middle, Sleeper, question
from tests.support.script_server import PlayServer

FATAL = {
    "unauthorized",
    "payment_required",
    "forbidden",
    "unknown_model",
    "wrong_address",
    "redirect",
    "no_credit",
}
ENDS_THE_ATTEMPT = {"context_length", "filtered", "bad_request"}
PASSING = sorted(
    name
    for name, fault in FAULTS.items()
    if fault.kind != "answer" and name not in FATAL | ENDS_THE_ATTEMPT | {"unsupported_parameter"}
)
WAITS = {
    "rate_limited": 7.0,
    "rate_limited_date": 7.0,
    "rate_limited_absurd": 120.0,
    "rate_limited_negative": 0.0,
}


@asynccontextmanager
async def stack(server: PlayServer) -> AsyncIterator[tuple[RetryingModel, Sleeper]]:
    clock = FrozenClock()
    sleep = Sleeper(clock)
    config = EndpointConfig(
        base_url=server.url, api_key="sk-recovery-0123", model="m", stall_seconds=1.0
    )
    endpoint = OpenAIEndpoint(config, clock)
    limited = RateLimitedModel(
        endpoint.for_lane("r/t/1/worker"), RateLimiter(clock=clock, sleep=sleep)
    )
    try:
        yield (
            RetryingModel(limited, RetryPolicy(), clock=clock, sleep=sleep, chance=Middle()),
            sleep,
        )
    finally:
        await endpoint.aclose()


async def ask(play: str) -> tuple[Answer, Sleeper, PlayServer]:
    with PlayServer(play) as server:
        async with stack(server) as (model, sleep):
            return await model.ask(question()), sleep, server


@pytest.mark.parametrize("fault", PASSING)
async def test_short_provider_error_is_retried_without_a_partial_answer(fault: str):
    text = "the whole answer, from its first word to its last"
    answer, sleep, server = await ask(
        f"default: [{{text: {text!r}, fault: {{name: {fault}, seconds: 7}}}}]"
    )
    assert answer.message.text == text
    assert len(server.requests) == 2
    assert len({seen.hash for seen in server.requests}) == 1
    assert sum(sleep.slept) == pytest.approx(WAITS.get(fault, 1.0), rel=0.1)
    if fault in WAITS:
        assert sum(sleep.slept) >= WAITS[fault]


@pytest.mark.parametrize("fault", ["server_error", "reset", "cut_stream"])
async def test_lasting_provider_error_pauses_after_six_tries(fault: str):
    with PlayServer(
        f"default: [{{text: a longer answer, fault: {{name: {fault}, times: 99}}}}]"
    ) as server:
        async with stack(server) as (model, _):
            with pytest.raises(Paused) as caught:
                await model.ask(question())
    assert (caught.value.reason, caught.value.exit_code) == ("provider", 75)
    assert len(server.requests) == 6
    assert server.url in str(caught.value)


@pytest.mark.parametrize("fault", sorted(FATAL))
async def test_a_wrong_setting_pauses_at_the_first_try_and_is_named(fault: str):
    with PlayServer(f"default: [{{fault: {fault}}}]") as server:
        async with stack(server) as (model, sleep):
            with pytest.raises(Paused) as caught:
                await model.ask(question())
    assert (caught.value.reason, caught.value.exit_code) == ("configuration", 78)
    assert "llm." in (caught.value.next_step or "")
    assert (len(server.requests), sleep.slept) == (1, [])


@pytest.mark.parametrize("fault", sorted(ENDS_THE_ATTEMPT))
async def test_error_of_one_conversation_ends_the_attempt(fault: str):
    with PlayServer(f"default: [{{fault: {fault}}}]") as server:
        async with stack(server) as (model, _):
            with pytest.raises(ModelError) as caught:
                await model.ask(question())
    assert caught.value.scope == "attempt"
    assert len(server.requests) == 1


async def test_endpoint_returns_on_the_same_port():
    with PlayServer("default: [{text: back, repeat: forever}]") as server:
        async with stack(server) as (model, sleep):
            await model.ask(question())
            server.refuse()
            waits = iter([None, server.accept, None, None, None])

            async def come_back(seconds: float) -> None:
                if (action := next(waits)) is not None:
                    action()
                await Sleeper.__call__(sleep, seconds)

            model._sleep = come_back
            assert (await model.ask(question())).message.text == "back"
    assert len(sleep.slept) == 2
