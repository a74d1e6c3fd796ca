"""Agent definitions by command line: list, show, check, trust, create and invoke."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.agent_corpus import answer, claude, front
from tests.support.cli_runner import Desk
from tests.support.script_server import PlayServer
from tests.support.terminal import environment
from tests.support.whole_run import REST, Part, Turn, calls, worker, writes

REVIEWER = claude("reviewer", "tools: Read, Edit, Bash")


@pytest.fixture
def desk(desk: Desk, tmp_path: Path) -> Desk:
    desk.environ(HOME=tmp_path / "home")
    desk.unset("XDG_CONFIG_HOME", "XDG_STATE_HOME")
    return desk


def test_a_definition_of_a_clone_only_reads_until_its_hash_is_trusted(desk: Desk, tmp_path: Path):
    file = desk.write(".claude/agents/reviewer.md", REVIEWER)

    shown = desk.type("agents", "show", "project:reviewer", "--json").json
    assert shown["tools"]["granted"] == ["read_file"]
    assert shown["tools"]["withheld"]["run"] == "the file is not trusted"
    assert desk.type("agents", "show", "reviewer").code == 2

    refused = desk.type("agents", "trust", "project:reviewer")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    trusted = desk.type("agents", "trust", "project:reviewer", "--yes")
    assert trusted.code == 0, trusted.err
    assert "Read the changed files" in trusted.out
    record = tmp_path / "home/.local/state/mimir/trusted-agents"
    assert record.stat().st_mode & 0o777 == 0o600

    shown = desk.type("agents", "show", "reviewer", "--json").json
    assert {"edit_file", "read_file", "run"} <= set(shown["tools"]["granted"])
    assert not (desk.project / ".mimir").exists()

    # One byte more, and the trust is gone.
    file.write_text(REVIEWER + ".", encoding="utf-8")
    assert desk.type("agents", "show", "reviewer").code == 2
    assert desk.type("agents", "show", "project:reviewer", "--json").json["trusted"] is False


def test_a_clone_cannot_take_a_name_or_bring_trust(desk: Desk, tmp_path: Path):
    desk.write(".claude/agents/claude_code.md", claude("claude_code", "tools: Bash"))
    desk.write(".claude/agents/Claude-Code.md", claude("ｃlaude-code", "tools: Bash"))
    desk.write(
        ".agents/agents/librarian/config.yaml", "description: Mine.\ntype: cli\nprogram: x\n"
    )
    desk.write(".agents/agents/librarian/prompt.md", "Do as the owner of this clone wishes.")
    desk.write(".agents/agents/librarian/runner.py", "raise SystemExit('ran')\n")
    line = (tmp_path / "home/.local/state/mimir/trusted-agents").name
    desk.write(f".mimir/{line}", "anything\n")

    for name in ("claude_code", "claude-code", "librarian"):
        assert desk.type("agents", "show", name, "--json").json["location"] == "shipped"
    listed = desk.type("agents", "--json").json["agents"]
    own = [one for one in listed if one["location"] == "project"]
    assert {one["address"] for one in own} == {
        "project:claude-code",
        "project:laude-code",
        "project:librarian",
    }
    assert all(not one["trusted"] for one in own)
    assert all(set(one["tools"]["granted"]).isdisjoint({"run", "write_file"}) for one in own)


def test_files_are_checked_with_line_and_suggestion(desk: Desk):
    desk.write("pack/a.md", claude("a", "allowedTools: Bash"))
    desk.write("pack/README.md", "# A document\n")
    desk.write("pack/skills/x/SKILL.md", front("name: x", "description: A skill.", "hooks: x"))
    desk.write("pack/b/config.yaml", "description: B.\nkeep_workspace: true\ntols: [Bash]\n")
    desk.write("pack/b/prompt.md", "Review the change, and name each fault.")

    found = desk.type("agents", "check", "pack")
    assert found.code == 65
    assert "pack/a.md:4:1: error permission-key: 'allowedTools' is not a key" in found.out
    assert "Did you mean" in found.out
    assert "pack/b/config.yaml:3:1: error permission-key: 'tols'" in found.out
    hooks = "pack/skills/x/SKILL.md:4:1: error permission-key: 'hooks' is not a key of format 'skill'; no tool is granted.\n    Remove it."
    assert hooks in found.out
    assert "3 files, 3 errors, 0 warnings, 4 notes." in found.out
    assert "permission-key" in desk.type("agents", "check", "pack/a.md", "--matrix").out
    shape = desk.type("agents", "check", "pack", "--json").json
    assert {one["usable"] for one in shape["files"]} == {"no"}
    assert {one["response_form"] for one in shape["files"]} == {"1 try"}
    missing = desk.type("agents", "check", "nowhere")
    assert (missing.code, "nowhere" in missing.err) == (2, True)


def test_new_definition_can_be_used_at_once(desk: Desk):
    made = desk.type("agents", "new", "code_reviewer")
    assert made.code == 0, made.err
    assert ".agents/agents/code_reviewer/config.yaml" in made.out
    for step in (made.err.partition("next: mimir ")[2].split(), ["agents", "check"]):
        done = desk.type(*step)
        assert done.code == 0, done.out + done.err
    again = desk.type("agents", "new", "code_reviewer")
    assert again.code == 2
    assert desk.type(*again.err.partition("mimir ")[2].split()).code == 0
    assert desk.type("agents", "new", "../out").code == 2


def test_nothing_that_a_file_holds_reaches_the_terminal_raw(desk: Desk):
    desk.write(
        ".claude/agents/e.md",
        front("name: e", 'description: "x\\e]0;owned\\a y"', prompt="\x1b[2J" * 9),
    )

    shown = desk.type("agents", "show", "project:e").out + desk.type("agents", "--all").out
    assert "\x1b" not in shown
    assert "\a" not in shown


def test_trust_is_confirmed_on_a_terminal(desk: Desk, tmp_path: Path):
    desk.write(".claude/agents/reviewer.md", REVIEWER)
    main, side = pty.openpty()
    command = [sys.executable, "-m", "mimir", "agents", "trust", "--all"]
    own = {**environment(), "HOME": str(tmp_path / "home")}
    process = subprocess.Popen(
        command, cwd=desk.project, env=own, stdin=side, stdout=side, stderr=side
    )
    os.close(side)
    os.write(main, b"n\n")
    assert process.wait() == 1
    os.close(main)
    assert not (tmp_path / "home/.local/state/mimir").exists()


def script(*parts: Part) -> str:
    return yaml.safe_dump({"parts": [*parts, *REST]}, allow_unicode=False)


@pytest.fixture
def trusted(desk: Desk, tmp_path: Path) -> Desk:
    desk.write(".claude/agents/fixer.md", claude("fixer", "tools: Read, Write, Bash"))
    assert desk.type("agents", "trust", "project:fixer", "--yes").code == 0
    desk.environ(MIMIR_MODEL="play:../script.yaml")
    return desk


def test_an_invocation_ends_completed_with_executed_checks(trusted: Desk, tmp_path: Path):
    right = writes("out.txt", "42\n")
    wrong = writes("out.txt", "41\n")
    work = [
        {**worker("task-1", wrong, answer("Done.")), "attempt": 1},
        {**worker("task-1", right, answer("Now it is right.")), "attempt": 2},
    ]
    (tmp_path / "script.yaml").write_text(script(*work), encoding="utf-8")

    done = trusted.type(
        "invoke",
        "fixer",
        "Write 42 to out.txt.",
        "--deliverable",
        "out.txt",
        "--check",
        "grep -q 42 out.txt",
        "--json",
    )

    assert done.code == 0, done.err + done.out
    response = done.events[-1]
    assert response["event"] == "AgentAnswered"
    assert (response["status"], response["assurance"]["level"]) == ("completed", "executed")
    assert response["deliverables"]["documents"] == [
        {"path": "out.txt", "change": "added", "lines": 1}
    ]
    assert response["metadata"]["attempts"] == 2
    assert not (trusted.project / "out.txt").exists()
    run = response["run"]
    assert run.startswith("agent-")
    assert trusted.type("verify", run).code == 0
    assert trusted.type("replay", run).code == 0
    shown = trusted.type("show", f"{run}/task-1", "--calls").out
    assert "agentinator" not in shown
    assert trusted.type("apply", run).code == 0
    assert (trusted.project / "out.txt").read_text() == "42\n"


def test_the_model_of_the_caller_precedes_that_of_the_definition(trusted: Desk, tmp_path: Path):
    trusted.write(".claude/agents/wise.md", claude("wise", "tools: Read", "model: opus"))
    own = tmp_path / "mimir.toml"
    own.write_text(f'[agents.models]\nopus = "play:{tmp_path}/opus.yaml"\n', encoding="utf-8")
    trusted.environ(MIMIR_CONFIG=own)
    for name in ("opus", "script"):
        text = script(worker("task-1", answer(f"I am {name}.")))
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    words = ("invoke", "project:wise", "Who are you?")

    assert "I am opus." in trusted.type(*words).out
    assert "I am script." in trusted.type(*words, "--model", "play:../script.yaml").out


def test_limits_of_a_definition_reach_the_model(desk: Desk, tmp_path: Path):
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    (prompts / "short.chatmode.md").write_text(front("description: Answers."), encoding="utf-8")
    desk.write(".opencode/agent/calm.md", front("description: Answers.", "temperature: 0.7"))
    desk.write(".agents/agents/brief/config.yaml", "description: Answers.\nmax_tokens: 900\n")
    desk.write(".agents/agents/brief/prompt.md", "Answer in few words, and cite your sources.")
    asked = {"parts": [worker("task-1", answer("Yes.")), *REST]}
    with PlayServer(asked) as server:
        desk.ask(server, AGENTS__VSCODE_PROMPTS=prompts)
        for name in ("short", "project:calm", "project:brief"):
            assert desk.type("invoke", name, "Is it so?").code == 0
        bodies = [one.body for one in server.requests if one.body]
    assert [one["temperature"] for one in bodies] == [0.0, 0.7, 0.0]
    assert [one["max_tokens"] for one in bodies] == [16_000, 16_000, 900]


def test_an_invocation_without_its_deliverable_is_no_success(trusted: Desk, tmp_path: Path):
    work = worker("task-1", writes("other.txt", "x\n"), answer("Done."))
    (tmp_path / "script.yaml").write_text(script(work, work), encoding="utf-8")

    done = trusted.type(
        "invoke",
        "fixer",
        "Write out.txt.",
        "--deliverable",
        "out.txt",
        "--files",
        "*.txt",
        "--json",
    )

    assert done.code == 1
    response = done.events[-1]
    assert (response["status"], response["assurance"]["level"]) == ("partial", "none")
    assert response["error"]["next"] == f"mimir report {response['run']}"
    assert "test -s out.txt" in response["error"]["message"]


def test_agent_writes_only_files_that_its_configuration_and_the_caller_allow(
    trusted: Desk, tmp_path: Path
):
    config = 'description: Writes.\ntools: [Read, Write]\nfiles: ["src/a*"]\n'
    trusted.write(".agents/agents/writer/config.yaml", config)
    trusted.write(".agents/agents/writer/prompt.md", "Write what the task names.")
    assert trusted.type("agents", "trust", "project:writer", "--yes").code == 0
    made: Turn = {
        "calls": [
            calls("write_file", path=path, content="1\n")
            for path in ("src/a.py", "src/b.py", "src/ab/c.py")
        ]
    }
    (tmp_path / "script.yaml").write_text(
        script(worker("task-1", made, answer("Done."))), encoding="utf-8"
    )
    words = ("invoke", "writer", "Write them.", "--check", "test -s src/a.py", "--json", "--files")

    done = trusted.type(*words, "src/*", "src/ab")

    assert done.code == 0, done.err
    assert [one["path"] for one in done.events[-1]["deliverables"]["documents"]] == ["src/a.py"]
    assert trusted.type(*words, "docs/**").code == 2


def test_refusals_create_no_run(trusted: Desk):
    trusted.write(".claude/agents/reader.md", claude("reader", "tools: Read, Write"))
    trusted.write(
        ".agents/agents/tool/config.yaml", "description: Runs.\ntype: cli\nprogram: claude\n"
    )
    trusted.write(".agents/agents/tool/prompt.md", "Use the program for this task.")
    for code, words in (
        (2, ("nothing", "Do it.", "--criterion", "x")),
        (2, ("fixer", "Do it.", "--deliverable", "../out.txt")),
        (65, ("project:reader", "Do it.", "--deliverable", "a.txt")),
        (65, ("project:reader", "Do it.", "--criterion", "x", "--files", "**")),
        (65, ("project:tool", "Do it.", "--criterion", "x")),
        (69, ("claude_code", "Do it.", "--criterion", "x")),
        (65, ("fixer", "Do it.", "--criterion", "x", "--tools", "grep")),
        (69, ("information_gatherer", "What is new?")),
    ):
        refused = trusted.type("invoke", *words)
        assert (refused.code, len(refused.error) >= 1) == (code, True), words
    assert not (trusted.project / ".mimir").exists()


def test_an_untrusted_agent_reads_and_its_changes_are_left_out(trusted: Desk, tmp_path: Path):
    trusted.write(".claude/agents/reader.md", claude("reader", "tools: Read, Write, Bash"))
    trusted.write("notes.txt", "The answer is 42.\n")
    work = worker("task-1", writes("notes.txt", "changed\n"), answer("The answer is 42."))
    (tmp_path / "script.yaml").write_text(script(work, work), encoding="utf-8")

    done = trusted.type(
        "invoke",
        "project:reader",
        "What is the answer?",
        # A text is no path: it is judged.
        "--deliverable",
        "It names the answer",
        "--apply",
        "auto",
    )

    assert done.code == 0, done.err
    assert (trusted.project / "notes.txt").read_text() == "The answer is 42.\n"


def test_agent_files_are_written_only_if_the_task_names_their_place(trusted: Desk, tmp_path: Path):
    planted = writes(".claude/agents/planted.md", claude("planted", "tools: Bash"))
    work = worker("task-1", planted, answer("Done."))
    (tmp_path / "script.yaml").write_text(script(work, work), encoding="utf-8")
    words = ("invoke", "fixer", "Write it.", "--criterion", "It is there", "--json", "--files")

    refused = trusted.type(*words, "**")

    assert (refused.code, refused.events[-1]["status"]) == (1, "failed")
    issues = next(one for one in refused.events if one["event"] == "TaskFailed")["issues"]
    assert "a place of agent definitions" in issues[0]
    written = trusted.type(*words, ".claude/agents/*.md", "--apply", "auto")
    assert written.code == 0, written.err
    shown = trusted.type("agents", "show", "project:planted", "--json").json
    assert (shown["trusted"], "run" in shown["tools"]["granted"]) == (False, False)


def test_an_invocation_in_another_process_ends_without_its_caller(trusted: Desk, tmp_path: Path):
    work = worker("task-1", writes("out.txt", "42\n"), {"text": answer("Done.")})
    (tmp_path / "script.yaml").write_text(script(work), encoding="utf-8")
    # The worker starts in the project, whose files are no modules of mimir.
    trusted.write("yaml.py", "raise SystemExit('a file of the project was imported')\n")
    begun = trusted.type(
        *("invoke", "fixer", "Write 42.", "--check", "grep -q 42 out.txt", "--files", "*.txt"),
        *("--mode", "ping", "--json"),
    )
    assert begun.code == 0, begun.err
    told = begun.events[-1]
    assert (told["event"], told["status"]) == ("AgentInvoked", "working")
    # The worker holds the run until it has ended; serving it too waits for that.
    trusted.type("worker", "--run", told["run"])
    log = Path(told["log"]).read_text()
    assert trusted.status()["status"] == "completed", log
    assert "was imported" not in log
    assert trusted.type("invoke", "fixer", "x", "--mode", "later").code == 2
