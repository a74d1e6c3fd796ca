"""Blocking work on a thread that nobody leaves behind."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import ParamSpec, TypeVar

A = TypeVar("A")
B = TypeVar("B")


async def gather_both(first: Awaitable[A], second: Awaitable[B]) -> tuple[A, B]:
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
async def run_beside(work: Coroutine[object, object, None]) -> AsyncGenerator[None]:
    """Have something done while the block runs, and cancelled at its end; its errors are not told."""
    job = asyncio.ensure_future(work)
    try:
        yield
    finally:
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)


P = ParamSpec("P")
T = TypeVar("T")


async def to_thread_shielded(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do blocking work on a thread; whoever is cancelled meanwhile goes on only when it is done.

    `asyncio.to_thread` leaves a thread to itself, which then makes directories behind the back of whoever cleared them away.

    Raises:
        asyncio.CancelledError: The caller was cancelled; what the work did or raised is not told.
    """
    job = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not job.done():
        try:
            await asyncio.wait((job,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not job.cancelled():
            job.exception()
        raise cancelled
    return job.result()
