"""Several processes serve one run: each claims, one coordinates, any other takes its place; nothing is done twice."""

import contextlib
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from mimir.domain.event import EventKind
from mimir.planning.renderer import render
from tests.support import invariants
from tests.support.killed_processes import repeated
from tests.support.process_group import Fleet, Gate, doubled, fleet, holders, newest_run
from tests.support.projects import make_project
from tests.support.run_facts import load
from tests.support.script_server import PlayServer
from tests.support.whole_run import REST, Part, plan, start, step, worker, writes

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


def serving(gate: Gate) -> PlayServer:
    play = {"parts": [*(slow(task) for task in TASKS), *REST]}
    return PlayServer(play, sleep=gate.sleep)


def test_a_second_process_helps_a_run_and_both_do_tasks(tmp_path: Path, project: Path):
    gate = Gate()
    with serving(gate) as server, fleet(tmp_path, server.url) as processes:
        first = processes.start(project, "execute", "plan.md", "--yes", *ONE_EACH)
        gate.wait_for(1)
        second = processes.start(project, "worker", "--concurrency", "1")
        gate.wait_for(1)
        gate.open()
        assert first.wait(PATIENCE) == 0, processes.output_of(first)
        assert second.wait(PATIENCE) == 0, processes.output_of(second)

        shape = newest_run(project, processes.env, "--workers")

    facts = load(project, str(shape["run"]))
    assert set(facts.statuses.values()) == {"completed"}
    assert len(holders(facts.events)) == 2
    assert doubled(facts.events) == []
    assert invariants.broken(facts) == []
    assert [w["state"] for w in shape["workers"]] == ["left", "left"]
    assert shape["locks"] == []


def cloned(project: Path, where: Path) -> Path:
    """Another checkout of the same repository, as a second host has it."""
    subprocess.run(["git", "clone", "--quiet", str(project), str(where)], check=True)
    return where


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "remote.git")], check=True)
    return tmp_path / "remote.git"


@contextlib.contextmanager
def one_each_side(
    tmp_path: Path, project: Path, remote: Path
) -> Generator[tuple[Fleet, Gate, "subprocess.Popen[str]", "subprocess.Popen[str]"]]:
    """A coordinator in the project and a worker in a clone, each with a task in hand; the model answers when the gate opens."""
    there, gate = cloned(project, tmp_path / "there"), Gate()
    store = str(project / ".mimir" / "mimir.db")
    given = {"MIMIR_STORE": store, "MIMIR_HISTORY_REMOTE": remote.as_uri()}
    with serving(gate) as server, fleet(tmp_path, server.url, **given) as processes:
        coordinator = processes.start(project, "execute", "plan.md", "--yes", *ONE_EACH)
        gate.wait_for(1)
        away = processes.start(there, "worker", "--concurrency", "1")
        gate.wait_for(1)
        yield processes, gate, coordinator, away


def test_a_process_in_another_directory_exchanges_commits_through_a_remote(
    tmp_path: Path, project: Path, remote: Path
):
    with one_each_side(tmp_path, project, remote) as (processes, gate, first, second):
        gate.open()
        assert first.wait(PATIENCE) == 0, processes.output_of(first) + processes.output_of(second)
        assert second.wait(PATIENCE) == 0, processes.output_of(second)
        verified = processes.start(project, "verify")
        assert verified.wait(PATIENCE) == 0, processes.output_of(verified)
        run = str(newest_run(project, processes.env)["run"])

    facts = load(project, run)
    assert set(facts.statuses.values()) == {"completed"}
    assert len(holders(facts.events)) == 2
    assert invariants.broken(facts) == []
    assert {f"{task}.txt" for task in TASKS} <= facts.files.keys()
    assert not list((tmp_path / "there").glob("?.txt"))
    assert sorted(path.stem for path in project.glob("?.txt")) == list(TASKS)


def test_run_ended_in_a_clone_is_verified_and_applied_in_its_project(
    tmp_path: Path, project: Path, remote: Path
):
    with one_each_side(tmp_path, project, remote) as (processes, gate, coordinator, away):
        coordinator.kill()
        gate.open()
        assert away.wait(PATIENCE) == 0, processes.output_of(away)
        assert not list(project.glob("?.txt"))
        run = str(newest_run(project, processes.env)["run"])
        for words in (("verify", run), ("apply", run)):
            here = processes.start(project, *words)
            assert here.wait(PATIENCE) == 0, processes.output_of(here)

    facts = load(project, run)
    assert set(facts.statuses.values()) == {"completed"}
    assert invariants.broken(facts) == []
    assert not list((tmp_path / "there").glob("?.txt"))
    assert sorted(path.stem for path in project.glob("?.txt")) == list(TASKS)


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_process_in_another_project_is_refused(
    tmp_path: Path, project: Path, remote: Path, exchanges: bool
):
    other = make_project(tmp_path / "other", {"other.txt": "Something else\n"})
    where = other if exchanges else cloned(project, tmp_path / "there")
    given = {"MIMIR_STORE": str(project / ".mimir" / "mimir.db")}
    given |= {"MIMIR_HISTORY_REMOTE": str(remote)} if exchanges else {}
    gate = Gate()
    with serving(gate) as server, fleet(tmp_path, server.url, **given) as processes:
        processes.start(project, "execute", "plan.md", "--yes", *ONE_EACH)
        gate.wait_for(1)
        run = str(newest_run(project, processes.env)["run"])
        second = processes.start(where, "worker", "--run", run)
        assert second.wait(PATIENCE) == 69, processes.output_of(second)
        said = processes.output_of(second)
    assert run in said
    assert ("another project" if exchanges else "another directory") in said


def test_run_survives_a_killed_coordinator_and_a_leaving_process(tmp_path: Path, project: Path):
    gate = Gate()
    log = tmp_path / "requests.jsonl"
    play = {"parts": [*(slow(task) for task in TASKS), *REST]}
    with (
        PlayServer(play, sleep=gate.sleep, log=log) as server,
        fleet(tmp_path, server.url) as processes,
    ):
        coordinator = processes.start(project, "execute", "plan.md", "--yes", *ONE_EACH)
        gate.wait_for(1)
        others = [
            processes.start(project, "worker", "--concurrency", str(count)) for count in (1, 2)
        ]
        gate.wait_for(3)
        # In this order: one that is still there might take the chair before it hears that it is to leave.
        others[0].send_signal(signal.SIGTERM)
        assert others[0].wait(PATIENCE) == 130, processes.output_of(others[0])
        coordinator.kill()
        gate.open()
        assert others[1].wait(PATIENCE) == 0, processes.output_of(others[1])
        shape = newest_run(project, processes.env, "--workers")

    facts = load(project, str(shape["run"]))
    assert set(facts.statuses.values()) == {"completed"}
    assert doubled(facts.events) == []
    assert invariants.broken(facts) == []
    assert [w["state"] for w in shape["workers"]] == ["dead", "left", "left"]
    assert [e.kind for e in facts.events].count(EventKind.RUN_RESUMED) == 1
    assert repeated(log) == 2, (
        "the calls that were under way in the two that are gone, and no other"
    )
    assert sorted(path.stem for path in project.glob("?.txt")) == list(TASKS)
