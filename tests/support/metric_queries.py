"""The metrics by hand: the queries of docs/metrics.md, run on either store."""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import LiteralString, cast

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
NOTHING: Mapping[str, object] = {"value": None}


def documented() -> Mapping[str, Mapping[str, str]]:
    """Return metric → language → query."""
    found: dict[str, dict[str, str]] = {}
    for section in re.split(r"^## ", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name = section.split("\n", 1)[0].strip()
        found[name] = dict(re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL))
    return {name: queries for name, queries in found.items() if queries}


def ask_file(file: Path, run: str, texts: Sequence[str]) -> list[Mapping[str, object]]:
    """Query the file with `sqlite3`, as a user does."""
    with closing(sqlite3.connect(file)) as connection:
        connection.row_factory = sqlite3.Row
        rows = [connection.execute(text, {"run": run}).fetchone() for text in texts]
    return [dict(row) if row else NOTHING for row in rows]


def ask_server(room: Path, run: str, texts: Sequence[str]) -> list[Mapping[str, object]]:
    """Query as a user does in Neo4j Browser."""
    from neo4j import GraphDatabase, Query

    from tests.support.neo4j_servers import address_of

    address = address_of(room)
    auth = (address.user, address.password) if address.user else None
    bound = {"store": address.store, "run": run}
    # The driver leaves its `config` untyped.
    driver_of = GraphDatabase.driver  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    with driver_of(address.uri, auth=auth) as driver:
        found = [
            driver.execute_query(Query(cast("LiteralString", text)), bound).records
            for text in texts
        ]
    return [records[0].data() if records else NOTHING for records in found]
