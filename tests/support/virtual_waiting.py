"""Waiting that takes no time: each run gets a clock that sleeping moves, and its sleeps are recorded."""

import asyncio
import time
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

import pytest

from mimir.llm import endpoints
from mimir.llm.wrappers.rate_limits import RateLimiter
from mimir.llm.wrappers.retrying_model import RetryingModel


class Warp:
    """A real clock plus the virtual sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=sum(self.slept))

    def monotonic(self) -> float:
        return time.monotonic() + sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


WARP: ContextVar[Warp] = ContextVar("WARP")
"""Of the task that opens mimir."""


def warp_waits(patch: pytest.MonkeyPatch) -> None:
    """Let retries and rate limits wait on the `WARP` of the current run; set it before."""

    def limits(**given: object) -> RateLimiter:
        warp = WARP.get()
        return RateLimiter(**{**given, "clock": warp, "sleep": warp.sleep})  # type: ignore[arg-type]

    def retrying(inner: object, policy: object, **given: object) -> RetryingModel:
        warp = WARP.get()
        return RetryingModel(inner, policy, **{**given, "clock": warp, "sleep": warp.sleep})  # type: ignore[arg-type]

    patch.setattr("mimir.bootstrap.models.registry.RateLimiter", limits)
    patch.setattr(endpoints, "RetryingModel", retrying)
