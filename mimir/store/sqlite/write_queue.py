"""Queue of write jobs: each caller gets its result on its own event loop."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mimir.store.protocol import WriteOps


@dataclass(frozen=True, slots=True)
class WriteJob:
    """One call of `write` that waits."""

    work: Callable[[WriteOps], object]
    done: "asyncio.Future[object]"
    loop: asyncio.AbstractEventLoop
    durable: bool


# A job with its result or its error.
Ended = tuple[WriteJob, object, BaseException | None]


def notify_caller(ended: Sequence[Ended]) -> None:
    """Give all callers their results, each on its loop."""
    # The loop of a caller may be closed.
    for loop in {job.loop for job, _, _ in ended}:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(resolve_job, [each for each in ended if each[0].loop is loop])


def resolve_job(ended: Sequence[Ended]) -> None:
    """Give the callers of one loop their results."""
    # A future cannot carry StopIteration.
    for job, value, error in ended:
        if job.done.done():
            continue
        if error is None:
            job.done.set_result(value)
        else:
            known = RuntimeError(error) if isinstance(error, StopIteration) else error
            job.done.set_exception(known)


def mark_retrieved(done: "asyncio.Future[object]") -> None:
    """Retrieve the result, so that a cancelled caller leaves no "never retrieved" warning."""
    if not done.cancelled():
        done.exception()
