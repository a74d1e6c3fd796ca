"""The connection to Neo4j cut at a commit of a run: the answer is looked up, nothing is lost and nothing is done twice.

A sample; every commit: `make crash CUTS=all STORE=neo4j`. A server that dies: `make crash LOSSES=5 STORE=neo4j`.
"""

from pathlib import Path

import pytest

from mimir.planning.renderer import render
from tests.support.crash.crash_site import Scene
from tests.support.crash.failing_servers import How, cut
from tests.support.crash.process_forge import Forge
from tests.support.crash.run_checker import End
from tests.support.crash.trials import Stage, reference
from tests.support.neo4j_servers import store_uri
from tests.support.whole_run import REST, plan, step, wrote

pytestmark = pytest.mark.neo4j

PAIR = Scene(
    plan=render(plan(step("a"), step("b", "a"))),
    play={"parts": [wrote("a"), wrote("b"), *REST]},
)


@pytest.fixture(scope="module")
def wanted(forge: Forge, tmp_path_factory: pytest.TempPathFactory) -> End:
    """The end of the run in a file: how it ends is not the store's matter."""
    return reference(tmp_path_factory.mktemp("reference") / "root", PAIR, forge)[0]


@pytest.mark.parametrize(("number", "how"), [(25, "after"), (60, "before")])
def test_run_continues_after_a_commit_without_an_answer(
    number: int, how: How, wanted: End, forge: Forge, tmp_path: Path
):
    root = tmp_path / "root"
    stage = Stage(root=root, forge=forge, scene=PAIR, wanted=wanted, uri=store_uri(root))
    trial = cut(stage, number, how)
    assert trial.problems == ()
    assert trial.reached
