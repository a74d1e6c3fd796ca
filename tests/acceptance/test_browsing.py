"""Looking at stored runs and steering them from another terminal: `runs`, `show`, `log`, `pause` and `clean`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mimir.planning.renderer import render
from tests.support.cli_runner import Desk
from tests.support.crash.process_forge import PythonProcess
from tests.support.terminal import environment
from tests.support.whole_run import REST, Part, plan, step, worker, writes

TWO = plan(step("alpha"), step("alpine", "alpha"), title="Two small files")
HOSTILE = "Written. \x1b]0;owned\x07\u202e"


def script(*parts: Part) -> str:
    return yaml.safe_dump({"parts": [*parts, *REST]}, allow_unicode=False)


def writer(task: str, answer: str = "Done.", **more: object) -> Part:
    last = {"text": answer, **more}
    return worker(task, writes(f"{task}.txt", f"{task}\n"), last)


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.write("plan.md", render(TWO))
    desk.environ(MIMIR_MODEL="play:../script.yaml")
    return desk


def begin(desk: Desk, until: str) -> "subprocess.Popen[str]":
    """Start `mimir execute` as a process of its own, and wait for an event."""
    command = [sys.executable, "-m", "mimir", "execute", "plan.md", "--yes"]
    process = PythonProcess(
        command, cwd=desk.project, env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if until in line:
            return process
    process.stdout.close()
    raise AssertionError(f"{until} did not happen, exit {process.wait()}")


def test_a_run_is_paused_seen_continued_and_cleaned_up(desk: Desk, tmp_path: Path):
    alone = tmp_path / "script.yaml"
    alone.write_text(script(writer("alpha"), writer("alpine", delay_seconds=600)), encoding="utf-8")

    # Given a run whose second task takes long
    process = begin(desk, "alpine/1      ToolCalled")
    assert process.stdout is not None
    busy = desk.type("clean", "--yes")
    assert busy.code == 75
    assert "nothing is removed" in busy.err

    # When another terminal pauses it
    paused = desk.type("pause", "run")
    assert paused.code == 0, paused.err
    process.stdout.read()
    process.stdout.close()
    assert process.wait() == 75
    state = desk.status()
    assert (state["status"], state["reason"]) == ("paused", "interrupted")
    assert state["elapsed_seconds"] > 0
    assert "it was paused already" in desk.type("pause", "run").out
    run = state["run"]

    # Then nothing that it needs is removed
    owners = set((desk.project / ".mimir/work/owners").iterdir())
    leftover = desk.write(".mimir/work/checks/check-1/file", "x")
    cleaned = desk.type("clean")
    assert (cleaned.code, leftover.exists()) == (2, True)
    assert "checks/check-1" in cleaned.out
    assert desk.type("clean", "--yes").code == 0
    assert not leftover.exists()
    assert set((desk.project / ".mimir/work/owners").iterdir()) == owners

    # And it can be continued to its end
    alone.write_text(script(writer("alpha"), writer("alpine", HOSTILE)), encoding="utf-8")
    resumed = desk.type("resume", run)
    assert resumed.code == 0, resumed.out + resumed.err
    look_at(desk, run)


def look_at(desk: Desk, run: str) -> None:
    """Look at a completed run of `TWO` with every command."""
    listed = desk.type("runs")
    assert re.search(rf"^{run} +completed +2/2 .* Two small files$", listed.out, re.MULTILINE)
    [entry] = [one for one in desk.type("runs", "--json").json["runs"] if one["run"] == run]
    assert (entry["tasks"], entry["completed"], entry["status"]) == (2, 2, "completed")

    whole = desk.type("show")
    assert whole.out.splitlines()[0].split() == [run, "completed"]
    assert "Write alpine.txt" in whole.out
    one = desk.type("show", "run/alpi")
    assert f"{run}/alpine  Write alpine.txt" in one.out
    assert "c1 passed (100 points, executed)" in one.out
    assert "\x1b" not in one.out
    assert "\\x1b]0;owned\\x07" in one.out
    task = desk.type("show", "/alpine", "--json").json
    assert (task["score"], task["changed"], len(task["attempts"])) == (100.0, ["alpine.txt"], 1)
    assert "+alpine" in desk.type("show", f"{run}/alpine/1", "--diff").out
    assert "write_file alpine.txt" in desk.type("show", "/alpine", "--calls").out
    assert "== unit after: exit 0 (alpine/1)" in desk.type("show", "/alpine/1", "--output", "u").out
    assert "RunPaused: The user paused it with mimir pause." in desk.type("log", "--follow").out

    near = desk.type("show", "/alp")
    assert near.code == 2
    assert "alpha (Write alpha.txt), alpine (Write alpine.txt)" in near.err
    assert "has no attempt '7'" in desk.type("show", "/alpha/7").err
    assert "Checks: unit" in desk.type("show", "/alpha", "--output", "x").err
