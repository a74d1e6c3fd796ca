"""Runs of one kind are the same: each is written once, and every test gets a copy of the store's file."""

import asyncio
import copy
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from mimir.store.protocol import GraphStore
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support import small_runs
from tests.support.clock import FrozenClock
from tests.support.small_run import FakeHistory, SmallRun
from tests.support.stores import opened

Written = tuple[Path, FakeHistory]
Write = Callable[[GraphStore, FrozenClock], Awaitable[SmallRun]]


@pytest.fixture
async def store(tmp_path: Path, frozen_clock: FrozenClock) -> AsyncIterator[SqliteStore]:
    """An empty store."""
    async with opened(SqliteStore(tmp_path / "mimir.db", frozen_clock)) as made:
        yield made


@pytest.fixture(scope="session")
def whole_once(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return written(tmp_path_factory.mktemp("whole"), small_runs.whole)


@pytest.fixture(scope="session")
def done_once(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return written(tmp_path_factory.mktemp("done"), small_runs.completed)


@pytest.fixture
async def whole(
    whole_once: Written, tmp_path: Path, frozen_clock: FrozenClock
) -> AsyncIterator[SmallRun]:
    """The run of four tasks, ended `failed`."""
    async with copied(whole_once, tmp_path, frozen_clock) as run:
        yield run


@pytest.fixture
async def done(
    done_once: Written, tmp_path: Path, frozen_clock: FrozenClock
) -> AsyncIterator[SmallRun]:
    """The run of two tasks, ended `completed`."""
    async with copied(done_once, tmp_path, frozen_clock) as run:
        yield run


def written(room: Path, write: Write) -> Written:
    async def work() -> FakeHistory:
        clock = FrozenClock()
        async with opened(SqliteStore(room / "mimir.db", clock)) as store:
            return (await write(store, clock)).history

    return room / "mimir.db", asyncio.run(work())


class copied:  # noqa: N801  reads as a verb where it is used
    """A run in a store of its own, like the one that was written."""

    def __init__(self, before: Written, room: Path, clock: FrozenClock) -> None:
        path, history = before
        shutil.copyfile(path, room / "mimir.db")
        self._store = opened(SqliteStore(room / "mimir.db", clock))
        self._history = copy.deepcopy(history)
        self._clock = clock

    async def __aenter__(self) -> SmallRun:
        run = SmallRun(await self._store.__aenter__(), self._clock)
        run.history = self._history
        return run

    async def __aexit__(self, *error: object) -> None:
        await self._store.__aexit__(*error)
