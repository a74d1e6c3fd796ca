"""`mimir` as a process: signals, closed pipes, terminals. The application behind it is the stand-in of `fake_app`."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fake_app import PLAN
from tests.support.small_runs import stored_project
from tests.support.terminal import Terminal, command, environment, lines_until, piped

HANGING = "FakeMimir(story=(f.CREATED, f.event('RunStarted')), hangs=True)"
RESTLESS = "FakeMimir(story=(f.CREATED,), hangs=True, rests=False)"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
MOVES = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with one plan, where mimir was used before."""
    (tmp_path / "plan.md").write_text(PLAN, encoding="utf-8")
    (tmp_path / ".mimir").mkdir()
    return tmp_path


def execute(mimir: str, *more: str) -> list[str]:
    return command(
        mimir.replace("'RunStarted'", "f.EventKind.RUN_STARTED"),
        "execute",
        "plan.md",
        "--yes",
        *more,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_pauses_the_run(number: signal.Signals, project: Path):
    process = piped(execute(HANGING), project)
    lines_until(process.stdout, "RunStarted")
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == 130
    assert "RunFinished: paused" in out
    assert err.splitlines()[-2:] == [
        "interrupted: run run-1 is paused; no work is lost.",
        "next: mimir resume run-1",
    ]


def test_for_scripts_an_interrupted_run_ends_with_its_last_event(project: Path):
    process = piped(execute(HANGING, "--json"), project)
    lines_until(process.stdout, "RunStarted")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    assert process.returncode == 130
    last = json.loads(out.splitlines()[-1])
    assert (last["event"], last["outcome"]) == ("RunFinished", "paused")


def test_first_signal_ends_a_run_that_does_not_pause(project: Path):
    process = piped(execute(RESTLESS), project)
    lines_until(process.stdout, "RunCreated")
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130


def test_the_second_signal_ends_at_once(project: Path):
    process = piped(execute(RESTLESS), project)
    lines_until(process.stdout, "RunCreated")
    process.send_signal(signal.SIGINT)
    lines_until(process.stderr, "A second Ctrl-C ends at once")
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130


def test_closed_output_pipe_ends_the_command_without_a_traceback(project: Path):
    process = piped(execute(HANGING), project)
    assert process.stdout is not None
    assert process.stderr is not None
    lines_until(process.stdout, "RunCreated")
    process.stdout.close()
    process.send_signal(signal.SIGINT)
    err = process.stderr.read()
    assert process.wait() in (130, 141)
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    process.stderr.close()


@pytest.mark.parametrize(("kind", "seen"), [("xterm-256color", "\x1b[?25l"), ("dumb", "Limiter")])
def test_closed_terminal_is_handled_like_a_closed_pipe(kind: str, seen: str, project: Path):
    terminal = Terminal(execute(HANGING), project, env=environment(TERM=kind))
    terminal.until(seen)
    terminal.hang_up()
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.process.wait() in (130, 141)


def test_report_into_a_closed_pipe_writes_no_error(project: Path):
    stored_project(project)
    argv = [sys.executable, "-m", "mimir", "report"]
    with subprocess.Popen(
        argv, cwd=project, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
    assert process.returncode == 141
    assert err == b""


def test_in_a_pipe_there_is_no_colour_and_no_movement(project: Path):
    process = piped(execute("FakeMimir()"), project, environment(FORCE_COLOR="1"))
    out, _ = process.communicate()
    assert process.returncode == 0
    assert "\x1b" not in out


@pytest.mark.parametrize("columns", [40, 100])
def test_on_a_terminal_the_board_is_drawn_and_stays(columns: int, project: Path):
    terminal = Terminal(execute("FakeMimir()"), project, columns=columns, env=environment())
    assert terminal.end() == 0
    seen = MOVES.sub("", COLOUR.sub("", terminal.written))
    assert "task-0" in seen
    assert "next: mimir verify run-1" in seen
    drawn = [line.rstrip("\r") for line in seen.split("\n") if "─" in line]
    assert drawn
    assert max(len(line) for line in drawn) <= columns
    assert terminal.written.rstrip().rfind("\x1b[?25h") > terminal.written.rfind("\x1b[?25l")


def test_no_color_is_respected(project: Path):
    argv = execute("FakeMimir()")
    plain = Terminal(argv, project, env=environment(NO_COLOR="1"))
    assert plain.end() == 0
    colours = set(COLOUR.findall(plain.written)) - {"\x1b[0m", "\x1b[1m", "\x1b[2m"}
    assert colours == set()


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(project: Path):
    dumb = Terminal(execute("FakeMimir()"), project, env=environment(TERM="dumb"))
    assert dumb.end() == 0
    assert "\x1b" not in dumb.written
    assert "RunCreated: Limiter" in dumb.written


def test_a_terminal_without_unicode_gets_other_signs(project: Path):
    env = environment(PYTHONIOENCODING="latin-1")
    latin = Terminal(execute("FakeMimir()"), project, env=env)
    assert latin.end() == 0
    assert latin.written.isascii()
    assert "`-" in latin.written


def test_ctrl_c_on_a_terminal_pauses_and_leaves_the_cursor(project: Path):
    terminal = Terminal(execute(HANGING), project, env=environment())
    terminal.until("task-1")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert "next: mimir resume run-1" in terminal.written
    assert terminal.written.rfind("\x1b[?25h") > terminal.written.rfind("\x1b[?25l")


def test_a_second_ctrl_c_leaves_the_cursor_too(project: Path):
    terminal = Terminal(execute(RESTLESS), project, env=environment())
    terminal.until("task-1")
    terminal.process.send_signal(signal.SIGINT)
    terminal.until("Pausing")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert terminal.written.rfind("\x1b[?25h") > terminal.written.rfind("\x1b[?25l")


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("\x04", 1)])
def test_user_confirms_a_run_once_on_a_terminal(answer: str, code: int, project: Path):
    terminal = Terminal(
        command("FakeMimir()", "execute", "plan.md"), project, columns=120, env=environment()
    )
    terminal.until("Run it? [y/N]")
    assert "2 tasks" in terminal.written
    assert "probably 3–12–48 model calls" in terminal.written
    assert "at most 236 tool calls and 1,200,000 tokens\r\nRun it? [y/N]" in terminal.written
    terminal.type(answer)
    assert terminal.end() == code
    assert ("Declined: no run was created." in terminal.written) is (code == 1)


def test_ctrl_c_at_the_question_runs_nothing(project: Path):
    terminal = Terminal(
        command("FakeMimir()", "execute", "plan.md"), project, columns=120, env=environment()
    )
    terminal.until("[y/N]")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert "RunCreated" not in terminal.written
