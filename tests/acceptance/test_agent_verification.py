"""The key `verify` of a definition: its checks alone, its citations, or QC decide."""

from pathlib import Path

import pytest
import yaml

from tests.support.agent_corpus import answer
from tests.support.cli_runner import Desk
from tests.support.whole_run import REST, Part, calls, worker, writes

TRUE = '[file:src/money.py] "return sum(items) / len(items)"'
FALSE = '[file:src/money.py] "raise ValueError here"'

PLAN = """# Plan

### task-1: Write
**Agent:** checks
**Prompt:**
<prompt>
Write 42 to out.txt.
</prompt>
**Files:** out.txt
**Dependencies:** None
**Verification Criteria:**
- [ ] c1: it is 42{more}
**Checks:**
```yaml
- {{id: unit, criteria: [c1], run: [grep, -q, "42", out.txt]}}
```

### task-2: Explain
**Agent:** citations
**Prompt:**
<prompt>
Is total right?
</prompt>
**Dependencies:** None
**Verification Criteria:**
- [ ] c1: it names the divisor
"""


@pytest.fixture
def desk(desk: Desk, tmp_path: Path) -> Desk:
    """Return a project with one agent of the user for each kind of verification."""
    desk.environ(HOME=tmp_path / "home", MIMIR_MODEL="play:../script.yaml")
    desk.unset("XDG_CONFIG_HOME", "XDG_STATE_HOME")
    desk.write("src/money.py", "def total(items):\n    return sum(items) / len(items)\n")
    for kind in ("checks", "citations", "judge"):
        define(tmp_path / f"home/.config/mimir/agents/{kind}", kind)
    return desk


def define(folder: Path, kind: str) -> None:
    folder.mkdir(parents=True)
    config = f'description: "Works."\ntools: [Read, Write]\nverify: {kind}\n'
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    (folder / "prompt.md").write_text("Do what the task asks, and no more.\n", encoding="utf-8")


def script(desk: Desk, *parts: Part) -> None:
    text = yaml.safe_dump({"parts": [*parts, *REST]})
    (desk.project.parent / "script.yaml").write_text(text, encoding="utf-8")


def test_agent_with_checks_alone_is_decided_without_qc(desk: Desk):
    script(
        desk,
        {**worker("task-1", writes("out.txt", "41\n"), answer("Done.")), "attempt": 1},
        {**worker("task-1", writes("out.txt", "42\n"), answer("Done.")), "attempt": 2},
    )
    words = ("invoke", "checks", "Write 42.", "--files", "*.txt")

    done = desk.type(*words, "--check", "grep -q 42 out.txt", "--json")

    assert done.code == 0, done.err
    response, run = done.events[-1], done.events[-1]["run"]
    assert (response["status"], response["assurance"]["level"]) == ("completed", "executed")
    assert response["metadata"]["attempts"] == 2
    roles = {one["role"] for one in done.events if one["event"] == "ModelCalled"}
    assert roles.isdisjoint({"qc", "agentinator"})
    assert desk.type("verify", run).code == 0
    assert desk.type("replay", run).code == 0
    assert "checks alone" in desk.type("agents", "show", "checks").out
    refused = desk.type(*words, "--criterion", "It is right")
    assert (refused.code, "--check CMD" in refused.err) == (2, True)


def test_an_answer_is_refused_until_each_of_its_citations_holds(desk: Desk):
    script(
        desk,
        {**worker("task-1", answer(f"It divides: {TRUE}, and {FALSE}.")), "attempt": 1},
        {**worker("task-1", answer(f"It divides: {TRUE}.")), "attempt": 2},
    )

    done = desk.type("invoke", "citations", "Is total right?", "--json")

    assert done.code == 0, done.err
    response, run = done.events[-1], done.events[-1]["run"]
    assert (response["status"], response["assurance"]["level"]) == ("answered", "cited")
    assert response["metadata"]["attempts"] == 2
    retried = next(one for one in done.events if one["event"] == "VerdictGiven")
    assert "raise ValueError here" in str(retried["reasons"])
    assert desk.type("verify", run).code == 0
    assert desk.type("replay", run).code == 0


def test_an_answer_without_citations_fails(desk: Desk):
    script(desk, worker("task-1", answer("It divides.")), worker("task-1", answer("It divides.")))

    done = desk.type("invoke", "citations", "Is total right?", "--json")

    response = done.events[-1]
    assert (done.code, response["status"]) == (1, "failed")
    assert response["assurance"]["level"] == "none"
    assert desk.type("verify", response["run"]).code == 0


def test_qc_judges_an_answer_without_a_criterion_of_the_caller(desk: Desk):
    read = {"calls": [calls("read_file", path="src/money.py")]}
    script(desk, worker("task-1", read, answer(f"It divides: {TRUE}.")))

    done = desk.type("invoke", "judge", "Is total right?", "--json")

    assert done.code == 0, done.err
    response = done.events[-1]
    assert (response["status"], response["assurance"]["level"]) == ("completed", "judged")
    assert (desk.project / "src/money.py").exists()
    assert response["deliverables"]["documents"] == []


def test_a_definition_verifies_its_tasks_of_a_plan_too(desk: Desk):
    script(
        desk,
        worker("task-1", writes("out.txt", "42\n"), answer("Done.")),
        {**worker("task-2", answer(f"It divides: {FALSE}.")), "attempt": 1},
        {**worker("task-2", answer(f"It divides: {TRUE}.")), "attempt": 2},
    )
    desk.write("plan.md", PLAN.format(more="\n- [ ] c2: it is right"))
    refused = desk.type("execute", "plan.md", "--yes")
    assert (refused.code, "and c2 has no check" in refused.err) == (65, True), refused.err
    desk.write("plan.md", PLAN.format(more=""))

    done = desk.type("execute", "plan.md", "--yes", "--apply", "never", "--json")

    assert done.code == 0, done.err + done.out
    asked = {one["task"] for one in done.events if one.get("role") == "qc"}
    assert {one.rpartition("/")[2] for one in asked} == {"task-2"}
    rejected = [one for one in done.events if one["event"] == "VerdictGiven" and not one["passed"]]
    assert ["raise ValueError here" in str(one["reasons"]) for one in rejected] == [True]
    assert desk.type("replay", done.events[0]["run"]).code == 0


def test_file_of_a_clone_does_not_set_the_required_evidence(desk: Desk):
    define(desk.project / ".agents/agents/lax", "checks")
    script(desk, worker("task-1", answer("It divides.")))

    done = desk.type("invoke", "project:lax", "Is it right?", "--criterion", "It says so", "--json")

    assert done.code == 0, done.err
    assert "qc" in {one["role"] for one in done.events if one["event"] == "ModelCalled"}
