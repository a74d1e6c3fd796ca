"""One forge for the tests of this room in a process: what it starts costs a tenth of a second."""

from collections.abc import Iterator

import pytest

from tests.support.crash.forge import Forge


@pytest.fixture(scope="session")
def forge() -> Iterator[Forge]:
    with Forge() as made:
        yield made
