"""A death of an invocation at each kind of boundary: one result, one response, nothing done twice.

A sample; every point there is: `make crash POINTS=all ARGS="--scenes agent,program"`.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.crash.crash_points import Point
from tests.support.crash.invocations import AGENT, CLI, install_program
from tests.support.crash.process_forge import Forge
from tests.support.crash.run_checker import End
from tests.support.crash.trials import Stage, die_at, reference
from tests.support.neo4j_servers import store_uri

AGENT_POINTS = (
    "store:commit:20:after",
    "model:task-1/2/worker:2:after",
    "tool:task-1/1/worker/run:1:after",
    "git:commit-tree:2:after",
    "sandbox:bash -o pipefail -c cat out.txt:1:after",
)
AFTER = "program:task-1/1/worker:1:after"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    return install_program(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def ends(
    forge: Forge, settings: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[tuple[str, ...], End]:
    """Return the end of each scene without a death."""
    root = tmp_path_factory.mktemp("reference") / "root"
    return {
        scene.invokes: reference(root, scene, forge, settings=settings)[0] for scene in (AGENT, CLI)
    }


@pytest.fixture
def stage(
    ends: Mapping[tuple[str, ...], End],
    forge: Forge,
    settings: Mapping[str, str],
    tmp_path: Path,
) -> Stage:
    root = tmp_path / "root"
    return Stage(root=root, forge=forge, scene=AGENT, wanted=ends[AGENT.invokes], settings=settings)


@pytest.mark.parametrize("point", AGENT_POINTS)
def test_a_death_costs_an_agent_one_model_call_at_most(point: str, stage: Stage):
    trial = die_at(stage, Point.read(point))
    assert (trial.reached, trial.problems) == (True, ())
    assert trial.asked_again <= 1


@pytest.mark.parametrize(
    ("point", "store", "again"),
    [
        (AFTER, "sqlite", 1),
        pytest.param(AFTER, "neo4j", 1, marks=pytest.mark.neo4j),
        ("program:task-1/2/worker:1:before", "sqlite", 0),
    ],
)
def test_a_program_starts_at_most_once_more_from_the_tree_before_it(
    point: str, store: str, again: int, stage: Stage, ends: Mapping[tuple[str, ...], End]
):
    uri = store_uri(stage.root) if store == "neo4j" else ""
    trial = die_at(replace(stage, uri=uri, scene=CLI, wanted=ends[CLI.invokes]), Point.read(point))
    assert (trial.reached, trial.problems) == (True, ())
    assert trial.run_again == again
