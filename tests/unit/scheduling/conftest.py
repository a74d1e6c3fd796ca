"""A process that serves a small run, for the tests of this room."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mimir.scheduling.run_services import RunServices
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.clock import FrozenClock
from tests.support.run_services import TASKS, Hosts, crew_of
from tests.support.stored_run import start, task
from tests.support.stores import opened


@pytest.fixture
def hosts() -> Hosts:
    return Hosts()


@pytest.fixture
async def store(tmp_path: Path, frozen_clock: FrozenClock) -> AsyncIterator[SqliteStore]:
    async with opened(SqliteStore(tmp_path / "mimir.db", frozen_clock)) as made:
        await start(made, *(task(id) for id in TASKS))
        yield made


@pytest.fixture
def crew(
    store: SqliteStore, frozen_clock: FrozenClock, hosts: Hosts, tmp_path: Path
) -> RunServices:
    return crew_of("one", store, frozen_clock, hosts, tmp_path)
