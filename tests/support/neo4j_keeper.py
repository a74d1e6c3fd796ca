"""Keeps one Neo4j server for all workers of a test session: `python -m tests.support.neo4j_keeper FOLDER`.

Docker if there is one, else a local server. The result is written to FOLDER/state.json: `{"uri": …}` or `{"missing": …}`. Every
worker holds FOLDER/alive open; when the last one is gone, however it ended, so is the server.
"""

import contextlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

from tests.support.local_neo4j import LocalServer, MissingError

STEADY = {"dbms.cypher.statistics_divergence_threshold": "1.0"}
"""Tests fill and empty stores; no query needs a new plan for that."""
IMAGE = "neo4j:5.26.12-community"


def main(folder: Path) -> None:
    """Serve until no test process is left."""
    alive = os.open(folder / "alive", os.O_RDONLY)
    with contextlib.ExitStack() as stack:
        try:
            state = {"uri": stack.enter_context(server(folder))}
        except MissingError as missing:
            state = {"missing": str(missing)}
        written = folder / "state.new"
        written.write_text(json.dumps(state), encoding="utf-8")
        written.replace(folder / "state.json")
        while os.read(alive, 1):
            pass
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def server(folder: Path) -> Generator[str]:
    """Yield the URI of a server, with its password.

    Raises:
        MissingError: None can be had.
    """
    password = secrets.token_hex(8)
    if has_docker():
        from testcontainers.community.neo4j import Neo4jContainer

        with Neo4jContainer(IMAGE, password=password) as container:
            place = container.get_connection_url().partition("://")[2]
            yield f"bolt://neo4j:{password}@{place}"
        return
    local = LocalServer(folder / "home", password=password, settings=STEADY)
    local.start()
    try:
        yield local.uri
    finally:
        local.stop()


def has_docker() -> bool:
    """Return whether a Docker server answers."""
    from docker import from_env
    from docker.errors import DockerException

    try:
        client = from_env(timeout=5)
        cast("Any", client).ping()  # docker-py has no annotations here
    except (DockerException, OSError):
        return False
    client.close()
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]))
