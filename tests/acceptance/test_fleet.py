"""Several processes serve one run: each claims, one coordinates, any other takes its place; nothing is done twice."""

from pathlib import Path

import pytest

from mimir.planning.render import render
from tests.support import invariants
from tests.support.facts import gather
from tests.support.fleet import Barrier, doubled, fleet, holders, newest_run
from tests.support.journey import REST, Part, plan, start, step, worker, writes
from tests.support.play_server import PlayServer

TASKS = "abcdef"
MADE = plan(*(step(task) for task in TASKS))
ONE_EACH = ("--workers", "1")
PATIENCE = 100


def slow(task: str, delay: float = 1.0) -> Part:
    """A worker whose first words are held back by the server."""
    first = {**writes(f"{task}.txt", f"{task}\n"), "delay_seconds": delay}
    return worker(task, first, f"{task}.txt is written.")


def project_of(tmp_path: Path) -> Path:
    project = start(tmp_path)
    (project / "plan.md").write_text(render(MADE), encoding="utf-8")
    return project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return project_of(tmp_path)


def serving(barrier: Barrier) -> PlayServer:
    play = {"parts": [*(slow(task) for task in TASKS), *REST]}
    return PlayServer(play, sleep=barrier.sleep)


async def test_a_second_process_helps_a_run_and_both_do_tasks(tmp_path: Path, project: Path):
    barrier = Barrier(2)
    with serving(barrier) as server, fleet(tmp_path, server.url) as processes:
        first = processes.start(project, "execute", "plan.md", "--yes", *ONE_EACH)
        barrier.wait_for_first()
        second = processes.start(project, "worker", "--concurrency", "1")
        assert first.wait(PATIENCE) == 0, processes.said(first)
        assert second.wait(PATIENCE) == 0, processes.said(second)

        shape = newest_run(project, processes.env, "--workers")

    facts = await gather(project, str(shape["run"]))
    assert set(facts.statuses.values()) == {"completed"}
    assert len(holders(facts.events)) == 2
    assert doubled(facts.events) == []
    assert invariants.broken(facts) == []
    assert [w["state"] for w in shape["workers"]] == ["left", "left"]
    assert shape["locks"] == []
