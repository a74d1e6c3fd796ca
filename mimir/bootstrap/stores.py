"""Which store a setting means, and what a person should know of where it lies; concrete stores are named here and in `app` only."""

import os
from collections.abc import Callable
from pathlib import Path

from mimir.domain.clock import Clock
from mimir.errors import ConfigurationError, UsageError
from mimir.settings import Settings
from mimir.store.neo4j import browser_links
from mimir.store.neo4j.address import Neo4jAddress, is_address, parse
from mimir.store.neo4j.browser_links import Link
from mimir.store.protocol import GraphStore
from mimir.store.sqlite.network_drive import network_drive

FILE = "mimir.db"
"""The embedded store, in the project's `.mimir`."""


def open_store(
    settings: Settings,
    room: Path,
    clock: Clock,
    *,
    door: str,
    say: Callable[[str], None],
    create: bool,
) -> GraphStore:
    """Return the store that the settings name; its `init` opens it.

    Args:
        settings: Whose `store` counts; empty: the project's own file.
        room: `.mimir` of the project.
        clock: For durations, and for the embedded store's time.
        door: A name that no other process has.
        say: Told at once what a person should know: that a server is lost or back, that a file lies where it is not safe.
        create: False: refuse a file that is not there.

    Raises:
        ConfigurationError: No store is of that kind.
        UsageError: The file is not there.
    """
    uri = settings.store
    if is_address(uri):
        from mimir.store.neo4j.neo4j_store import Neo4jStore

        patience = settings.neo4j.patience_seconds
        return Neo4jStore(_address(settings), clock, door=door, say=say, patience_seconds=patience)
    if "://" in uri and not uri.startswith("sqlite:"):
        raise ConfigurationError(
            f"There is no store of the kind {uri.split('://')[0]}://.",
            next_step="Name a file or a Neo4j server: --store path/to/mimir.db or --store neo4j://HOST:7687",
        )
    path = _file(uri) if uri else room / FILE
    if not create and not path.exists():
        raise UsageError(
            f"There is no store at {path}.", next_step="Name another: --store PATH, or begin a run."
        )
    drive = network_drive(path)
    if drive:
        say(
            f"warning: The store {path} lies on a network drive ({drive}), where SQLite's locks do not hold: two processes can "
            "damage it. Name a local file or a Neo4j server with --store."
        )
    from mimir.store.sqlite.sqlite_store import SqliteStore

    return SqliteStore(path, clock)


async def check_connection(settings: Settings) -> None:
    """Find out at once whether the store's server lets us in; a file is not looked at.

    Raises:
        UnavailableError: The server is not there, or too old.
        ConfigurationError: It refuses the user, the password or the database.
    """
    if is_address(settings.store):
        from mimir.store.neo4j import server

        await server.try_out(_address(settings))


def node_links(settings: Settings) -> Link | None:
    """Return what makes links to the store's nodes; None: it has no page that shows them."""
    if not is_address(settings.store):
        return None
    return browser_links.links(_address(settings), settings.neo4j.browser)


def is_same_store(one: str, other: str) -> bool:
    """Tell whether two URIs are of one store; two addresses of one server are not told apart."""
    return _place(one) == _place(other)


def _place(uri: str) -> str:
    return uri if is_address(uri) else os.path.realpath(_file(uri))


def _file(uri: str) -> Path:
    return Path(uri.removeprefix("sqlite://").removeprefix("sqlite:"))


def _address(settings: Settings) -> Neo4jAddress:
    neo4j = settings.neo4j
    password = neo4j.password.get_secret_value()
    return parse(settings.store, user=neo4j.user, password=password, database=neo4j.database)


def open_temporary_store(path: Path, clock: Clock) -> GraphStore:
    """Return a store that nobody needs after this process; it waits for no disk."""
    from mimir.store.sqlite.sqlite_store import SqliteStore

    return SqliteStore(path, clock, durable=False)
