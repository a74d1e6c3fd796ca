"""Two things done side by side."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Coroutine
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


async def both(first: Awaitable[A], second: Awaitable[B]) -> tuple[A, B]:
    """Await two things at once, each to its end: nothing is gained by killing a git that is done in a moment.

    When both have ended, the first one's error is raised, else the second one's.
    """
    one, other = await asyncio.gather(first, second, return_exceptions=True)
    if isinstance(one, BaseException):
        raise one
    if isinstance(other, BaseException):
        raise other
    return one, other


@contextlib.asynccontextmanager
async def beside(work: Coroutine[object, object, None]) -> AsyncGenerator[None]:
    """Have something done while the block runs, and cancelled at its end; its errors are not told."""
    job = asyncio.ensure_future(work)
    try:
        yield
    finally:
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
