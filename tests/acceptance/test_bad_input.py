"""Bad input and bad surroundings, through the whole command line: a clear error, nothing lost, nothing half done."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mimir.planning.renderer import render
from tests.support.cli_runner import Desk, asked_twice
from tests.support.crash.process_forge import PythonProcess
from tests.support.script_server import PlayServer
from tests.support.terminal import ROOT, Terminal, lines_until
from tests.support.whole_run import REST, Part, plan, step, worker, wrote

TWO = plan(step("a"), step("b", "a"), title="Two small files")
MIMIR = [sys.executable, "-m", "mimir"]
ENDLESS = {"delay_seconds": 60, "text": "Late."}


def play(*parts: Part) -> dict[str, object]:
    return {"parts": [*parts, wrote("a"), wrote("b"), *REST]}


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.write("plan.md", render(TWO))
    return desk


@pytest.fixture
def server() -> Iterator[PlayServer]:
    with PlayServer(play()) as server:
        yield server


def own_process() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def started(desk: Desk, *more: str) -> PythonProcess:
    return PythonProcess(
        [*MIMIR, "execute", "plan.md", "--yes", *more],
        cwd=desk.project,
        env=own_process(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_an_edit_of_the_plan_counts_from_the_next_run(desk: Desk, server: PlayServer):
    paused = desk.ask(server).type("execute", "plan.md", "--yes", "--max-calls", "4")
    assert paused.code == 75
    desk.write("plan.md", "Nothing of a plan.\n")
    assert desk.type("resume", "--max-calls", "60").code == 0
    assert desk.statuses() == {"a": "completed", "b": "completed"}
    assert desk.type("execute", "plan.md", "--yes").code == 65
    desk.write("plan.md", render(plan(step("a", title="Another"), title="One")))
    assert desk.type("check").code in (0, 2)


FOREIGN = {"no store at all": b"Dear diary,\n" * 200, "another program's": b"", "empty": b""}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(
    kind: str, desk: Desk, server: PlayServer, tmp_path: Path
):
    file = tmp_path / "diary.db"
    file.write_bytes(FOREIGN[kind])
    if kind == "another program's":
        with closing(sqlite3.connect(file)) as db:
            db.execute("create table songs (name text)")
            db.execute("insert into songs values ('Yesterday')")
            db.commit()
    before = file.read_bytes()
    said = desk.ask(server).type("execute", "plan.md", "--yes", "--store", str(file))
    if kind == "empty":
        assert said.code == 0, "an empty file is nobody's"
        return
    assert said.code == 69
    assert "diary.db" in said.err
    assert file.read_bytes() == before
    assert not server.requests


def test_a_plan_that_runs_already_is_not_run_twice(desk: Desk):
    with PlayServer(play(worker("a", ENDLESS))) as server:
        desk.ask(server)
        first = started(desk, "--json")
        begun = lines_until(first.stdout, '"AttemptStarted"')
        run = json.loads(begun[0])["run"]

        second = desk.type("execute", "plan.md", "--yes")
        assert second.code == 75
        assert run in second.err
        assert f"mimir worker --run {run}" in second.err
        assert desk.type("resume", run).code == 75
        assert desk.status()["status"] == "running"
        assert len(desk.type("status", run).out.splitlines()) > 3

        first.send_signal(signal.SIGKILL)
        first.communicate()
    assert desk.status()["status"] == "paused", "its process is dead"
    with PlayServer(play()) as server:
        assert desk.ask(server).type("resume").code == 0
    assert desk.statuses() == {"a": "completed", "b": "completed"}


def test_interrupted_run_is_paused_and_resumes(desk: Desk):
    with PlayServer(play(worker("b", ENDLESS))) as server:
        desk.ask(server)
        process = started(desk)
        lines_until(process.stdout, "b/1           AttemptStarted")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 130
    assert "RunFinished: paused" in out
    assert "mimir resume" in err
    assert "Traceback" not in err
    assert desk.statuses() == {"a": "completed", "b": "worker_executing"}
    assert desk.status()["reason"] == "interrupted"
    with PlayServer(play()) as server:
        assert desk.ask(server).type("resume").code == 0
        assert {s.caller.name.task for s in server.of("worker")} == {"b"}
        assert asked_twice(server) == []
    assert [task["attempts"] for task in desk.status()["tasks"]] == [1, 1]


def test_a_second_signal_ends_at_once_and_loses_nothing(desk: Desk):
    with PlayServer(play(worker("b", ENDLESS))) as server:
        desk.ask(server)
        process = started(desk)
        lines_until(process.stdout, "b/1           AttemptStarted")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 130
    assert desk.status()["status"] == "paused"
    with PlayServer(play()) as server:
        assert desk.ask(server).type("resume").code == 0
    assert desk.type("verify").code == 0


def test_missing_git_is_refused_by_name(desk: Desk, server: PlayServer, tmp_path: Path):
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    desk.ask(server).environ(PATH=str(nothing))
    for words in (("execute", "plan.md", "--yes"), ("chain", "Write a file"), ("doctor",)):
        refused = desk.type(*words)
        assert refused.code == 69, words
        assert "git" in refused.err + refused.out
        assert len(refused.error) <= 3
    assert desk.type("check", "plan.md").code == 0
    assert not server.requests


def test_a_commit_where_there_is_no_repository_is_refused_before_any_work(
    desk: Desk, server: PlayServer
):
    refused = desk.ask(server).type("execute", "plan.md", "--yes", "--apply", "commit")
    assert refused.code == 2
    assert "repository" in refused.err
    assert not server.requests
    assert desk.type("execute", "plan.md", "--yes", "--max-calls", "3").code == 75
    refused = desk.type("resume", "--max-calls", "50", "--apply", "commit")
    assert (refused.code, desk.status()["status"]) == (2, "paused")


def test_read_of_a_missing_store_creates_none(desk: Desk, tmp_path: Path):
    (desk.project / ".mimir").mkdir()
    for words in (("status",), ("report",), ("status", "--store", str(tmp_path / "no" / "x.db"))):
        refused = desk.type(*words)
        assert (refused.code, "There is no store" in refused.err) == (2, True)
    assert not (tmp_path / "no").exists()
    assert ".mimir/mimir.db" not in desk.files()


COLUMNS = 40
MOVES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def test_on_a_narrow_terminal_a_run_is_drawn_to_its_end(desk: Desk, server: PlayServer):
    desk.ask(server)
    terminal = Terminal(
        [*MIMIR, "execute", "plan.md", "--yes"],
        desk.project,
        columns=COLUMNS,
        env={**own_process(), "TERM": "xterm-256color"},
    )
    assert terminal.end() == 0
    assert "next: mimir verify" in MOVES.sub("", terminal.written)
    assert terminal.written.count("\x1b[?25l") == terminal.written.count("\x1b[?25h")


class Rummaging(PlayServer):
    """Takes the workspaces away while a task's model is asked for its second turn."""

    work: Path

    async def _completion(self, line, connection, headers, body):  # type: ignore[no-untyped-def]
        lane = headers.get("x-mimir-lane", "")
        if "/a/1/worker" in lane and len(body["messages"]) > 3:
            for place in self.work.glob("run-*"):
                shutil.rmtree(place, ignore_errors=True)
        return await super()._completion(line, connection, headers, body)


def test_removed_workspace_loses_no_work(desk: Desk):
    with Rummaging(play()) as server:
        server.work = desk.project / ".mimir/work"
        ended = desk.ask(server).type("execute", "plan.md", "--yes")
        assert "Traceback" not in ended.out + ended.err
        assert "bug" not in ended.err
        assert ended.code in (0, 75), ended.out + ended.err
        if ended.code == 75:
            server.work = desk.project / "nowhere"
            assert desk.type("resume").code == 0
    assert desk.statuses() == {"a": "completed", "b": "completed"}
    assert (desk.project / "a.txt").read_text(encoding="utf-8") == "a\n"


def test_a_store_that_may_not_grow_pauses_the_run(desk: Desk, server: PlayServer):
    """Limit the size of files: the store cannot grow after half of the run, as on a full disk."""
    shell = "ulimit -f 200; exec " + " ".join([*MIMIR, "execute", "plan.md", "--yes"])
    desk.ask(server)
    ended = subprocess.run(
        ["bash", "-c", shell],
        cwd=desk.project, env=own_process(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=90, check=False,
    )  # fmt: skip
    assert ended.returncode == 75
    said = ended.stderr + ended.stdout  # on which of them: whether the pause could still be written
    assert "cannot be written" in said
    assert "mimir resume" in said
    assert len(ended.stderr.splitlines()) <= 3, ended.stderr
    assert "failed" not in desk.statuses().values()
    resumed = desk.type("resume")
    assert resumed.code == 0, resumed.out + resumed.err
    assert desk.statuses() == {"a": "completed", "b": "completed"}
    assert len(asked_twice(server)) <= 1, "only an answered call that could not be written"
    assert desk.type("verify").code == 0
    assert (desk.project / ".mimir/mimir.db").stat().st_size > 200 * 1024, (
        "else it could have ended"
    )
