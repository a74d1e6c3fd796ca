"""Brings what nobody waited for to the disk, and into the file, behind everybody's back.

A commit that does not wait for the disk would else lie in the log until somebody's commit does, and the log would grow until then.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Executor

from mimir.errors import MimirError

SECONDS = 0.25
"""So long may what nobody waits for be on its way; a power cut takes no more than that."""
LOG_PAGES = 1000
"""So long may the log grow before it is begun anew; SQLite's own figure."""


class Checkpointer:
    """Works for one process's store while it is open."""

    def __init__(
        self, threads: Executor, connect: Callable[[], sqlite3.Connection], pen: threading.Lock
    ) -> None:
        """Begin with nothing to bring.

        Args:
            threads: Where it is done.
            connect: Opens a connection, which is kept: one of those who read would be wanted by them meanwhile.
            pen: Held by who writes.
        """
        self._threads = threads
        self._connect = connect
        self._pen = pen
        self._connection: sqlite3.Connection | None = None
        self._due: asyncio.TimerHandle | None = None
        self._is_owed = self._is_bringing = self._is_over = False

    def schedule(self) -> None:
        """See to it that what was just committed is on the disk before long."""
        self._is_owed = True
        if self._due is None and not self._is_bringing and not self._is_over:
            self._due = asyncio.get_running_loop().call_later(SECONDS, self._begin)

    def end(self) -> None:
        """Begin nothing more: who closes the file brings the rest."""
        self._is_over = True
        if self._due is not None:
            self._due.cancel()

    def close(self) -> None:
        """Let go, once nothing is done any more."""
        if self._connection is not None:
            self._connection.close()

    def checkpoint(self) -> bool:
        """Bring the log to the disk and into the file, as far as nobody is in the way; False: something is left. Blocking.

        A long log begins anew. It does only where all of it was brought, so nobody here writes for that moment, in which there is little left to bring.
        """
        try:
            connection = self._connection = self._connection or self._connect()
            is_whole, pages = _checkpoint(connection)
            if pages > LOG_PAGES:
                with self._pen:
                    is_whole, _ = _checkpoint(connection)
        except (sqlite3.Error, MimirError):  # the next durable commit meets it too, and tells
            return True
        return is_whole

    def _begin(self) -> None:
        self._due, self._is_owed, self._is_bringing = None, False, True
        loop = asyncio.get_running_loop()
        bringing = loop.run_in_executor(self._threads, self.checkpoint)
        bringing.add_done_callback(self._ended)

    def _ended(self, bringing: "asyncio.Future[bool]") -> None:
        self._is_bringing = False
        if self._is_owed or (not bringing.cancelled() and not bringing.result()):
            self.schedule()


def _checkpoint(connection: sqlite3.Connection) -> tuple[bool, int]:
    """Bring what there is; whether that was all, and how many pages the log has."""
    busy, pages, brought = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return not busy and pages == brought, pages
