"""Transactions of the Neo4j store: taking the lock, looking up a commit, checking a view.

Both kinds run on a thread; the driver may run them again.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from neo4j import ManagedTransaction, Record, Session, unit_of_work
from neo4j.exceptions import DriverError, Neo4jError

from mimir.domain.clock import Clock, stamp
from mimir.errors import StoreError
from mimir.store.neo4j.backoff import LockTurn
from mimir.store.neo4j.query_library import CypherText, query
from mimir.store.neo4j.read_ops import Neo4jReads
from mimir.store.neo4j.write_ops import Neo4jOps
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.schema import SCHEMA_VERSION, NodeLabel

if TYPE_CHECKING:
    from datetime import datetime

T = TypeVar("T")
# A process that has opened the store or written within this time counts as a writer.
_LATELY_SECONDS = 2
OpenSession = Callable[[], Session]
Now = Callable[[], str]


class WriteTransaction(Generic[T]):
    """Transaction that may write."""

    value: T
    """Result of the work, after the run."""
    turn: LockTurn
    """Its turn with the lock, after the run."""
    run_asked: str
    """Run that it read last, otherwise `ahead`; after the run."""

    def __init__(
        self,
        open_session: OpenSession,
        work: Callable[[WriteOps], T],
        *,
        store: str,
        door: str,
        token: str,
        seconds: float,
        clock: Clock,
        now: Now | None = None,
        ahead: str = "",
    ) -> None:
        """Prepare it.

        Args:
            open_session: Opens a session.
            work: Work of the transaction.
            store: Name of the store in the database.
            door: Name of this process.
            token: Unique name of this transaction.
            seconds: Time limit of the server.
            clock: For durations.
            now: Its time. None: the server's.
            ahead: Run whose row comes with the lock, which saves a round trip.
        """
        self._open_session = open_session
        self._work = work
        self._store = store
        self._ahead = ahead
        self._door = door
        self._token = token
        self._seconds = seconds
        self._clock = clock
        self._now = now

    def run(self) -> None:
        """Do the work and commit it."""
        # The server ends a transaction of a stopped process, which would block all others.
        bounded = unit_of_work(timeout=self._seconds)(self._under_lock)
        with self._open_session() as session:
            session.execute_write(bounded)
        self.turn.held = self._clock.monotonic() - self._locked_at

    def is_committed(self) -> bool:
        """Return whether it was committed; waits until the server knows."""
        with self._open_session() as session:
            return session.execute_write(self._look_up)

    def _under_lock(self, transaction: ManagedTransaction) -> None:
        # The row of the last run comes with the lock: nearly every transaction reads it.
        since = self._clock.monotonic()
        bound = {"store": self._store, "run": self._ahead, "lately": _LATELY_SECONDS}
        begun = _single(transaction, query("open"), **bound)
        self._locked_at = self._clock.monotonic()
        self.turn = LockTurn(asked=self._locked_at - since, writers=cast("int", begun["writers"]))
        if cast("int", begun["schema"]) > SCHEMA_VERSION:
            raise StoreError(
                f"The store was given schema {begun['schema']} by a newer mimir.",
                next_step="Use that newer mimir.",
            )
        ops = Neo4jOps(transaction, self._store, _time(begun, self._now))
        ops.know(NodeLabel.RUN, self._ahead, begun)
        try:
            self.value = self._work(ops)
            ops.finish(self._door, self._token)
            self.run_asked = ops.run_asked or self._ahead
        except StopIteration as error:
            raise RuntimeError(error) from error  # no future can carry it
        finally:
            ops.end()

    def _look_up(self, transaction: ManagedTransaction) -> bool:
        # It takes the lock, so it waits until the unanswered transaction has ended.
        text = query("landed")
        found = _single(transaction, text, store=self._store, door=self._door, token=self._token)
        return bool(found["landed"])


class ReadTransaction(Generic[T]):
    """Transaction that reads."""

    value: T
    """Result of the work, once a view was consistent."""

    def __init__(
        self,
        open_session: OpenSession,
        work: Callable[[ReadOps], T],
        *,
        store: str,
        now: Now | None = None,
    ) -> None:
        """Prepare it; the arguments are those of `WriteTransaction`."""
        self._open_session = open_session
        self._work = work
        self._store = store
        self._now = now

    def run(self) -> bool:
        """Do the work; False if another process wrote during it."""
        with self._open_session() as session:
            return session.execute_read(self._between_counts)

    def _between_counts(self, transaction: ManagedTransaction) -> bool:
        before = _single(transaction, query("view"), store=self._store)
        reads = Neo4jReads(transaction, self._store, _time(before, self._now))
        try:
            self.value = self._work(reads)
        except (DriverError, Neo4jError):
            raise
        except StopIteration as error:
            raise RuntimeError(error) from error
        except Exception:
            if self._is_one(transaction, before, reads.statements):
                raise
            return False
        finally:
            reads.end()
        return self._is_one(transaction, before, reads.statements)

    def _is_one(self, transaction: ManagedTransaction, before: Record, statements: int) -> bool:
        # One statement is consistent by itself.
        if statements < 2:
            return True
        after = _single(transaction, query("view"), store=self._store)
        return after["turn"] == before["turn"]


def _time(begun: Record, now: Now | None) -> str:
    """Return the time of a transaction."""
    return now() if now else stamp(cast("datetime", begun["now"].to_native()))


def _single(transaction: ManagedTransaction, text: CypherText, **bound: object) -> Record:
    record = transaction.run(str(text), bound).single()  # pyright: ignore[reportArgumentType]
    if record is None:
        raise StoreError("The store was removed from its database while it was in use.")
    return record
