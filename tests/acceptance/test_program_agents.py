"""Agents that are programs, by command line: their work is checked like any other, and they cannot lie themselves to success."""

import json
from pathlib import Path

import pytest
import yaml

from tests.support.agent_corpus import answer, front
from tests.support.cli_runner import Desk
from tests.support.whole_run import REST, calls, worker, writes

STARTED = "started"
PROGRAM = """#!/usr/bin/python3
import json, sys
if "--version" in sys.argv:
    raise SystemExit(print("2.1.0 (stand-in)"))
task = sys.stdin.read()
open("out.txt", "w").write("42\\n" if "Attempt 2" in task else "41\\n")
print(json.dumps({"type": "result", "subtype": "success", "is_error": False,
    "result": "Written with sk-canary-0123456789.", "permission_denials": [{"tool_name": "Bash"}],
    "usage": {"input_tokens": 100, "output_tokens": 11}, "total_cost_usd": 0.0123}))
"""


@pytest.fixture
def desk(desk: Desk, tmp_path: Path) -> Desk:
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
    last = done.events[-1]
    assert (last["status"], last["assurance"]["level"]) == ("completed", "executed")
    assert last["metadata"]["attempts"] == 2
    called = [one for one in done.events if one.get("tool") == "program"]
    assert [(one["title"], one["tokens"]) for one in called] == [("claude/opus", 111)] * 2
    assert "sk-canary" not in done.out
    run = last["run"]
    noted = [one["message"] for one in last["metadata"]["findings"]]
    assert "The program was not allowed to use: Bash." in noted
    assert last["deliverables"]["documents"] == [{"path": "out.txt", "change": "added", "lines": 1}]
    assert (last["metadata"]["model"], last["metadata"]["cost"]) == ("claude/opus", "0.0246")
    assert desk.type("status", run, "--json").json["cost"] == "0.0246"
    assert desk.type("runs", "--json").json["runs"][0]["cost"] == "0.0246"
    assert desk.type("verify", run).code == 0
    # The recorded outcome is served: the program is not there any more.
    place.unlink()
    replayed = desk.type("replay", run)
    assert (replayed.code, "equal bytes" in replayed.out) == (0, True), replayed.out
    stored = (desk.project / ".mimir/mimir.db").read_bytes()
    assert b"sk-canary" not in stored


def test_program_that_reports_an_error_fails_its_attempt(desk: Desk, tmp_path: Path):
    install(tmp_path, PROGRAM.replace('"is_error": False', '"is_error": True'))
    done = desk.type("invoke", "claude_code", "Do it.", "--check", "test -s out.txt", "--json")

    assert done.code == 1
    last = done.events[-1]
    assert (last["status"], last["error"]["cause"]) == ("partial", "program_error")
    assert [one["path"] for one in last["deliverables"]["documents"]] == ["out.txt"]
    assert last["assurance"]["level"] == "none"
    assert desk.type("verify", last["run"]).code == 0
    assert desk.type("replay", last["run"]).code == 0


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


PLAN = """# Plan: Two agents

## Tasks

### task-1: Write
**Agent:** {first}
**Prompt:**
<prompt>
Write 42 to out.txt.
</prompt>
**Tools:** read_file, write_file
**Files:** out.txt
**Dependencies:** None
**Verification Criteria:**
- [ ] c1: it is 42
**Checks:**
```yaml
- {{id: unit, criteria: [c1], run: [grep, -q, "42", out.txt]}}
```

### task-2: Copy
**Agent:** reviewer
**Prompt:**
<prompt>
Write 42 to copy.txt.
</prompt>
**Tools:** read_file, write_file
**Files:** copy.txt
**Dependencies:** task-1
**Verification Criteria:**
- [ ] c1: it is 42
**Checks:**
```yaml
- {{id: unit, criteria: [c1], run: [grep, -q, "42", copy.txt]}}
```
"""


def test_a_plan_of_the_pm_names_an_agent(desk: Desk, tmp_path: Path):
    install(tmp_path)
    task, _ = PLAN.format(first="claude_code").split("### task-2: Copy")
    words = ("execute", "Write 42.", "--yes", "--apply", "never", "--json")

    # An unknown address returns the plan to the PM, which sees the addresses in its brief.
    parts = [{"role": "pm", "turns": [task.replace("claude_code", "claud_code"), task]}, *REST]
    play = yaml.safe_dump({"parts": parts}, allow_unicode=False)
    (tmp_path / "script.yaml").write_text(play, encoding="utf-8")

    done = desk.type(*words)

    assert done.code == 0, done.err + done.out
    assert desk.statuses() == {"task-1": "completed"}
    planned = desk.type("runs", "--kind", "plan", "--json").json["runs"][0]["run"]
    stored = desk.type("export", planned).out
    assert "claude-code (cli): " in stored
    assert "Did you mean 'claude-code'?" in stored
    # An agent without its tools cannot be named.
    assert "information-gatherer" not in stored
    assert desk.type("replay", planned).code == 0


def test_a_plan_names_agents_whose_definitions_its_run_pins(desk: Desk, tmp_path: Path):
    install(tmp_path)
    agent = tmp_path / "home/.claude/agents/reviewer.md"
    agent.parent.mkdir(parents=True)
    agent.write_text(
        "---\nname: reviewer\ndescription: Reviews.\ntools: Read, Write, Bash\nskills: [csv]\n---\n\nYou are the reviewer of rounding.\n"
    )
    skill = tmp_path / "home/.claude/skills/csv/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(
        front("name: csv", "description: Rules for CSV.", prompt="Quote every field of the file.")
    )
    work = worker(
        "task-2",
        {"calls": [calls("read_skill", name="csv")]},
        writes("copy.txt", "42\n"),
        {"text": answer('Copied, as [call:1] "Quote every field" says.')},
    )
    play = yaml.safe_dump({"parts": [work, *REST]}, allow_unicode=False)
    (tmp_path / "script.yaml").write_text(play, encoding="utf-8")

    desk.write("plan.md", PLAN.format(first="claud_code"))
    unknown = desk.type("execute", "plan.md", "--yes")
    assert unknown.code == 65
    assert (
        "plan.md:6:12: error agent-unknown: Agent 'claud_code' does not exist. Did you mean 'claude-code'?"
        in unknown.err
    )
    assert not (desk.project / ".mimir").exists()

    desk.write("plan.md", PLAN.format(first="claude_code"))
    words = ("--apply", "never", "--json", "--record", "run.jsonl")
    done = desk.type("execute", "plan.md", "--yes", *words)
    assert done.code == 0, done.err + done.out
    run = done.events[0]["run"]
    # One attempt of the program is rejected by its check, the next one passes.
    called = [one["title"] for one in done.events if one.get("tool") == "program"]
    assert called == ["claude/opus", "claude/opus"]
    task = desk.type("show", f"{run}/task-2", "--json").json
    assert task["worker_role"].startswith("Agent reviewer (")
    attempt = desk.type("show", f"{run}/task-2/1", "--json").json
    assert (attempt["tool_calls"], attempt["unsupported"]) == (2, [])
    # The work is done again with the recorded outcome: the program would fail now.
    install(tmp_path, "#!/bin/sh\nexit 3\n")
    redone = desk.type(
        *("execute", "plan.md", "--yes", "--apply", "never", "--json", "--replay", "run.jsonl")
    )
    assert redone.code == 0, redone.err
    agent.unlink()
    skill.unlink()
    assert desk.type("verify", run).code == 0
    replayed = desk.type("replay", run)
    assert (replayed.code, "equal bytes" in replayed.out) == (0, True), replayed.out
