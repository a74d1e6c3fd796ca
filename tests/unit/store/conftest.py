import pytest

from mimir.store import claims
from mimir.store.sqlite import SqliteStore
from tests.support.lanes import World
from tests.support.running import start, task


@pytest.fixture
def store_path(tmp_path):
    return tmp_path / "mimir.db"


@pytest.fixture
async def store(store_path, frozen_clock):
    made = SqliteStore(store_path, frozen_clock)
    await made.init()
    yield made
    await made.close()


@pytest.fixture
def world():
    """What calls of a lane do."""
    return World()


@pytest.fixture
async def run(store):
    """Run "r1" with one task, "a", claimed by "w1" under fence 1."""
    await start(store, task("a"))
    return await store.write(lambda ops: claims.claim(ops, "r1", "w1", lease_seconds=300))
