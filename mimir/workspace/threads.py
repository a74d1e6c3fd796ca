"""Blocking work on a thread that nobody leaves behind."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def to_its_end(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
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
