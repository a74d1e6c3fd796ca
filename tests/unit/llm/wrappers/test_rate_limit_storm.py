"""Ten workers at an endpoint that refuses excess calls: all of them end, at its allowed rate, over real HTTP."""

import asyncio

import pytest

from mimir.llm.config import EndpointConfig
from mimir.llm.openai.endpoint import OpenAIEndpoint
from mimir.llm.wrappers.rate_limits import RateLimitedModel, RateLimiter
from mimir.llm.wrappers.retrying_model import RetryingModel, RetryPolicy
from tests.support.model_requests import Middle, assistant_message, question
from tests.support.rate_limited_endpoint import Bucket, LimitedServer, Rolling, Travel

PLAY = {"parts": [{"role": "worker", "turns": [{"text": "done", "repeat": "forever"}]}]}
WORKERS = 10


async def storm(travel: Travel, gate, calls: int, takes: float, **known: int) -> int:
    """Let every worker make its calls one after another; how often they were refused."""
    limits = RateLimiter(clock=travel, sleep=travel.sleep, **known)
    with LimitedServer(PLAY, gate) as server:
        endpoint = OpenAIEndpoint(EndpointConfig(base_url=server.url), travel, lambda _: None)

        async def work(number: int) -> None:
            inner = travel.counted(endpoint.for_lane(f"r/t{number}/1/worker"), takes)
            model = RetryingModel(
                RateLimitedModel(inner, limits),
                RetryPolicy(),
                clock=travel,
                sleep=travel.sleep,
                chance=Middle(),
            )
            talk = question(text=f"Task: t{number}\nAttempt 1 of 1", max_tokens=100)
            for turn in range(calls):
                answer = await model.ask(talk)
                assert answer.message.text == "done"
                talk = question(
                    *[assistant_message("done")] * (turn + 1),
                    text=f"Task: t{number}\nAttempt 1 of 1",
                    max_tokens=100,
                )

        await travel.until(asyncio.gather(*map(work, range(WORKERS))))
        await endpoint.aclose()
        return server.refused


@pytest.mark.parametrize("known", [{"requests_per_minute": 30}, {}], ids=["told", "not told"])
async def test_all_calls_end_at_the_rate_of_a_rolling_minute(known):
    travel = Travel()
    gate = Rolling(travel, 30)
    refused = await storm(travel, gate, 8, 0.5, **known)
    assert len(gate.taken) == 80
    assert travel.seconds <= 120 * 1.1  # 30 at once, 30 after a minute, 20 after two
    assert refused <= (0 if known else 40)


@pytest.mark.parametrize(
    ("a_second", "at_once", "takes"), [(1, 1, 0.05), (1, 1, 2.0), (5, 10, 0.5)]
)
async def test_calls_end_at_the_rate_of_an_unannounced_bucket(a_second, at_once, takes):
    travel = Travel()
    gate = Bucket(travel, a_second, at_once)
    await storm(travel, gate, 8, takes)
    assert len(gate.taken) == 80
    allowed = (80 - at_once) / a_second
    # The answers of the first call, after which it is known how much may go, and of the last one are not in the rate.
    assert travel.seconds <= allowed * 1.1 + 2 * takes
