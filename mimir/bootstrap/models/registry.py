"""Registry of the models that the settings name, with their limits."""

import asyncio
import random
from functools import partial

from mimir.bootstrap.clock import SystemClock
from mimir.bootstrap.models.endpoints import configure_endpoint, models_of_roles
from mimir.bootstrap.models.keyring_keys import read_key
from mimir.llm.endpoints import EndpointRegistry
from mimir.llm.wrappers.rate_limits import RateLimiter
from mimir.llm.wrappers.retrying_model import RetryPolicy
from mimir.settings.model import Settings
from mimir.tools.secrets import Redactor


def make_endpoints(settings: Settings, clock: SystemClock, redact: Redactor) -> EndpointRegistry:
    """Return the models that the settings name, with their limits; `redact` learns their keys."""
    llm = settings.llm

    def read(endpoint: str) -> str:
        key = read_key(endpoint)
        redact.add([key])
        return key

    return EndpointRegistry(
        llm.model,
        partial(configure_endpoint, settings, read=read),
        split=settings.split_endpoint,
        models=models_of_roles(settings),
        limits=partial(
            RateLimiter,
            clock=clock,
            sleep=asyncio.sleep,
            requests_per_minute=llm.requests_per_minute,
            tokens_per_minute=llm.tokens_per_minute,
            concurrency=llm.concurrency,
        ),
        policy=RetryPolicy(tries=llm.tries, window_seconds=llm.retry_seconds),
        clock=clock,
        chance=random.Random().random,
        veil=redact.values,
    )
