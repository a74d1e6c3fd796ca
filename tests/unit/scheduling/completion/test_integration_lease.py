"""The integration lease: one task of all processes at a time; the lease of a dead process is free."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mimir.scheduling.completion.integration import take_integration
from mimir.store.operations import leases
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.clock import FrozenClock
from tests.support.stored_run import start, task
from tests.support.stores import opened


@pytest.fixture
async def store(tmp_path: Path, frozen_clock: FrozenClock) -> AsyncIterator[SqliteStore]:
    async with opened(SqliteStore(tmp_path / "mimir.db", frozen_clock)) as made:
        await start(made, task("a"), task("b/c"))
        yield made


async def take(store: SqliteStore, owner: str, id: str, *dead: str) -> bool:
    return await store.write(
        lambda ops: take_integration(ops, "r1", owner, id, seconds=300, dead=dead)
    )


async def test_two_tasks_of_one_process_do_not_integrate_at_once(store: SqliteStore):
    assert await take(store, "host-1", "b/c")
    assert not await take(store, "host-1", "a")
    assert await take(store, "host-1", "b/c")


async def test_a_lease_that_was_left_can_be_taken(store: SqliteStore):
    await take(store, "host-1", "b/c")
    await store.write(lambda ops: leases.release_lease(ops, "r1", "integrator", "host-1/b/c"))
    assert await take(store, "host-2", "a")


async def test_integration_lease_of_a_dead_process_is_free(store: SqliteStore):
    await take(store, "host-1", "b/c")
    assert not await take(store, "host-2", "a", "host-3")
    assert await take(store, "host-2", "a", "host-1")


async def test_a_lease_ends_by_itself(store: SqliteStore, frozen_clock: FrozenClock):
    await take(store, "host-1", "b/c")
    frozen_clock.advance(301)
    assert await take(store, "host-2", "a")
