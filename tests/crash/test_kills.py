"""A run that dies at a named step resumes at it: its end equals that of the run without a death, and almost no call is repeated."""

import contextlib
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.killed_processes import Place, durable_status, environment, repeated
from tests.support.script_server import PlayServer

WALK = Path(__file__).parents[1] / "support" / "twelve_tasks"
WORKERS = 4
FILES = {
    "env.txt": "ready\n",
    "a.txt": "alpha\n",
    "b.txt": "beta\n",
    "c.txt": "right\n",
    "d.txt": "delta\n",
    **{f"f{n}.txt": f"fan{n}\n" for n in range(1, 5)},
}
DONE = ("completed", 1, 100.0)
STANDING = {
    **dict.fromkeys(("task-0", "a", "b", "d", "f1", "f2", "f3", "f4"), DONE),
    "c": ("completed", 2, 100.0),
    "bad": ("failed", 3, 0.0),
    "e1": ("blocked", 0, None),
    "e2": ("blocked", 0, None),
}
DIE_AT = (sys.executable, "-m", "tests.support.crash_at")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "requests.jsonl"


@pytest.fixture
def place(tmp_path: Path, log: Path) -> Iterator[Place]:
    project = tmp_path / "project"
    project.mkdir()
    plan = (WALK / "plan.md").read_text(encoding="utf-8")
    (project / "plan.md").write_text(plan, encoding="utf-8")
    with PlayServer(WALK / "script.yaml", log=log) as server:
        env = environment(server.url, tmp_path)
        yield Place(project=project, env=env | {"PYTHONPATH": str(Path.cwd())})


def assert_as_without_kills(place: Place) -> None:
    status = place.status()
    assert {t: s[:3] for t, s in durable_status(status).items()} == STANDING
    assert status["status"] == "failed"
    made = place.result(str(status["run"]))
    made.pop("plan.md")
    assert made == FILES
    verified = place.run("verify")
    assert verified.returncode == 0, verified.stdout


def test_death_between_merge_and_status_merges_once(place: Place) -> None:
    died = place.run("merge", "3", "--", "execute", "plan.md", "--yes", program=DIE_AT)
    assert died.returncode == 137, died.stderr
    resumed = place.run("resume")
    assert resumed.returncode == 1, resumed.stderr
    assert_as_without_kills(place)


def test_death_at_a_commit_before_there_is_a_run_leaves_nothing_behind(
    place: Place, log: Path
) -> None:
    died = place.run("commit", "3", "--", "execute", "plan.md", "--yes", program=DIE_AT)
    assert died.returncode == 137, died.stderr
    again = place.run("execute", "plan.md", "--yes")
    assert again.returncode == 1, again.stderr
    assert_as_without_kills(place)
    assert repeated(log) <= WORKERS


def test_death_in_the_middle_of_apply_is_finished_by_resume(place: Place) -> None:
    words = ["execute", "plan.md", "--yes", "--only", "d"]
    died = place.run("apply", "2", "--", *words, program=DIE_AT)
    assert died.returncode == 137, died.stderr
    there = [name for name in FILES if (place.project / name).exists()]
    assert len(there) == 2
    resumed = place.run("resume")
    assert resumed.returncode == 0, resumed.stderr
    for name in ("env.txt", "a.txt", "b.txt", "c.txt", "d.txt"):
        assert (place.project / name).read_text(encoding="utf-8") == FILES[name]


@pytest.mark.parametrize("boundary", ["control", "record"])
def test_death_at_a_control_or_at_the_record_of_a_run_leaves_one_record(
    place: Place, boundary: str
) -> None:
    words = ["execute", "plan.md", "--yes", "--only", "task-0"]
    died = place.run(boundary, "1", "--", *words, program=DIE_AT)
    assert died.returncode == 137, died.stderr
    resumed = place.run("resume")
    assert resumed.returncode == 0, resumed.stderr
    assert place.run("verify").returncode == 0
    store = place.project / ".mimir/mimir.db"
    with contextlib.closing(sqlite3.connect(store)) as connection:
        found = connection.execute("SELECT id FROM nodes WHERE label = 'Evidence'").fetchall()
    ids = [str(id) for (id,) in found]
    assert len([id for id in ids if "/run#" in id]) == 1
    assert len(ids) == len(set(ids))
