"""Brings what nobody waited for to the disk, and into the file, behind everybody's back.

A commit that does not wait for the disk would else lie in the log until somebody's commit does, and the log would grow until then.
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Executor

from mimir.errors import MimirError

SECONDS = 0.25
"""So long may what nobody waits for be on its way; a power cut takes no more than that."""
LOG_PAGES = 1000
"""So long may the log grow before it is begun anew; SQLite's own figure."""

Lend = Callable[[], contextlib.AbstractContextManager[sqlite3.Connection]]


class Behind:
    """Works for one process's store while it is open."""

    def __init__(self, threads: Executor, lend: Lend, pen: threading.Lock) -> None:
        """Begin with nothing to bring.

        Args:
            threads: Where it is done.
            lend: Lends a connection that is nobody's at the moment.
            pen: Held by who writes.
        """
        self._threads = threads
        self._lend = lend
        self._pen = pen
        self._due: asyncio.TimerHandle | None = None
        self._is_over = False

    def owe(self) -> None:
        """See to it that what was just committed is on the disk before long."""
        if self._due is None and not self._is_over:
            self._due = asyncio.get_running_loop().call_later(SECONDS, self._begin)

    def end(self) -> None:
        """Begin nothing more: who closes the file brings the rest."""
        self._is_over = True
        if self._due is not None:
            self._due.cancel()

    def _begin(self) -> None:
        self._due = None  # what is committed from now on is owed again
        loop = asyncio.get_running_loop()
        bringing = loop.run_in_executor(self._threads, bring, self._lend, self._pen)
        bringing.add_done_callback(self._ended)

    def _ended(self, bringing: "asyncio.Future[bool]") -> None:
        if not bringing.cancelled() and not bringing.result():
            self.owe()


def bring(lend: Lend, pen: threading.Lock) -> bool:
    """Bring the log to the disk and into the file, as far as nobody is in the way, and let a long one begin anew; False: something is left."""
    try:
        with lend() as connection:
            is_whole, pages = _checkpoint(connection)
            if pages > LOG_PAGES:
                # It begins anew only where all of it was brought: nobody here writes meanwhile, and there is little left to bring.
                with pen:
                    is_whole, _ = _checkpoint(connection)
            return is_whole
    except (sqlite3.Error, MimirError):  # the next durable commit meets it too, and tells
        return True


def _checkpoint(connection: sqlite3.Connection) -> tuple[bool, int]:
    """Bring what there is; whether that was all, and how many pages the log has."""
    busy, pages, brought = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return not busy and pages == brought, pages
