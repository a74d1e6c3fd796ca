"""The Neo4j server that tests use: a given one, else one that `neo4j_keeper` keeps, shared by all workers of the session.

Tests are kept apart by the name of their store: a database may hold several.
"""

import functools
import hashlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from mimir.domain.clock import Clock
from mimir.store.neo4j.address import Neo4jAddress, parse
from mimir.store.neo4j.neo4j_store import Neo4jStore
from tests.support.environment import NEO4J_GIVEN, NEO4J_REQUIRED, NEO4J_SESSION
from tests.support.local_neo4j import FETCH_SECONDS, START_SECONDS, only_one

ROOT = Path(__file__).resolve().parents[2]
_kept: list[object] = []
"""The keeper's process: never waited for, it ends after us."""


def store_over(room: Path, clock: Clock, **how: Any) -> Neo4jStore:
    """Return a store of its own for this room; two made over one room are the same store seen by two processes."""
    # No patience: where a clock stands still, a server that died would be waited for for ever.
    values: dict[str, Any] = {"patience_seconds": 0, **how}
    return Neo4jStore(address_of(room), clock, door=secrets.token_hex(8), **values)


def address_of(room: Path) -> Neo4jAddress:
    """Return the address of this room's store."""
    return parse(store_uri(room))


def store_uri(room: Path) -> str:
    """Return the URI of this test's store, in the form of the settings."""
    digest = hashlib.sha256(str(room).encode()).hexdigest()[:16]
    return f"{server_uri()}?store=t-{os.environ[NEO4J_SESSION]}-{digest}"


def server_uri() -> str:
    """Return the URI of the session's server, with its password; without one the test that asks is skipped, or fails where one is required."""
    state = _server()
    if "uri" in state:
        return state["uri"]
    reason = f"needs a Neo4j server: {state['missing']}"
    if os.environ.get(NEO4J_REQUIRED):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@functools.cache
def begin() -> Path | None:
    """Start the session's server, if no worker has, and return its folder; None: one is given. Nothing waits for it."""
    if os.environ.get(NEO4J_GIVEN):
        return None
    folder = Path(tempfile.gettempdir()) / f"mimir-neo4j-{os.environ[NEO4J_SESSION]}"
    folder.mkdir(mode=0o700, exist_ok=True)
    with only_one(folder / "lock"):
        if not (folder / "alive").exists():
            os.mkfifo(folder / "alive", 0o600)
            _hold(folder)
            _start_keeper(folder)
        else:
            _hold(folder)
    return folder


@functools.cache
def _server() -> dict[str, str]:
    folder = begin()
    if folder is None:
        return {"uri": os.environ[NEO4J_GIVEN].rstrip("/")}
    return _wait_for(folder / "state.json")


def _hold(folder: Path) -> None:
    """Keep the server alive as long as this process lives; the descriptor is never closed by hand, and no child inherits it."""
    os.open(folder / "alive", os.O_RDWR | os.O_CLOEXEC)


def _start_keeper(folder: Path) -> None:
    """Start it in a session of its own: Ctrl-C is for the tests, which it outlives by a moment."""
    with (folder / "keeper.log").open("w") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.support.neo4j_keeper", str(folder)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    _kept.append(keeper)


def _wait_for(path: Path) -> dict[str, str]:
    waited = time.monotonic() + FETCH_SECONDS + START_SECONDS
    while not path.exists():
        if time.monotonic() > waited:
            return {"missing": "the server was not ready in time"}
        time.sleep(0.05)
    return json.loads(path.read_text(encoding="utf-8"))
