"""Selection of the store: the project's SQLite file, another file, or a Neo4j server."""

import contextlib
import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mimir.bootstrap.clock import SystemClock
from mimir.domain.clock import Clock
from mimir.errors import ConfigurationError, UsageError
from mimir.store.neo4j.address import Neo4jAddress, is_address, parse
from mimir.store.protocol import GraphStore
from mimir.store.sqlite.network_drive import network_drive

if TYPE_CHECKING:  # `mimir runs` finds its file without the settings
    from mimir.settings.model import Settings
    from mimir.store.neo4j.browser_links import Link

FILE = "mimir.db"
"""Name of the SQLite file in the project's `.mimir`."""


def open_store(
    settings: "Settings",
    room: Path,
    clock: Clock,
    *,
    door: str,
    say: Callable[[str], None],
    create: bool,
) -> GraphStore:
    """Return the store that the settings name, or the file in `room`; its `init` opens it.

    `door` is a name that no other process has; `say` receives warnings at once; without `create`, an absent file is refused.

    Raises:
        ConfigurationError: The URI is of an unknown kind.
        UsageError: The file does not exist.
    """
    uri = settings.store
    if is_address(uri):
        # Imported here: the Neo4j driver takes longer to import than SQLite to answer `status`.
        from mimir.store.neo4j.neo4j_store import Neo4jStore

        patience = settings.neo4j.patience_seconds
        return Neo4jStore(_address(settings), clock, door=door, say=say, patience_seconds=patience)
    path = find_file(uri, room, say=say, create=create)
    from mimir.store.sqlite.sqlite_store import SqliteStore

    return SqliteStore(path, clock)


def find_file(uri: str, room: Path, *, say: Callable[[str], None], create: bool) -> Path:
    """Return the SQLite file of a URI, or that of `room`; arguments as of `open_store`."""
    if "://" in uri and not uri.startswith("sqlite:"):
        raise ConfigurationError(
            f"There is no store of the kind {uri.split('://')[0]}://.",
            next_step="Name a file or a Neo4j server: --store path/to/mimir.db or --store neo4j://HOST:7687",
        )
    path = _file(uri) if uri else room / FILE
    if not create and not path.exists():
        raise UsageError(
            f"There is no store at {path}.",
            next_step="Name another one: --store PATH, or start a run: mimir execute",
        )
    # Only a warning: on some network drives a single process works well.
    drive = network_drive(path)
    if drive:
        say(
            f"warning: The store {path} is on a network drive ({drive}), where SQLite's locks do not work: two processes can "
            "damage it. Name a local file or a Neo4j server with --store."
        )
    return path


@contextlib.asynccontextmanager
async def opened_store(
    settings: "Settings", room: Path, *, say: Callable[[str], None], create: bool
) -> AsyncGenerator[GraphStore]:
    """Open the store that the settings name during the block; arguments as of `open_store`."""
    door = os.urandom(8).hex()
    store = open_store(settings, room, SystemClock(), door=door, say=say, create=create)
    await store.init()
    try:
        yield store
    finally:
        await store.close()


async def check_connection(settings: "Settings") -> None:
    """Connect to the store's server once; a file is not opened.

    Raises:
        UnavailableError: The server does not answer, or is too old.
        ConfigurationError: The server refuses the user, the password or the database.
    """
    if is_address(settings.store):
        from mimir.store.neo4j import server

        await server.try_out(_address(settings))


def node_links(settings: "Settings") -> "Link | None":
    """Return the maker of links to the store's nodes; None: the store has no page for them."""
    if not is_address(settings.store):
        return None
    from mimir.store.neo4j import browser_links

    return browser_links.links(_address(settings), settings.neo4j.browser)


def is_same_store(one: str, other: str) -> bool:
    """True if two URIs name one store; two addresses of one server count as two stores."""
    return _resolve(one) == _resolve(other)


def _resolve(uri: str) -> str:
    # Links are resolved, because two paths may lead to one file.
    return uri if is_address(uri) else os.path.realpath(_file(uri))


def _file(uri: str) -> Path:
    return Path(uri.removeprefix("sqlite://").removeprefix("sqlite:"))


def _address(settings: "Settings") -> Neo4jAddress:
    neo4j = settings.neo4j
    password = neo4j.password.get_secret_value()
    return parse(settings.store, user=neo4j.user, password=password, database=neo4j.database)


def open_temporary_store(path: Path, clock: Clock) -> GraphStore:
    """Return a store for this process alone; its writes do not wait for the disk."""
    from mimir.store.sqlite.sqlite_store import SqliteStore

    return SqliteStore(path, clock, durable=False)
