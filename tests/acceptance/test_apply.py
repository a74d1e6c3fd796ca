"""Completed tasks of a failed run are applied to the user's files, in a repository with a branch called mimir."""

import asyncio
import json
from pathlib import Path

import pytest

from mimir.cli.main import run
from mimir.cli.output.run_progress import finished_part
from mimir.domain.run import RunResult
from mimir.domain.task_states import RunStatus
from tests.support.projects import git, write_files
from tests.support.whole_run import (  # fmt: skip
    FAIL,
    LINES,
    SHARED,
    edit,
    plan,
    qc,
    sharer,
    start,
    step,
    travel,
    worker,
    writes,
    wrote,
)


def test_apply_of_completed_tasks_keeps_other_lines_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    project = start(tmp_path, SHARED)
    git(project, "branch", "mimir")
    parts = [worker("a", edit("a", 3), "Done."), wrote("b"), qc("b", FAIL)]

    given = plan(sharer("a"), step("b"))
    journey = asyncio.run(travel(project, given, parts, apply="auto"))

    # The screen and the report name the completed tasks and their branch.
    id, branch = journey.ending.run, f"mimir-runs/{journey.ending.run}"
    assert (journey.ending.outcome, journey.ending.branch) == ("failed", branch)
    assert git(project, "show", f"{branch}:shared.txt") == journey.facts.files["shared.txt"].strip()
    assert f"on branch `{branch}`" in journey.report
    assert f"mimir apply {id} --completed" in journey.report
    assert f"--from {id}" in journey.report
    status = {"tasks": [{"id": "a", "status": "completed"}, {"id": "b", "status": "failed"}]}
    assert finished_part(journey.ending, status) == [
        f"finished: a (commit {journey.ending.commit[:12]} on branch {branch})",
        f"not applied: nothing; the finished tasks: mimir apply {id} --completed",
    ]
    assert (project / "shared.txt").read_text() == LINES
    monkeypatch.chdir(project)

    # The same line stops it, with a command that works.
    write_files(project, {"shared.txt": LINES.replace("line 3\n", "line 3 of mine\n")})
    assert run(["apply", "--completed"]) == 1
    said = capsys.readouterr().out
    assert "shared.txt: you changed the same lines (line 4)" in said
    assert f"next: mimir apply {id} --markers" in said
    assert branch in said

    # Other lines of the same file stay.
    write_files(project, {"shared.txt": f"{LINES}mine\n"})
    assert run(["apply", "--completed", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["applied"] == ["shared.txt"]
    text = LINES.replace("line 3\n", "line 3 of a\n")
    assert (project / "shared.txt").read_text() == f"{text}mine\n"


def test_a_completed_run_has_no_finished_part():
    result = RunResult(run="r", outcome=RunStatus.COMPLETED, exit_code=0, commit="c")
    assert finished_part(result, {}) == []


async def test_a_file_behind_a_filter_is_refused_before_it_is_completed(tmp_path: Path):
    project = start(tmp_path, {"README.md": "", ".gitattributes": "*.bin filter=lfs\n"})
    parts = [worker("a", writes("a.txt", "a\n"), writes("new.bin", "raw\n"), "Done.")]

    journey = await travel(project, plan(step("a")), parts)

    assert journey.statuses == {"a": "failed"}
    assert journey.facts.tasks["a"]["cause"] == "refused_deliverable"
    assert "'new.bin' through a filter" in journey.report
    assert "new.bin" not in git(project, "ls-tree", "-r", "--name-only", "HEAD")
