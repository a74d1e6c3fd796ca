"""SQLite store: one file, several processes, one writer thread per process.

Waiting jobs are committed together: one durable write serves all of them. If a job fails, the transaction is rolled back and each job gets
its own. Reads have their own connections.
Source: docs/decisions/0014-thinking-does-not-wait-for-the-disk.md
"""

import asyncio
import contextlib
import math
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from mimir.domain.clock import Clock, stamp
from mimir.errors import MimirError, Paused, StoreError
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.sqlite import database_file, malloc_tuning
from mimir.store.sqlite.checkpointer import LOG_PAGES, Checkpointer
from mimir.store.sqlite.node_cache import NodeCache
from mimir.store.sqlite.read_ops import SqliteReads
from mimir.store.sqlite.write_ops import SqliteOps, write_changes


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


T = TypeVar("T")

_READERS = 4
_LARGEST_BATCH = 64
_PATIENCE_SECONDS = 120.0
# (waited less than, seconds between two tries for the write lock). A waiting process tries more often than a new one,
# so that none starves; and seldom if another process keeps the lock.
_PAUSES = ((0.02, 0.002), (0.1, 0.001), (math.inf, 0.008))

# Errors that belong to no single job: each job of the batch would meet them again.
_ENDS_ALL = frozenset(
    {
        sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_BUSY,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _WriterThread:
    """Thread that makes durable writes, and the connection of all writes."""

    thread: threading.Thread
    connection: sqlite3.Connection


class SqliteStore:
    """Store in one file."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        faults: Callable[[str], None] | None = None,
        patience_seconds: float = _PATIENCE_SECONDS,
        durable: bool = True,
    ) -> None:
        """Name the store; `init` opens it.

        Tests use `faults`: it is called at `before-commit` and `after-commit`. If not `durable`, a power cut may lose every write.
        """
        self._path = path
        self._clock = clock
        self._faults = faults or _no_faults
        self._jobs: queue.SimpleQueue[WriteJob | None] = queue.SimpleQueue()
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._readers: ThreadPoolExecutor | None = None
        self._writer: _WriterThread | None = None
        self._pen = threading.Lock()
        self._identity = (0, 0)
        self._kept = NodeCache()
        self._version = 0
        self._behind: Checkpointer | None = None
        self._durable = self._waits = durable
        self._wait_seconds = min(database_file.PATIENCE_SECONDS, patience_seconds)
        self._patience = patience_seconds

    @property
    def uri(self) -> str:
        """URI of the store."""
        return f"sqlite:{self._path}"

    async def init(self) -> None:
        """Create or check the file, and open it."""
        if self._writer is not None:
            return
        malloc_tuning.use_single_arena()
        await asyncio.to_thread(database_file.prepare, self._path)
        connection = self._open()
        # SQLite's own waiting grows to a tenth of a second: a late process would often go first, and others starve.
        connection.execute("PRAGMA busy_timeout = 0")
        self._identity = database_file.identity(self._path)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="mimir-read")
        if self._durable:
            self._behind = Checkpointer(self._readers, self._open, self._pen)
        thread = threading.Thread(
            target=self._serve, args=(connection,), name="mimir-write", daemon=True
        )
        self._writer = _WriterThread(thread, connection)
        thread.start()

    async def write(self, work: Callable[[WriteOps], T], /, *, durable: bool = True) -> T:
        """Run `work` in one transaction; wait for the disk if a job of the transaction is durable."""
        writer = self._writer
        if writer is None:
            raise StoreError(f"The store {self._path} is not open.")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[object] = loop.create_future()
        done.add_done_callback(mark_retrieved)
        job = WriteJob(work, done, loop, durable)
        if durable or not self._write_here(writer.connection, job):
            self._jobs.put(job)
        # Shielded: a caller that is cancelled must not leave it unsure whether it was written.
        value = await asyncio.shield(done)
        if self._behind is not None and not durable:
            self._behind.schedule()
        return cast("T", value)

    async def read(self, work: Callable[[ReadOps], T], /, *, brief: bool = False) -> T:
        """Run `work` on one consistent view; a brief one on the caller's thread."""
        # For a few rows, a change of threads takes longer than the query.
        if self._readers is None:
            raise StoreError(f"The store {self._path} is not open.")
        if brief:
            return self._view(work)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._view, work)

    async def close(self) -> None:
        """Finish the waiting jobs, and close the file."""
        writer, readers = self._writer, self._readers
        self._writer = self._readers = None
        if writer is None or readers is None:
            return
        if self._behind is not None:
            self._behind.end()
        self._jobs.put(None)
        await asyncio.to_thread(writer.thread.join)
        await asyncio.to_thread(readers.shutdown)
        if self._behind is not None:
            self._behind.close()
        while not self._idle.empty():
            self._idle.get().close()

    def _now(self) -> str:
        return stamp(self._clock.now())

    def _open(self) -> sqlite3.Connection:
        try:
            return database_file.connect(
                self._path, wait_seconds=self._wait_seconds, durable=self._durable
            )
        except sqlite3.Error as error:
            raise database_file.problem(error, self._path) from error

    def _view(self, work: Callable[[ReadOps], T]) -> T:
        # Connections are reused: opening one takes longer than most reads.
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = self._open()
        reads = SqliteReads(connection, self._now)
        try:
            connection.execute("BEGIN")
            return work(reads)
        except sqlite3.Error as error:
            raise database_file.problem(error, self._path) from error
        finally:
            reads.end()
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._idle.put(connection)

    def _serve(self, connection: sqlite3.Connection) -> None:
        """Write one batch after another until the store is closed."""
        going = True
        while going:
            batch, going = self._next_batch()
            if batch:
                with self._pen:
                    ended = self._transaction(connection, batch)
                notify_caller(ended)
        connection.close()

    def _next_batch(self) -> tuple[list[WriteJob], bool]:
        # All waiting jobs share one durable write.
        batch: list[WriteJob] = []
        job = self._jobs.get()
        while job is not None:
            batch.append(job)
            if len(batch) == _LARGEST_BATCH:
                return batch, True
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _write_here(self, connection: sqlite3.Connection, job: WriteJob) -> bool:
        """Write on the caller's thread, without the disk; False if another write is under way."""
        # A change of threads takes longer than the write: both threads sleep and are woken.
        if not self._jobs.empty() or not self._pen.acquire(blocking=False):
            return False
        try:
            if not self._is_locked(connection, durable=False):
                return False
            resolve_job(self._transaction(connection, [job], begun=True))
        except (MimirError, sqlite3.Error):  # the writer's thread will meet it too, and tell
            return False
        finally:
            self._pen.release()
        return True

    def _transaction(
        self, connection: sqlite3.Connection, batch: list[WriteJob], *, begun: bool = False
    ) -> list[Ended]:
        """Commit jobs together; if one fails, each gets a transaction of its own."""
        try:
            if not begun:
                self._begin(connection, any(job.durable for job in batch))
            self._forget_what_others_wrote(connection)
            ended: list[Ended] = [(job, self._run(connection, job), None) for job in batch]
            write_changes(connection, self._kept)
        except BaseException as error:  # noqa: BLE001  the rim: every caller of the batch must hear of it
            self._roll_back(connection)
            if len(batch) == 1 or _ends_all(error):
                return self._failed(batch, error)
            return [each for job in batch for each in self._transaction(connection, [job])]
        try:
            self._faults("before-commit")
            connection.execute("COMMIT")
            self._kept.trim()
            self._faults("after-commit")
        except BaseException as error:  # noqa: BLE001  as above
            self._roll_back(connection)
            return self._failed(batch, error)
        return ended

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        # Cached nodes may hold changes that never happened.
        self._kept.clear()
        if connection.in_transaction:
            connection.execute("ROLLBACK")

    def _failed(self, batch: Sequence[WriteJob], error: BaseException) -> list[Ended]:
        message = (
            database_file.problem(error, self._path) if isinstance(error, sqlite3.Error) else error
        )
        return [(job, None, message) for job in batch]

    def _forget_what_others_wrote(self, connection: sqlite3.Connection) -> None:
        """Clear the cache if another connection has committed since."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._kept.clear()
            self._version = version

    def _begin(self, connection: sqlite3.Connection, durable: bool) -> None:
        """Take the write lock; wait for other processes."""
        waited = 0.0
        while not self._is_locked(connection, durable, last=waited >= self._patience):
            pause = next(pause for most, pause in _PAUSES if waited < most)
            time.sleep(pause)
            waited += pause

    def _is_locked(
        self, connection: sqlite3.Connection, durable: bool, *, last: bool = False
    ) -> bool:
        """Try to take the write lock; False if another process has it, an error on the last try."""
        self._still_there()
        if self._durable and durable != self._waits:
            # A transaction that does not wait for the disk leaves it to others to copy the log into the file, too.
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES if durable else 0}")
            self._waits = durable
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if last or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True

    def _still_there(self) -> None:
        """Refuse to write into a removed file: the data would be lost with this process."""
        try:
            there = database_file.identity(self._path)
        except OSError:
            there = None
        if there != self._identity:
            raise Paused(
                f"The store {self._path} was removed or replaced while it was in use.",
                reason="store",
                next_step="Put it back, then `mimir resume`.",
            )

    def _run(self, connection: sqlite3.Connection, job: WriteJob) -> object:
        ops = SqliteOps(connection, self._now, self._kept)
        try:
            value = job.work(ops)
        finally:
            ops.end()
        if not connection.in_transaction:
            raise StoreError(f"The store {self._path} rolled the transaction back.")
        return value


def _no_faults(boundary: str) -> None:
    """Let every boundary pass."""


def _ends_all(error: BaseException) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, sqlite3.Error) and code is not None and code & 0xFF in _ENDS_ALL
