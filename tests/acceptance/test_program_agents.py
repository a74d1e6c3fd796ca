"""Agents that are programs, by command line: their work is checked like any other, and they cannot lie themselves to success."""

import json
from pathlib import Path

import pytest
import yaml

from tests.support.cli_runner import Desk
from tests.support.whole_run import REST

STARTED = "started"
PROGRAM = """#!/usr/bin/python3
import json, sys
if "--version" in sys.argv:
    raise SystemExit(print("2.1.0 (stand-in)"))
task = sys.stdin.read()
open("out.txt", "w").write("42\\n" if "Attempt 2" in task else "41\\n")
print(json.dumps({"type": "result", "subtype": "success", "is_error": False,
    "result": "Written with sk-canary-0123456789.", "permission_denials": [{"tool_name": "Bash"}],
    "usage": {"input_tokens": 100, "output_tokens": 11}}))
"""


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Desk:
    desk = Desk(tmp_path / "project", monkeypatch, capsys)
    play = yaml.safe_dump({"parts": [*REST]}, allow_unicode=False)
    (tmp_path / "script.yaml").write_text(play, encoding="utf-8")
    desk.environ(
        HOME=tmp_path / "home",
        MIMIR_MODEL="play:../script.yaml",
        ANTHROPIC_API_KEY="sk-canary-0123456789",
        PATH=f"{tmp_path / 'programs'}:/usr/bin:/bin",
    )
    desk.unset("XDG_CONFIG_HOME", "XDG_STATE_HOME")
    return desk


def install(tmp_path: Path, text: str = PROGRAM, name: str = "claude") -> Path:
    place = tmp_path / "programs" / name
    place.parent.mkdir(exist_ok=True)
    place.write_text(text, encoding="utf-8")
    place.chmod(0o755)
    return place


def test_work_of_a_program_is_checked_and_one_retry_succeeds(desk: Desk, tmp_path: Path):
    place = install(tmp_path)
    words = ("--check", "grep -q 42 out.txt", "--deliverable", "out.txt", "--json")
    done = desk.type("invoke", "claude_code", "Write 42 to out.txt.", *words)

    assert done.code == 0, done.err + done.out
    answer = done.events[-1]
    assert (answer["status"], answer["assurance"]["level"]) == ("completed", "executed")
    assert answer["metadata"]["attempts"] == 2
    called = [one for one in done.events if one.get("tool") == "program"]
    assert [(one["title"], one["tokens"]) for one in called] == [("claude/opus", 111)] * 2
    assert "sk-canary" not in done.out
    run = answer["run"]
    noted = [one["message"] for one in answer["metadata"]["findings"]]
    assert "The program was not allowed to use: Bash." in noted
    assert desk.type("verify", run).code == 0
    # The recorded outcome is served: the program is not there any more.
    place.unlink()
    replayed = desk.type("replay", run)
    assert (replayed.code, "equal bytes" in replayed.out) == (0, True), replayed.out
    stored = (desk.project / ".mimir/mimir.db").read_bytes()
    assert b"sk-canary" not in stored


def test_a_program_that_reports_an_error_is_not_believed(desk: Desk, tmp_path: Path):
    install(tmp_path, PROGRAM.replace('"is_error": False', '"is_error": True'))
    done = desk.type("invoke", "claude_code", "Do it.", "--check", "test -s out.txt", "--json")

    assert done.code == 1
    answer = done.events[-1]
    assert (answer["status"], answer["error"]["cause"]) == ("partial", "program_error")
    assert answer["deliverables"]["documents"] == [{"path": "out.txt"}]
    assert answer["assurance"]["level"] == "none"
    assert desk.type("verify", answer["run"]).code == 0
    assert desk.type("replay", answer["run"]).code == 0


def test_refusals_of_programs_create_no_run(desk: Desk, tmp_path: Path):
    own = tmp_path / "home/.config/mimir/mimir.toml"
    own.parent.mkdir(parents=True)
    for code, settings, agent, words in (
        (69, "", "claude_code", "claude_code needs the program 'claude', which is not installed."),
        (78, '[agents.programs.mine]\ncommand = ["x", "{prmpt}"]', "claude_code", "{prmpt}"),
        (78, "[agents.programs.mine]\nnetwork = true", "claude_code", "no command"),
        (78, '[agents.programs.claude]\nenvironment = ["MIMIR_STORE"]', "claude_code", "MIMIR"),
        (65, "", "tool", "Did you mean 'claude'?"),
    ):
        own.write_text(settings, encoding="utf-8")
        folder = own.parent / "agents/tool"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text("description: A.\ntype: cli\nprogram: claud\n")
        (folder / "prompt.md").write_text("Use the program for this task.")
        refused = desk.type("invoke", agent, "Do it.", "--check", "true")
        assert (refused.code, words in refused.err.replace("claude-code", "claude_code")) == (
            code,
            True,
        ), refused.err
    desk.write("mimir.toml", '[agents.programs.claude]\ncommand = ["sh", "-c", "echo"]\n')
    assert "a project may not choose it" in desk.type("agents").err
    assert not (desk.project / ".mimir").exists()


def test_a_program_of_the_user_is_read_by_its_preset(desk: Desk, tmp_path: Path):
    own = tmp_path / "home/.config/mimir/mimir.toml"
    own.parent.mkdir(parents=True)
    command = json.dumps(
        [
            str(
                install(
                    tmp_path, '#!/bin/sh\ncp /dev/stdin out.txt; echo \'{"text":"Ok"}\'\n', "own"
                )
            )
        ]
    )
    own.write_text(
        f'[agents.programs.own]\ncommand = {command}\noutput = "json:text"\nversion_command = ["echo", "own 1.0"]\n'
    )
    folder = own.parent / "agents/tool"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text('description: A.\ntype: cli\nprogram: own\nfiles: ["**"]\n')
    (folder / "prompt.md").write_text("Use the program for this task.")

    done = desk.type("invoke", "tool", "Say hello.", "--check", "grep -q hello out.txt", "--json")
    assert done.code == 0, done.err + done.out
    assert done.events[-1]["deliverables"]["analysis"] == "Ok"
    # Without a report of the usage, the reservation is charged.
    assert next(one for one in done.events if one.get("tool") == "program")["tokens"] == 200_000
    assert "own 1.0" in desk.type("doctor").out
