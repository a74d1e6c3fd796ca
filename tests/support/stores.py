"""Stores for the conformance suite: a second adapter adds one line to `KINDS`."""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mimir.domain.clock import Clock
from mimir.errors import StoreError
from mimir.store.protocol import GraphStore, ReadOps, Row, T, Where, WriteOps
from mimir.store.sqlite.sqlite_store import SqliteStore

KINDS: Mapping[str, Callable[[Path, Clock], GraphStore]] = {
    "neo4j": lambda room, clock: _in_neo4j(room, clock),
    "sqlite": lambda room, clock: SqliteStore(room / ".mimir" / "mimir.db", clock),
}
"""Name → a store over this room; two stores made over one room are the same store seen by two processes."""

EACH_KIND = [
    pytest.param(kind, marks=[pytest.mark.neo4j] if kind == "neo4j" else []) for kind in KINDS
]
"""For tests that every store must pass."""


def _in_neo4j(room: Path, clock: Clock) -> GraphStore:
    from tests.support.neo4j_servers import store_over  # the driver takes a third of a second

    return store_over(room, clock)


@contextlib.asynccontextmanager
async def opened(store: GraphStore) -> AsyncGenerator[GraphStore]:
    """Open a store and close it, also after an error."""
    await store.init()
    try:
        yield store
    finally:
        await store.close()


async def put(store: GraphStore, label: str, *rows: Row) -> None:
    """Write rows in one transaction."""
    await store.write(lambda ops: ops.upsert(label, rows))


async def ids(store: GraphStore, label: str, where: Where, **how: Any) -> list[str]:
    """Return the ids that `find` gives, in its order."""
    found = await store.read(lambda reads: reads.find(label, where, **how))
    return [str(row["id"]) for row in found]


async def refuses(work: Awaitable[object]) -> bool:
    """Return whether the store refuses a transaction."""
    try:
        await work
    except StoreError:
        return True
    return False


class Around:
    """A store without changes, a base class for different ones."""

    def __init__(self, inner: GraphStore) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def read(self, work: Callable[[ReadOps], T], *, brief: bool = False) -> T:
        return await self._inner.read(work, brief=brief)

    async def write(self, work: Callable[[WriteOps], T], *, durable: bool = True) -> T:
        return await self._inner.write(work, durable=durable)
