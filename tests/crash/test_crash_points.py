"""Deaths before and after a boundary, and kills at random: the resumed run ends like a run without a death.

Nothing is done twice. A sample; more: `make crash POINTS=all KILLS=200`.
"""

from pathlib import Path

import pytest

from tests.support.crash.crash_points import Fuse, Point, groups, one_of_each
from tests.support.crash.crash_site import TWELVE
from tests.support.crash.durable_state import DurableState
from tests.support.crash.process_forge import Forge
from tests.support.crash.run_checker import End
from tests.support.crash.trials import Stage, die_at, kill_at_random

SAMPLE = (
    "store:commit:120:after",
    "model:c/2/worker:1:after",
    "tool:a/1/worker/run:1:after",
    "git:commit-tree:9:after",
)


@pytest.mark.parametrize("point", SAMPLE)
def test_death_at_a_boundary_costs_one_model_call_at_most(
    point: str, twelve: tuple[End, list[Point]], forge: Forge, tmp_path: Path
):
    wanted, _ = twelve
    stage = Stage(root=tmp_path / "root", forge=forge, scene=TWELVE, wanted=wanted)
    trial = die_at(stage, Point.read(point))
    assert trial.reached
    assert trial.problems == ()
    assert trial.asked_again <= 4


@pytest.mark.parametrize("seed", range(2))
def test_run_killed_at_random_moments_ends_as_one_that_was_not(
    seed: int, twelve: tuple[End, list[Point]], forge: Forge, tmp_path: Path
):
    stage = Stage(root=tmp_path / "root", forge=forge, scene=TWELVE, wanted=twelve[0])
    trial = kill_at_random(stage, seed, 5)
    assert trial.problems == ()
    assert trial.kills > 0


def test_every_kind_of_boundary_is_crossed_and_counted(twelve: tuple[End, list[Point]]):
    _, seen = twelve
    assert {p.kind for p in seen} == {"store", "model", "tool", "git", "sandbox", "clock"}
    assert len(seen) == len(set(seen))
    assert {Point.read(str(p)) for p in seen} == set(seen)


def test_points_of_one_durable_state_are_one_death(tmp_path: Path):
    trace = tmp_path / "trace"
    fuse = Fuse(trace=trace, state=DurableState(tmp_path))
    fuse.cross("clock", "now", "before")
    for label in ("ls-tree", "write-tree"):
        fuse.cross("git", label, "before")
        fuse.cross("git", label, "after")
    (tmp_path / "file").write_text("written", encoding="utf-8")
    fuse.cross("clock", "now", "before")
    fuse.cross("store", "commit", "before")
    for _ in range(2):  # the server may have the commit at the second one only
        fuse.cross("clock", "now", "before")
    fuse.cross("store", "commit", "after")
    assert [[str(point) for point in group] for group in groups(trace)] == [
        ["clock:now:1:before", "git:ls-tree:1:before", "git:write-tree:1:before"],
        ["git:write-tree:1:after"],
        ["clock:now:2:before", "store:commit:1:before"],
        ["clock:now:3:before"],
        ["clock:now:4:before"],
        ["store:commit:1:after"],
    ]
    assert [str(point) for point in one_of_each(groups(trace))] == [
        "git:ls-tree:1:before",
        "git:write-tree:1:after",
        "store:commit:1:before",
        "clock:now:3:before",
        "clock:now:4:before",
        "store:commit:1:after",
    ]
