"""Local Neo4j server without Docker, for tests and for trying out.

`fetch` downloads its jars for the tests; `serve` starts it with Neo4j Browser. It listens on
loopback only and has no password: it is not for a team.
"""

import argparse
import os
import re
import shutil
import signal
import socket
import sys
from pathlib import Path
from urllib.parse import quote

from tests.support.local_neo4j import LocalServer, MissingError, cache, fetch, version

DRAWN = Path(__file__).resolve().parents[1] / "docs" / "neo4j" / "dag.cypher"
HOME = Path(".mimir") / "neo4j"
UNAVAILABLE = 69


def main() -> int:
    """Run the requested command."""
    parser = argparse.ArgumentParser(prog="make neo4j", description=__doc__)
    parser.add_argument("what", choices=("fetch", "serve"))
    parser.add_argument("--home", type=Path, default=HOME, help="its folder, kept (%(default)s)")
    parser.add_argument("--bolt", type=int, default=7687, help="port for programs (%(default)s)")
    parser.add_argument("--http", type=int, default=7474, help="port for the browser (%(default)s)")
    asked = parser.parse_args()
    try:
        return fetched() if asked.what == "fetch" else serve(asked.home, asked.bolt, asked.http)
    except MissingError as missing:
        print(f"No Neo4j server: {missing}.", file=sys.stderr)
        # Tests that need the server report it, and fail where one is required.
        return 0 if asked.what == "fetch" else UNAVAILABLE


def fetched() -> int:
    """Download the jars before the tests, where a test would wait for them."""
    given = os.environ.get("MIMIR_TEST_NEO4J_URI")
    able = shutil.which("mvn") and shutil.which("javac")
    if not given and able and not cache().is_dir():
        print(f"Fetching Neo4j {version()} for the tests, about 130 MB, once …", flush=True)
        fetch()
    return 0


def serve(home: Path, bolt: int, http: int) -> int:
    """Run the server until Ctrl-C."""
    for port in (bolt, http):
        if taken(port):
            raise MissingError(
                f"port {port} is in use; name others: ARGS='--bolt 7688 --http 7475'"
            )
    if not cache().is_dir():
        print(f"Fetching Neo4j {version()}, about 130 MB, once …", flush=True)
    server = LocalServer(home.absolute(), bolt_port=bolt, http_port=http, options=())
    print("Starting …", flush=True)
    server.start()
    look = page_of(DRAWN.read_text(encoding="utf-8"), bolt, http)
    (home / "browser.txt").write_text(f"{look}\n", encoding="utf-8")
    print(f"Store    mimir demo --store bolt://127.0.0.1:{bolt}")
    print(f"Browser  {look}")
    print(f"Stop     Ctrl-C (runs stay in {home})", flush=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        server.wait()
    except KeyboardInterrupt:
        server.stop()
    return 0


def page_of(query: str, bolt: int, http: int) -> str:
    """Return the address of Neo4j Browser with a prepared query."""
    asked = quote(" ".join(re.sub(r"//.*", "", query).split()), safe="")  # a link has one line
    place = f"dbms=bolt://127.0.0.1:{bolt}&preselectAuthMethod=NO_AUTH&db=neo4j"
    return f"http://127.0.0.1:{http}/browser/?{place}&cmd=edit&arg={asked}"


def taken(port: int) -> bool:
    """Return whether a process listens on a loopback port."""
    with socket.socket() as trial:
        trial.settimeout(1)
        return trial.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    raise SystemExit(main())
