"""Ctrl-C and SIGTERM: the first one stops the work in order, the second one at once.

A handler of Python's own runs between two instructions of the main thread, also while the event loop is busy; what it may not do
there it hands to the loop. What must come after some seconds comes, whatever hangs: a thread sees to it.
"""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import TypeVar

from mimir.cli.error_output import INTERRUPTED

GRACE_SECONDS = {signal.SIGINT: 1.5}
"""From the first signal to the end of the process, if what is under way does not come to rest by itself: a person waits."""
LONGER_GRACE_SECONDS = 4.5
"""The same where nobody waits: on a busy machine the leases are given back all the same."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

T = TypeVar("T")


class SignalHandler:
    """Turns the process's signals into the cancellation of one job."""

    def __init__(
        self, tidy: Callable[[], object], leave: Callable[[int], object] = os._exit
    ) -> None:
        """Make one.

        Args:
            tidy: Called before the process ends at once; leaves the terminal in order.
            leave: Ends the process at once, with this exit code.
        """
        self._tidy = tidy
        self._leave = leave
        self._count = 0
        self._cancel: Callable[[], object] | None = None

    @property
    def is_requested(self) -> bool:
        """True after the first signal."""
        return self._count > 0

    def run(self, job: Coroutine[object, object, T]) -> T:
        """Run `job` in an event loop of its own.

        Raises:
            asyncio.CancelledError: It was interrupted, and has come to rest.
        """
        # Who was started by nohup stays: a signal that was ignored from the start is not for us.
        heard = [n for n in _SIGNALS if n != signal.SIGHUP or signal.getsignal(n) != signal.SIG_IGN]
        before = {number: signal.signal(number, self._signalled) for number in heard}
        logging.getLogger("asyncio").addFilter(_is_news)
        try:
            return asyncio.run(self._cancellable(job))
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def _cancellable(self, job: Coroutine[object, object, T]) -> T:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(job)

        def cancel() -> None:
            loop.call_soon_threadsafe(task.cancel)

        self._cancel = cancel
        if self.is_requested:
            task.cancel()
        return await task

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._count > 1:
            self._end()
            return
        seconds = GRACE_SECONDS.get(signal.Signals(number), LONGER_GRACE_SECONDS)
        timer = threading.Timer(seconds, self._end)
        timer.daemon = True
        timer.start()
        if self._cancel is not None:
            self._cancel()

    def _end(self) -> None:
        self._tidy()
        self._leave(INTERRUPTED)


def _is_news(record: logging.LogRecord) -> bool:
    """Keep back that a child which ended by itself while it was being killed is gone already: nobody misses its exit code."""
    return not str(record.msg).startswith("Unknown child process")
