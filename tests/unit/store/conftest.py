import pytest

from mimir.store.sqlite import SqliteStore


@pytest.fixture
def store_path(tmp_path):
    return tmp_path / "mimir.db"


@pytest.fixture
async def store(store_path, frozen_clock):
    made = SqliteStore(store_path, frozen_clock)
    await made.init()
    yield made
    await made.close()
