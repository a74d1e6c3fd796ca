"""Server of a Neo4j store: connection, errors for the user, and schema."""

# pyright: reportUnknownMemberType=false

import asyncio
import contextlib
import logging
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

from neo4j import Driver, GraphDatabase, ManagedTransaction, Session
from neo4j.exceptions import (
    AuthError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    TransientError,
    WriteServiceUnavailable,
)
from neo4j.exceptions import ConfigurationError as DriverConfigurationError

from mimir.errors import ConfigurationError, MimirError, StoreError, UnavailableError
from mimir.store import schema
from mimir.store.neo4j.address import Neo4jAddress
from mimir.store.neo4j.query_library import CypherText, join_texts, names, query

# Major version of the oldest supported server.
OLDEST = 5
# Time limit of the first connection: a wrong address must be reported at once.
REACH_SECONDS = 0.8
# Time limit of a connection to a server that was reached; a busy server needs time.
CONNECT_SECONDS = 10.0

# Tries of the schema: two processes that create it at the same time disturb each other.
_PREPARING = 10
# Label and the properties of one query.
_INDEXED: tuple[tuple[str, ...], ...] = (
    ("Project", "projectId"), ("Run", "projectId"), ("Run", "status"), ("Task", "runId"), ("Task", "runId", "status"),
    ("Task", "runId", "claimState"), ("Attempt", "runId"), ("Verdict", "runId"), ("Evidence", "runId"),
    ("Evidence", "chain"), ("Artifact", "runId"), ("Memory", "projectId"), ("Call", "runId"), ("Call", "lane"),
    ("Event", "runId", "seq"),
)  # fmt: skip

_WRONG_PASSWORD = "Neo.ClientError.Security."
_NO_DATABASE = "Neo.ClientError.Database.DatabaseNotFound"
_READ_ONLY = (
    "Neo.ClientError.General.ForbiddenOnReadOnlyDatabase",
    "Neo.ClientError.General.WriteOnReadOnlyAccessDatabase",
    "Neo.ClientError.Cluster.NotALeader",
    "Neo.ClientError.Statement.AccessMode",
    "Neo.ClientError.Security.Forbidden",
)
_NO_MEMORY = ("Neo.TransientError.General.MemoryPoolOutOfMemoryError", "Neo.TransientError.General.OutOfMemoryError")  # fmt: skip
_DOWN = ("Neo.TransientError.General.DatabaseUnavailable", "Neo.TransientError.Database.DatabaseUnavailable")  # fmt: skip
_TIMED_OUT = "Neo.ClientError.Transaction.TransactionTimedOut"
_MAJOR = re.compile(r"Neo4j/(\d+)")


def is_lost(error: BaseException) -> bool:
    """Return whether the server is absent now and may return."""
    if isinstance(error, ServiceUnavailable | SessionExpired):
        return True
    return isinstance(error, Neo4jError) and error.code in _DOWN


def is_too_slow(error: BaseException) -> bool:
    """Return whether the server ended a transaction at its time limit."""
    # A large transaction of a busy server deserves a second try.
    return isinstance(error, Neo4jError) and str(error.code).startswith(_TIMED_OUT)


def problem(error: Exception, shown: str) -> MimirError:
    """Return the error for the user that an error of the driver means."""
    # The order counts: a read-only server also reports a security code.
    code = str(error.code) if isinstance(error, Neo4jError) else ""
    if isinstance(error, WriteServiceUnavailable) or code in _READ_ONLY:
        return UnavailableError(
            f"The store {shown} may only be read.\n{_driver_message(error)}",
            next_step="Name a database and a user that may write, with `--store`.",
        )
    if isinstance(error, AuthError) or code.startswith(_WRONG_PASSWORD):
        return ConfigurationError(
            f"The store {shown} refuses this user or password.\n{_driver_message(error)}",
            next_step="Set the password in MIMIR_NEO4J_PASSWORD; a user other than neo4j in MIMIR_NEO4J_USER.",
        )
    if code == _NO_DATABASE:
        return ConfigurationError(
            f"The server of {shown} has no such database.\n{_driver_message(error)}",
            next_step="Name one that it has: neo4j://HOST:7687/DATABASE",
        )
    if code in _NO_MEMORY:
        return StoreError(
            f"The server of {shown} had not enough memory for one transaction.\n{_driver_message(error)}",
            next_step="Raise dbms.memory.transaction.total.max or its heap, then `mimir resume`.",
        )
    if is_lost(error) or isinstance(error, DriverConfigurationError | OSError):
        return unreachable(shown, _driver_message(error))
    return StoreError(f"The store {shown} refused.\n{_driver_message(error)}")


def unreachable(shown: str, why: str) -> UnavailableError:
    """Return the error for a server that cannot be reached."""
    return UnavailableError(
        f"The store {shown} cannot be reached.\n{why}",
        next_step="Start the server, or name another store with `--store`.",
    )


async def reach(address: Neo4jAddress) -> None:
    """Check that the server accepts connections.

    Raises:
        UnavailableError: It does not.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[str] = loop.create_future()

    def knock() -> None:
        reason = ""
        try:
            socket.create_connection((address.host, address.port), timeout=REACH_SECONDS).close()
        except OSError as error:
            reason = f"{address.host}:{address.port}: {error.strerror or error}"
        with contextlib.suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(_answer, done, reason)

    # A daemon: looking up a name may take long, and nothing waits for it when the process ends.
    threading.Thread(target=knock, name="mimir-knock", daemon=True).start()
    try:
        reason = await asyncio.wait_for(done, REACH_SECONDS + 0.1)
    except TimeoutError:
        reason = f"{address.host}:{address.port} did not answer in {REACH_SECONDS:g} seconds."
    if reason:
        raise unreachable(address.shown, reason)


async def try_out(address: Neo4jAddress) -> None:
    """Log in and check the version, without a change.

    Raises:
        UnavailableError: The server is absent or too old.
        ConfigurationError: It refuses the user, the password or the database.
    """
    await reach(address)
    driver = connect(address, connections=1, retry_seconds=0)

    def look() -> None:
        try:
            with driver.session(database=address.database or None) as session:
                agent, _ = session.execute_read(_look)
        except (DriverError, Neo4jError, OSError) as error:
            raise problem(error, address.shown) from error
        finally:
            driver.close()
        _must_be_new_enough(agent, address)

    await asyncio.to_thread(look)


def connect(address: Neo4jAddress, *, connections: int, retry_seconds: float) -> Driver:
    """Create the driver; it opens connections when they are needed.

    Raises:
        ConfigurationError: The driver cannot use the address.
    """
    # Hints of the server about queries (a label that nothing has yet) are for developers; they would be printed.
    logging.getLogger("neo4j.notifications").setLevel(logging.CRITICAL)
    logging.getLogger("neo4j").addHandler(logging.NullHandler())
    try:
        return GraphDatabase.driver(
            address.uri,
            auth=(address.user, address.password) if address.user else None,
            max_connection_pool_size=connections,
            connection_timeout=CONNECT_SECONDS,
            connection_acquisition_timeout=CONNECT_SECONDS,
            initial_retry_delay=0.02,
            retry_delay_multiplier=2.0,
            max_transaction_retry_time=retry_seconds,
            telemetry_disabled=True,
            user_agent="mimir",
        )
    except (DriverError, ValueError) as error:
        raise ConfigurationError(
            f"The store's URI cannot be used: {_driver_message(error)}",
            next_step="Write it as neo4j://HOST:7687",
        ) from error


def prepare(open_session: Callable[[], Session], address: Neo4jAddress, door: str) -> None:
    """Log in, create or check the schema and the nodes of store and process; idempotent.

    Raises:
        UnavailableError: The server is too old.
        StoreError: The store has a newer schema; it is left untouched.
    """
    for left in reversed(range(_PREPARING)):
        try:
            _prepare(open_session, address, door)
        except Neo4jError as error:
            if not left or not _in_the_way(error):
                raise
        else:
            return


def _in_the_way(error: Neo4jError) -> bool:
    """Return whether another process created the schema at the same time."""
    # The second process fails, and finds the schema at its next try.
    exists_already = str(error.code).startswith("Neo.ClientError.Schema.") and "AlreadyExists" in str(error.code)  # fmt: skip
    return exists_already or isinstance(error, TransientError)


def _prepare(open_session: Callable[[], Session], address: Neo4jAddress, door: str) -> None:
    # The schema is created only by the first process: its statements lock the database.
    with open_session() as session:
        agent, stores = session.execute_read(_look)
    _must_be_new_enough(agent, address)
    version = stores.get(address.store)
    if version is not None and version > schema.SCHEMA_VERSION:
        raise StoreError(
            f"The store {address.shown} has schema {version}; this mimir knows {schema.SCHEMA_VERSION} and older.",
            next_step="Use a newer mimir, or name another store with `--store`.",
        )
    with open_session() as session:
        if schema.SCHEMA_VERSION not in stores.values():
            for statement in _schema():
                session.execute_write(_run, statement)
            session.execute_read(_run, query("wait-for-indexes"))
        begin = {"store": address.store, "schema": schema.SCHEMA_VERSION, "door": door}
        session.execute_write(_run, query("begin"), **begin)


def leave(open_session: Callable[[], Session], address: Neo4jAddress, door: str) -> None:
    """Remove the node of a process."""
    with open_session() as session:
        session.execute_write(_run, query("leave"), store=address.store, door=door)


def _schema() -> Iterator[CypherText]:
    """Yield the statements that create constraints and indexes."""
    yield query("store-key")
    yield query("any-key")
    for label in (*(label.value for label in schema.NodeLabel), "MimirDoor"):
        yield query("node-key", label=label)
    for label, *properties in _INDEXED:
        if len(properties) == 1:
            yield query("one-index", label=label, property=properties[0])
        else:
            first, second = properties
            yield query("two-index", label=label, property=first, second=second)
    yield query("claim-index")
    searched = join_texts([query("promoted", property=name) for name in dict.fromkeys(schema.SEARCHED.values())], ", ")  # fmt: skip
    yield query("text-index", labels=names(schema.SEARCHED), properties=searched)


def _must_be_new_enough(agent: str, address: Neo4jAddress) -> None:
    found = _MAJOR.match(agent)
    if not found or int(found[1]) < OLDEST:
        raise UnavailableError(
            f"The store {address.shown} is on a server that is too old.\nIt is {agent[:80]}; Neo4j {OLDEST} is needed.",
            next_step="Use a newer server, or name another store with `--store`.",
        )


def _look(transaction: ManagedTransaction) -> tuple[str, dict[str, int]]:
    """Return the server's name of itself, and its stores with their schemas."""
    found = transaction.run(str(query("stores")))  # pyright: ignore[reportArgumentType]
    stores = {str(r["store"]): int(r["schema"]) for r in found}
    return found.consume().server.agent, stores


def _run(transaction: ManagedTransaction, text: CypherText, **bound: object) -> None:
    transaction.run(str(text), bound).consume()  # pyright: ignore[reportArgumentType]


def _driver_message(error: BaseException) -> str:
    """Return an error's words on one line."""
    if isinstance(error, ssl.SSLError):
        return f"Encryption failed: {error.reason}"
    message = error.message if isinstance(error, Neo4jError) else str(error)
    return " ".join(str(message or type(error).__name__).split())[:300]


def _answer(done: "asyncio.Future[str]", why: str) -> None:
    if not done.done():
        done.set_result(why)
