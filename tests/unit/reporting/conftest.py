from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mimir.store.sqlite import SqliteStore
from tests.support.clock import FrozenClock
from tests.support.stores import opened


@pytest.fixture
async def store(tmp_path: Path, frozen_clock: FrozenClock) -> AsyncIterator[SqliteStore]:
    async with opened(SqliteStore(tmp_path / "mimir.db", frozen_clock)) as made:
        yield made
