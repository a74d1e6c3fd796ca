"""Transactions of the Neo4j store: taking the lock, looking up a commit, checking a view.

Both kinds run on a thread; the driver may run them again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
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


@dataclass(kw_only=True)
class WriteTransaction(Generic[T]):
    """Transaction that may write."""

    open_session: OpenSession
    work: Callable[[WriteOps], T]
    store: str
    """Name of the store in the database."""
    door: str
    """Name of this process."""
    token: str
    """Unique name of this transaction."""
    seconds: float
    """Time limit of the server."""
    clock: Clock
    """For durations."""
    now: Now | None = None
    """Its time. None: the server's."""
    ahead: str = ""
    """Run whose row comes with the lock, which saves a round trip."""
    value: T = field(init=False)
    """Result of the work, after the run."""
    turn: LockTurn = field(init=False)
    """Its turn with the lock, after the run."""
    run_asked: str = field(init=False)
    """Run that it read last, otherwise `ahead`; after the run."""
    _locked_at: float = field(init=False)

    def run(self) -> None:
        """Do the work and commit it."""
        # The server ends a transaction of a stopped process, which would block all others.
        bounded = unit_of_work(timeout=self.seconds)(self._under_lock)
        with self.open_session() as session:
            session.execute_write(bounded)
        self.turn.held = self.clock.monotonic() - self._locked_at

    def is_committed(self) -> bool:
        """Return whether it was committed; waits for the server."""
        with self.open_session() as session:
            return session.execute_write(self._look_up)

    def _under_lock(self, transaction: ManagedTransaction) -> None:
        # The row of the last run comes with the lock: nearly every transaction reads it.
        since = self.clock.monotonic()
        bound = {"store": self.store, "run": self.ahead, "lately": _LATELY_SECONDS}
        begun = _single(transaction, query("open"), **bound)
        self._locked_at = self.clock.monotonic()
        self.turn = LockTurn(asked=self._locked_at - since, writers=cast("int", begun["writers"]))
        if cast("int", begun["schema"]) > SCHEMA_VERSION:
            raise StoreError(
                f"The store was given schema {begun['schema']} by a newer mimir.",
                next_step="Use that newer mimir.",
            )
        ops = Neo4jOps(transaction, self.store, _time(begun, self.now))
        ops.know(NodeLabel.RUN, self.ahead, begun)
        try:
            self.value = self.work(ops)
            ops.finish(self.door, self.token)
            self.run_asked = ops.run_asked or self.ahead
        except StopIteration as error:
            raise RuntimeError(error) from error  # no future can carry it
        finally:
            ops.end()

    def _look_up(self, transaction: ManagedTransaction) -> bool:
        # It takes the lock, so it waits until the unanswered transaction has ended.
        text = query("landed")
        found = _single(transaction, text, store=self.store, door=self.door, token=self.token)
        return bool(found["landed"])


@dataclass(kw_only=True)
class ReadTransaction(Generic[T]):
    """Transaction that reads; its fields are those of `WriteTransaction`."""

    open_session: OpenSession
    work: Callable[[ReadOps], T]
    store: str
    now: Now | None = None
    value: T = field(init=False)
    """Result of the work, once a view was consistent."""

    def run(self) -> bool:
        """Do the work; False if another process wrote during it."""
        with self.open_session() as session:
            return session.execute_read(self._between_counts)

    def _between_counts(self, transaction: ManagedTransaction) -> bool:
        before = _single(transaction, query("view"), store=self.store)
        reads = Neo4jReads(transaction, self.store, _time(before, self.now))
        try:
            self.value = self.work(reads)
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
        after = _single(transaction, query("view"), store=self.store)
        return after["turn"] == before["turn"]


def _time(begun: Record, now: Now | None) -> str:
    """Return the time of a transaction."""
    return now() if now else stamp(cast("datetime", begun["now"].to_native()))


def _single(transaction: ManagedTransaction, text: CypherText, **bound: object) -> Record:
    record = transaction.run(str(text), bound).single()  # pyright: ignore[reportArgumentType]
    if record is None:
        raise StoreError("The store was removed from its database while it was in use.")
    return record
