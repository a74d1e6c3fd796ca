"""One forge and one reference run for the tests of this folder in a process: each start of the forge takes a tenth of a second."""

import pytest

from tests.support.crash.crash_points import Point
from tests.support.crash.crash_site import TWELVE
from tests.support.crash.process_forge import Forge, shared_forge
from tests.support.crash.run_checker import End
from tests.support.crash.trials import reference


@pytest.fixture(scope="session")
def forge() -> Forge:
    return shared_forge()


@pytest.fixture(scope="session")
def twelve(forge: Forge, tmp_path_factory: pytest.TempPathFactory) -> tuple[End, list[Point]]:
    """The run of twelve tasks without kills: its end, and the points that it came by."""
    return reference(tmp_path_factory.mktemp("reference") / "root", TWELVE, forge)
