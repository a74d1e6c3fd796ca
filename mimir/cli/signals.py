"""Signals: the first cancels the work in order, the second ends the process at once.

A handler runs between two instructions of the main thread, even while the event loop is busy, so it only passes the cancellation to
the loop. A thread enforces the time limit, so the process ends even if the work hangs.
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
"""Longest time from the first signal to the end of the process: the user waits."""
LONGER_GRACE_SECONDS = 4.5
"""The same for other signals: on a busy machine the leases must still be released."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

T = TypeVar("T")


class SignalHandler:
    """Turns the signals of the process into the cancellation of one job."""

    def __init__(
        self, tidy: Callable[[], object], leave: Callable[[int], object] = os._exit
    ) -> None:
        """Prepare the handler.

        Args:
            tidy: Restores the terminal; called before the process ends at once.
            leave: Ends the process at once with an exit code.
        """
        self._tidy = tidy
        self._leave = leave
        self._count = 0
        self._cancel: Callable[[], object] | None = None

    def run(self, job: Coroutine[object, object, T]) -> T:
        """Run `job` in an event loop of its own; a signal raises `asyncio.CancelledError`."""
        # A process started by nohup ignores SIGHUP from the start, and keeps ignoring it.
        heard = [n for n in _SIGNALS if n != signal.SIGHUP or signal.getsignal(n) != signal.SIG_IGN]
        before = {number: signal.signal(number, self._on_signal) for number in heard}
        # asyncio warns of children that were killed, and standard error is for errors.
        logging.getLogger("asyncio").addFilter(_is_relevant)
        try:
            return asyncio.run(self._run_cancellable(job))
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def _run_cancellable(self, job: Coroutine[object, object, T]) -> T:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(job)
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        # The signal may have come before the loop was running.
        if self._count:
            task.cancel()
        return await task

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._count > 1:
            self._end()
            return
        seconds = GRACE_SECONDS.get(signal.Signals(number), LONGER_GRACE_SECONDS)
        timer = threading.Timer(seconds, self._end)
        # A daemon: the timer must not keep a finished process alive.
        timer.daemon = True
        timer.start()
        if self._cancel is not None:
            self._cancel()

    def _end(self) -> None:
        self._tidy()
        self._leave(INTERRUPTED)


def _is_relevant(record: logging.LogRecord) -> bool:
    # A child that ended while it was being killed has no exit code left, and none is needed.
    return not str(record.msg).startswith("Unknown child process")
