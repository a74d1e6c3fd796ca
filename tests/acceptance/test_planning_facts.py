"""Facts about the sandbox in the PM's brief, and the tool that tries a command."""

import pytest

from mimir.orchestrator.services import PlanningProgress
from mimir.planning.renderer import render
from tests.support.cli_runner import Desk
from tests.support.script_server import PlayServer
from tests.support.whole_run import calls, plan, step

PROBE = calls(
    "probe",
    command="git diff --exit-code && echo new > made.txt && cat test_one.py made.txt",
    times=6,
)
TURNS = [{"calls": [PROBE]}, {"calls": [calls("list_files")]}, {"text": render(plan(step("a")))}]


def test_pm_is_given_the_facts_of_the_sandbox_and_tries_commands_that_leave_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    steps: list[str] = []
    show = PlanningProgress.show
    monkeypatch.setattr(
        PlanningProgress, "show", lambda self, step: [steps.append(step), show(self, step)][1]
    )
    with PlayServer({"parts": [{"role": "pm", "turns": TURNS}]}) as server:
        desk.ask(server, MODEL="play")
        desk.write("pyproject.toml", "[project]\nname = 'x'\n")
        desk.write("test_one.py", "def test_one():\n    assert True\n")
        desk.write(".gitlab-ci.yml", "test: {script: [pytest]}\n")
        desk.write("test_two.py", "def test_two():\n    assert False\n")
        planned = desk.type("chain", "Write a.txt", "--record", "run.jsonl")
        first, *_, last = server.of("pm")
    assert planned.code == 0, planned.out
    assert steps == ["running python -m pytest -q, at most 60 s", "trying the checks of the plan"]

    page = first.body["messages"][1]["content"].split("## The sandbox\n")[1].split("\n## ")[0]
    assert "no network" in page
    assert "- Programs: bash (GNU bash" in page
    assert "pytest (pytest " in page
    assert "`python -m pytest -q` ended with exit code 1 after " in page
    assert "'FAILED test_two.py::test_two - assert False', '1 failed, 1 passed" in page
    assert "test commands: .gitlab-ci.yml." in page
    assert "Workers have these tools: read_file" in page
    # Five probes ran, each on its own copy; the sixth was refused.
    results = [m["content"] for m in last.body["messages"] if m["role"] == "tool"]
    probes = [text for text in results if "def test_one" in text and "new" in text]
    assert len(probes) == 5
    assert "quota of 'probe'" in results[5]
    assert "made.txt" not in results[6]
    assert not (desk.project / "made.txt").exists()

    # A replay serves page and probes as they were: the machine is not asked again.
    replayed = desk.type("replay", "run.jsonl")
    assert replayed.code == 0, replayed.out
