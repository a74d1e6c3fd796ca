"""Neo4j store: a Neo4j 5 server, any number of processes on any number of machines.

A writing transaction takes the store's lock first, so writers are serial. A reading one takes no lock: it counts the writers before and
after, and is repeated if one came between. A lost server is waited for; an unanswered commit is looked up.
"""

# pyright: reportUnknownMemberType=false

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar, cast

from neo4j import Driver, Session
from neo4j.exceptions import DriverError, IncompleteCommit, Neo4jError

from mimir.domain.clock import Clock
from mimir.errors import Paused, StoreError
from mimir.store.neo4j import server
from mimir.store.neo4j.address import Neo4jAddress
from mimir.store.neo4j.backoff import LockBackoff
from mimir.store.neo4j.transactions import ReadTransaction, WriteTransaction
from mimir.store.protocol import ReadOps, WriteOps

T = TypeVar("T")

_READERS = 4
# Tries of a view without the lock.
_VIEWS = 3
_PATIENCE_SECONDS = 300.0
_RETRY_SECONDS = 2.0
# After this the server ends a writing transaction: its process may be stopped, and others wait for the lock.
_LOCK_SECONDS = 30.0
_TRIES_TOO_SLOW = 3
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 2.0


class Neo4jStore:
    """Store in a Neo4j database."""

    def __init__(
        self,
        address: Neo4jAddress,
        clock: Clock,
        *,
        door: str,
        say: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        patience_seconds: float = _PATIENCE_SECONDS,
        lock_seconds: float = _LOCK_SECONDS,
        retry_seconds: float = _RETRY_SECONDS,
        now: Callable[[], str] | None = None,
    ) -> None:
        """Name the store; `init` opens it.

        Args:
            address: Its address.
            clock: For durations; leases are compared with the server's time.
            door: Unique name of this process; its last commit is recorded under it.
            say: Called once when the server is lost, and once when it is back.
            sleep: Waits between tries.
            patience_seconds: How long a lost server is waited for before the run pauses.
            lock_seconds: How long one transaction may hold the store's lock.
            retry_seconds: How long a conflict is retried before the server counts as lost.
            now: Time of the store. None: the server's, on which several hosts agree.
        """
        self._address = address
        self._clock = clock
        self._door = door
        self._say = say
        self._sleep = sleep
        self._patience = patience_seconds
        self._lock_seconds = lock_seconds
        self._retry_seconds = retry_seconds
        self._now = now
        self._driver: Driver | None = None
        self._threads: tuple[ThreadPoolExecutor, ThreadPoolExecutor] | None = None
        self._jobs: set[asyncio.Future[object]] = set()
        self._lost_since: float | None = None
        self._written = 0
        # Run that the last transaction read; the next one gets its row with the lock.
        self._run = ""
        self._turn = asyncio.Lock()
        self._backoff = LockBackoff()

    @property
    def uri(self) -> str:
        """URI without user and password."""
        return self._address.shown

    async def init(self) -> None:
        """Connect to the server, create or check the schema.

        Raises:
            UnavailableError: The server is absent, too old or read-only.
            ConfigurationError: It refuses the user, the password or the database.
            StoreError: The store has a newer schema.
        """
        if self._threads is not None:
            return
        await server.reach(self._address)
        # Without retries: a wrong setting must be reported at once.
        self._driver = server.connect(self._address, connections=2, retry_seconds=0)
        try:
            await asyncio.to_thread(self._begin)
        finally:
            self._driver.close()
            self._driver = None
        self._driver = server.connect(
            self._address, connections=_READERS + 2, retry_seconds=self._retry_seconds
        )
        self._threads = (
            ThreadPoolExecutor(1, thread_name_prefix="mimir-write"),
            ThreadPoolExecutor(_READERS, thread_name_prefix="mimir-read"),
        )

    async def write(self, work: Callable[[WriteOps], T], /, *, durable: bool = True) -> T:
        """Run `work` in one transaction and commit it; the server decides about its disk."""
        writer, _ = self._open()
        # Shielded: a caller that is cancelled must not leave it unsure whether it was written.
        return await asyncio.shield(self._job(self._write(writer, work)))

    async def read(self, work: Callable[[ReadOps], T], /, *, brief: bool = False) -> T:
        """Run `work` on one consistent view."""
        writer, readers = self._open()
        return await asyncio.shield(self._job(self._read(writer, readers, work)))

    async def close(self) -> None:
        """Finish the waiting transactions, and close the connections."""
        threads, driver = self._threads, self._driver
        self._threads = None
        if threads is None or driver is None:
            return
        while self._jobs:
            await asyncio.gather(*self._jobs, return_exceptions=True)
        for pool in threads:
            await asyncio.to_thread(pool.shutdown)
        await asyncio.to_thread(self._leave, driver)
        self._driver = None

    def _open(self) -> tuple[Executor, Executor]:
        if self._threads is None:
            raise StoreError(f"The store {self.uri} is not open.")
        return self._threads

    def _job(self, work: "Awaitable[T]") -> "asyncio.Future[T]":
        """Start work that continues if its caller is cancelled."""
        job = asyncio.ensure_future(work)
        kept = cast("asyncio.Future[object]", job)
        self._jobs.add(kept)
        kept.add_done_callback(self._ended)
        return job

    def _ended(self, job: "asyncio.Future[object]") -> None:
        """Retrieve the result, so that a cancelled caller leaves no "never retrieved" warning."""
        self._jobs.discard(job)
        if not job.cancelled():
            job.exception()

    async def _write(self, writer: Executor, work: Callable[[WriteOps], T]) -> T:
        # One after another until each is known to have landed or not: the next one leaves its token at the same door.
        async with self._turn:
            if away := self._backoff.seconds(self._clock.monotonic()):
                await self._sleep(away)
            once = await self._once(writer, work)
            self._backoff.record_turn(once.turn, self._clock.monotonic())
            self._run = once.run_asked
            return once.value

    async def _once(self, writer: Executor, work: Callable[[WriteOps], T]) -> WriteTransaction[T]:
        # A commit without an answer is looked up by its token, and repeated only if it is absent.
        while True:
            self._written += 1
            once = WriteTransaction(
                open_session=self._session,
                work=work,
                store=self._address.store,
                door=self._door,
                token=f"{self._door}#{self._written}",
                seconds=self._lock_seconds,
                clock=self._clock,
                now=self._now,
                ahead=self._run,
            )
            try:
                await self._patiently(writer, once.run, once_only=True)
            except IncompleteCommit:
                if not await self._patiently(writer, once.is_committed):
                    continue
            return once

    async def _read(self, writer: Executor, readers: Executor, work: Callable[[ReadOps], T]) -> T:
        # After several interrupted views, the lock guarantees an undisturbed one.
        for _ in range(_VIEWS):
            view = ReadTransaction(
                open_session=self._session, work=work, store=self._address.store, now=self._now
            )
            if await self._patiently(readers, view.run):
                return view.value
        # Writers come and come: take the lock for once, so that none comes between.
        return await self._write(writer, work)

    async def _patiently(
        self, pool: Executor, attempt: Callable[[], T], *, once_only: bool = False
    ) -> T:
        """Repeat an attempt until the server answers, within the patience.

        Raises:
            Paused: The server did not answer in time.
            IncompleteCommit: The server was lost during the commit of a `once_only` attempt.
        """
        loop = asyncio.get_running_loop()
        delay, slow = _FIRST_DELAY, 0
        while True:
            try:
                value = await loop.run_in_executor(pool, attempt)
            except (DriverError, Neo4jError) as error:
                if once_only and isinstance(error, IncompleteCommit):
                    raise
                slow += server.is_too_slow(error)
                if not server.is_lost(error) and not 0 < slow < _TRIES_TOO_SLOW:
                    raise server.problem(error, self.uri) from error
                self._wait_or_pause(error, slow=slow > 0)
            else:
                self._back()
                return value
            await self._sleep(delay)
            delay = min(2 * delay, _LONGEST_DELAY)

    def _wait_or_pause(self, error: Exception, *, slow: bool) -> None:
        """Report once that the server is lost.

        Raises:
            Paused: It has been lost for too long.
        """
        # A slow transaction is not a lost server, so nothing is reported.
        if slow:
            return
        now = self._clock.monotonic()
        if self._lost_since is None:
            self._lost_since = now
            minutes = self._patience / 60
            self._say(
                f"The store {self.uri} does not answer; waiting for it, {minutes:g} minutes at most."
            )
        if now - self._lost_since >= self._patience:
            raise Paused(
                f"The store {self.uri} was lost.\n{server.problem(error, self.uri)}",
                reason="store",
                next_step="Start its server, then `mimir resume`.",
            ) from error

    def _back(self) -> None:
        # Reported once, however many tasks waited.
        if self._lost_since is not None:
            self._lost_since = None
            self._say(f"The store {self.uri} is back.")

    def _begin(self) -> None:
        """Log in and prepare, on a thread."""
        try:
            server.prepare(self._session, self._address, self._door)
        except (DriverError, Neo4jError, OSError) as error:
            raise server.problem(error, self.uri) from error

    def _leave(self, driver: Driver) -> None:
        """Remove this process's node, unless the server is lost."""
        with contextlib.suppress(DriverError, Neo4jError):
            if self._lost_since is None:
                server.leave(self._session, self._address, self._door)
        driver.close()

    def _session(self) -> Session:
        return self._connected().session(database=self._address.database or None)

    def _connected(self) -> Driver:
        if self._driver is None:
            raise StoreError(f"The store {self.uri} is not open.")
        return self._driver
