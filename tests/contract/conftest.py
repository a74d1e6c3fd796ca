"""Fixtures of the contract suites of the graph store: a store of every kind, and a second connection to it."""

import pytest

from tests.support.stores import EACH_KIND, KINDS, opened


@pytest.fixture(params=EACH_KIND)
async def store(request, tmp_path, frozen_clock):
    async with opened(KINDS[request.param](tmp_path, frozen_clock)) as made:
        yield made


@pytest.fixture
def second(request, store, tmp_path, frozen_clock):
    """The same store as another process would open it."""
    kind = request.node.callspec.params["store"]
    return lambda: opened(KINDS[kind](tmp_path, frozen_clock))
