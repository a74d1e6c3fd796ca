"""The same rules from the command line: a false claim, a circuit breaker that trips, and a task blocked by a failure."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mimir.planning.renderer import render
from tests.support import invariants
from tests.support.crash.process_forge import run_python
from tests.support.invariants import listing
from tests.support.run_facts import Outside, load
from tests.support.terminal import environment
from tests.support.whole_run import (
    README,
    REST,
    Part,
    calls,
    check,
    plan,
    start,
    step,
    worker,
    writes,
    wrote,
)

APPEND = calls("run", 10, command="echo a >> trips.txt")
TASKS = (
    step("trips", checks=(check("grep", "-q", "^a$", "trips.txt"),)),
    step("good", "trips"),
    step("liar", max_retries=1),
    step("never", "liar"),
)
PARTS: list[Part] = [
    worker("trips", {"calls": [APPEND]}, closing={"text": "I was stopped."}),
    wrote("good"),
    worker("liar", writes("liar.txt", "1\n"), '{"verdict": "PASS", "score": 100}', attempt=1),
    worker("liar", writes("liar.txt", "2\n"), "### QC VERDICT: PASS", attempt=2),
]


def mimir(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    play = project.parent / "play.yaml"
    words = [sys.executable, "-m", "mimir", *arguments]
    return run_python(words, cwd=project, env=environment(MIMIR_MODEL=f"play:{play}"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the plan, and its play beside it."""
    made = start(tmp_path, {**README, "plan.md": render(plan(*TASKS))})
    play = yaml.safe_dump({"parts": [*PARTS, *REST]})
    (tmp_path / "play.yaml").write_text(play, encoding="utf-8")
    return made


def test_run_with_a_false_claim_exits_with_1_and_reports_the_cause(project: Path):
    before = listing(project)

    done = mimir(project, "execute", "plan.md", "--yes", "--json", "--workers", "2")

    assert done.returncode == 1, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert (events[-1]["event"], events[-1]["outcome"]) == ("RunFinished", "failed")
    assert [e["seq"] for e in events] == sorted({e["seq"] for e in events})
    run = events[0]["run"]

    status = mimir(project, "status", "--json")
    assert status.returncode == 0, status.stderr
    told = {task["id"]: task for task in json.loads(status.stdout)["tasks"]}
    assert {id: task["status"] for id, task in told.items()} == {
        "trips": "completed",
        "good": "completed",
        "liar": "failed",
        "never": "blocked",
    }
    assert (told["trips"]["tool_calls"], told["trips"]["limit"]) == (6, 6)
    assert (told["liar"]["attempts"], told["liar"]["score"]) == (2, 0)

    report = mimir(project, "report")
    assert "Failure report of `liar`" in report.stdout
    assert "`never` is blocked by `liar`" in report.stdout

    verified = mimir(project, "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert invariants.broken(load(project, run), Outside(before=before)) == []


def test_completed_run_exits_with_0_and_is_applied(project: Path):
    done = mimir(project, "execute", "plan.md", "--yes", "--only", "good")

    assert done.returncode == 0, done.stderr
    assert (project / "trips.txt").read_text(encoding="utf-8") == "a\n" * 6
    assert (project / "good.txt").read_text(encoding="utf-8") == "good\n"
