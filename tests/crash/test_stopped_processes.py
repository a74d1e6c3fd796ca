"""A process that is stopped for two leases and wakes up writes nothing any more; one that is asked to end leaves nothing behind.

A sample; more: `make crash ZOMBIES=100`, `make crash SIGNALS=50`.
"""

from pathlib import Path

import pytest

from tests.support.crash.process_forge import Forge
from tests.support.crash.run_checker import End
from tests.support.crash.stopped_processes import (
    LIMITS,
    SIGNALS,
    SMALL,
    gate_of,
    interrupted,
    settings_of,
    waiting,
    zombie,
)
from tests.support.crash.trials import Stage, reference


@pytest.fixture(scope="session")
def wanted(forge: Forge, tmp_path_factory: pytest.TempPathFactory) -> End:
    return reference(tmp_path_factory.mktemp("reference") / "root", SMALL, forge)[0]


@pytest.mark.parametrize("seed", [0, 1], ids=["amid the run", "when all is done"])
def test_process_continued_after_two_leases_writes_nothing_and_ends_tools(
    seed: int, forge: Forge, tmp_path: Path
):
    root = tmp_path / "root"
    scene, settings = waiting(gate_of(root)), settings_of(root)
    wanted, _ = reference(root, scene, forge, settings=settings)
    stage = Stage(root=root, forge=forge, scene=scene, wanted=wanted, settings=settings)
    trial = zombie(stage, seed)
    assert trial.problems == ()


@pytest.mark.parametrize("seed", [0, 1], ids=[number.name for number in SIGNALS])
def test_signalled_process_releases_its_leases_and_leaves_no_child(
    seed: int, wanted: End, forge: Forge, tmp_path: Path
):
    stage = Stage(root=tmp_path / "root", forge=forge, scene=SMALL, wanted=wanted)
    trial = interrupted(stage, seed)
    assert trial.problems == ()
    assert trial.reached
    taken = trial.more[f"seconds to the end after {SIGNALS[seed].name}"]
    assert taken < 4 * LIMITS[SIGNALS[seed]]  # a busy machine; measured by `make crash SIGNALS=50`
