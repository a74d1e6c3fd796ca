"""A task whose worker dies again and again is given up after three deaths without an outcome; two are forgiven."""

from pathlib import Path

from mimir.planning.renderer import render
from tests.support.crash.crash_points import DIED, Point
from tests.support.crash.crash_site import Scene, prepared
from tests.support.crash.process_forge import Forge
from tests.support.crash.trials import Stage, die_again_and_again, reference
from tests.support.whole_run import REST, plan, step, wrote

AT_ITS_FIRST_CALL = Point.read("model:a/1/worker:1:before")
SCENE = Scene(
    plan=render(plan(step("a"), step("b"), step("c", "a"))),
    play={"parts": [*(wrote(task) for task in "abc"), *REST]},
)


def test_task_without_retries_survives_two_kills(forge: Forge, tmp_path: Path):
    root = tmp_path / "root"
    wanted, _ = reference(root, SCENE, forge)
    stage = Stage(root=root, forge=forge, scene=SCENE, wanted=wanted)
    trial = die_again_and_again(stage, AT_ITS_FIRST_CALL, 2)
    assert trial.problems == ()


def test_task_that_kills_three_workers_in_a_row_is_failed_and_the_rest_finishes(
    forge: Forge, tmp_path: Path
):
    with prepared(tmp_path / "root", SCENE, forge) as ground:
        for _ in range(3):
            assert ground.start(die_at=AT_ITS_FIRST_CALL).wait() == DIED
            ground.died()
        child = ground.start()
        assert child.wait() == 1, child.error_tail
        facts = ground.facts()
        assert facts.statuses == {"a": "failed", "b": "completed", "c": "blocked"}
        assert facts.tasks["a"]["cause"] == "worker_died"
        report = next(ground.project.glob("chains/*/execution-report.md")).read_text("utf-8")
        assert "worker_died" in report
