"""Blocking and parallel work that is finished before its caller continues."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, ParamSpec, TypeVar

A = TypeVar("A")
B = TypeVar("B")


async def gather_both(first: Awaitable[A], second: Awaitable[B]) -> tuple[A, B]:
    """Await two things to the end of both; then raise the first error, if there is one."""
    # To the end of both: a git that is nearly done is not worth killing.
    one, other = await asyncio.gather(first, second, return_exceptions=True)
    if isinstance(one, BaseException):
        raise one
    if isinstance(other, BaseException):
        raise other
    return one, other


async def await_all(jobs: Iterable[Awaitable[A]]) -> list[A]:
    """Await all; the first exception is raised unchanged after all jobs have ended."""
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        return list(await asyncio.gather(*tasks))
    # A failed job must not leave the others running in the sandbox.
    finally:
        await cancel_all(tasks)


async def cancel_all(jobs: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel all and wait for their end; their errors are ignored."""
    cancelled = list(jobs)
    for job in cancelled:
        job.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)


@contextlib.asynccontextmanager
async def run_beside(work: Coroutine[object, object, None]) -> AsyncGenerator[None]:
    """Run work during the block and cancel it at the end; its errors are ignored."""
    job = asyncio.ensure_future(work)
    try:
        yield
    finally:
        await cancel_all([job])


P = ParamSpec("P")
T = TypeVar("T")


async def to_thread_shielded(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work on a thread; a cancelled caller still waits for its end."""
    # `asyncio.to_thread` leaves the thread running, which may then create directories that the
    # cancelled caller has already removed.
    job = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not job.done():
        try:
            await asyncio.wait((job,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not job.cancelled():
            job.exception()  # retrieved, so that asyncio does not log it
        raise cancelled
    return job.result()
