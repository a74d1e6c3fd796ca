"""Answers of invoked agents by command line: read-only work, response form, citations, schema."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.agent_corpus import answer, claude, front
from tests.support.cli_runner import Desk, Said
from tests.support.whole_run import REST, Turn, calls, worker

READS: Turn = {"calls": [calls("read_file", path="src/money.py")]}
MONEY = "def total(items):\n    return sum(items) / len(items)\n"
COMPLETED = re.compile(r"\bcompleted\b", re.IGNORECASE)


class Reviewing(Desk):
    """A project with a reviewer whose words a test writes."""

    script: Path

    def ask_reviewer(self, *words: str, turns: tuple[Turn, ...]) -> Said:
        """Invoke the reviewer with these scripted answers."""
        parts = [worker("task-1", *turns), *REST]
        self.script.write_text(yaml.safe_dump({"parts": parts}), encoding="utf-8")
        return self.type("invoke", "project:reviewer", "Is total right?", *words)


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Reviewing:
    desk = Reviewing(tmp_path / "project", monkeypatch, capsys)
    desk.environ(HOME=tmp_path / "home", MIMIR_MODEL="play:../script.yaml")
    desk.unset("XDG_CONFIG_HOME", "XDG_STATE_HOME")
    desk.script = tmp_path / "script.yaml"
    desk.write(".claude/agents/reviewer.md", claude("reviewer", "tools: Read, Grep, Edit, Bash"))
    desk.write("src/money.py", MONEY)
    return desk


def last(said: Said) -> dict[str, Any]:
    return said.events[-1]


def test_a_read_only_invocation_is_answered_and_false_citations_are_named(desk: Reviewing):
    said = answer(
        "It divides by the number of items: [file:src/money.py] "
        '"return sum(items) /  len(items)". It also says [file:src/money.py] "raise ValueError here" and '
        '[call:1] "no such words". The tool showed [call:1] "def total(items):".'
    )
    turns = (READS, said)

    shown = desk.ask_reviewer(turns=turns)

    assert shown.code == 0, shown.err
    assert "2 of 4 verified" in shown.out
    assert "raise ValueError here" in shown.out
    done = desk.ask_reviewer("--json", turns=turns)
    response, run = done.events[-1], done.events[-1]["run"]
    assert response["status"] == "answered"
    assert response["assurance"]["level"] == "none"
    assert [one.split('"')[1] for one in response["assurance"]["citations"]["unverified"]] == [
        "no such words",
        "raise ValueError here",
    ]
    assert (desk.project / "src/money.py").read_text() == MONEY
    # No reviewer, no reporter and no maker of preambles were asked.
    assert {one["role"] for one in done.events if one["event"] == "ModelCalled"} == {"worker"}
    views = [shown.out, done.out]
    for words in (
        ("status", run),
        ("runs",),
        ("show", run),
        ("show", f"{run}/task-1"),
        ("log", run),
        ("report", run),
        ("replay", run),
    ):
        seen = desk.type(*words)
        assert seen.code == 0, (words, seen.err)
        assert "answered" in seen.out.lower(), words
        views.append(seen.out)
        if words[0] not in ("replay", "runs"):
            views.append(desk.type(*words, "--json").out)
    assert [view for view in views if COMPLETED.search(view)] == []
    assert desk.type("verify", run).code == 0
    assert not (desk.project / ".git").exists()
    listed = desk.type("runs", "--kind", "agent", "--agent", "reviewer", "--json").json["runs"]
    assert {one["run"] for one in listed} >= {run}
    assert {(one["status"], one["assurance"]) for one in listed} == {("answered", "none")}
    strict = desk.ask_reviewer("--strict-citations", turns=turns)
    assert strict.code == 1


def test_verified_citations_are_the_assurance_of_an_answer(desk: Reviewing):
    said = answer('It divides: [file:src/money.py] "return sum(items) / len(items)".')

    done = desk.ask_reviewer("--strict-citations", "--json", turns=(said,))

    assert done.code == 0, done.err
    assert last(done)["assurance"]["level"] == "cited"


def test_an_answer_of_another_form_is_requested_once_more(desk: Reviewing):
    first = desk.ask_reviewer("--json", turns=("It divides by zero.", answer("It divides.")))
    assert (first.code, last(first)["status"]) == (0, "answered")

    twice = answer("One.") + answer("Two.")
    second = desk.ask_reviewer("--json", turns=(twice, "It divides by zero."))

    response = last(second)
    assert (second.code, response["status"]) == (1, "partial")
    assert response["deliverables"]["analysis"] == "It divides by zero."
    assert [one["code"] for one in response["metadata"]["findings"]] == ["response-form"]
    run = response["run"]
    assert desk.type("replay", run).code == 0
    assert desk.type("status", run, "--json").json["status"] == "answered"


def test_metadata_has_the_self_report_of_an_agent_and_the_computed_status(desk: Reviewing):
    proposals = [{"operation": "create_entities", "data": {"name": str(n)}} for n in range(60)]
    own = {"task_completion_status": "partial", "confidence_level": "low"}
    said = answer("It divides.", memory_operations=proposals, metadata=own)

    response = last(desk.ask_reviewer("--json", turns=(said,)))

    about = response["metadata"]
    assert (about["task_completion_status"], about["self_reported"]) == ("complete", "partial")
    assert [one["code"] for one in about["findings"]] == ["self-report", "memory-operations"]
    assert {one["state"] for one in response["memory_operations"]} == {"proposed"}
    assert len(response["memory_operations"]) == 20


def test_inbox_of_a_session_has_only_the_proposals_of_its_runs(desk: Reviewing):
    learned = {"entity": "total", "text": "total divides by the number of items"}
    proposal = {"operation": "add_observations", "data": learned, "sources": ["call:1"]}
    turns = (READS, answer("It divides.", memory_operations=[proposal]))
    desk.environ(MIMIR_SESSION="s-one")
    run = last(desk.ask_reviewer("--json", turns=turns))["run"]
    desk.environ(MIMIR_SESSION="s-two")
    desk.ask_reviewer(turns=turns)

    proposals = desk.type("inbox", "--session", "s-one", "--json").json["proposals"]
    unknown = desk.type("inbox", "--session", "s-none")

    assert [one["run"] for one in proposals] == [run]
    assert (unknown.code, "next: See all open questions: mimir inbox" in unknown.err) == (2, True)


SCHEMA = {
    "type": "object",
    "required": ["faults"],
    "properties": {"faults": {"type": "integer", "minimum": 0}},
    "additionalProperties": False,
}


def test_the_structured_part_must_match_the_schema(desk: Reviewing):
    desk.write("form.json", json.dumps(SCHEMA))
    right, wrong = json.dumps({"faults": 1}), json.dumps({"faults": "one"})

    done = desk.ask_reviewer("--schema", "@form.json", "--json", turns=(wrong, right))
    assert (done.code, last(done)["deliverables"]["structured"]) == (0, {"faults": 1})

    failed = desk.ask_reviewer("--schema", "@form.json", "--json", turns=(wrong, wrong))
    assert failed.code == 1
    assert last(failed)["error"]["cause"] == "invalid_answer"


@pytest.mark.parametrize("depth", [11, 21])
def test_a_schema_that_is_remote_or_too_deep_is_refused_before_any_call(
    desk: Reviewing, depth: int
):
    deep: object = {"type": "string"}
    for _ in range(depth - 1):
        deep = {"items": deep}
    for schema in (deep, {"$ref": "https://example.org/schema.json"}):
        desk.write("form.json", json.dumps(schema))
        refused = desk.ask_reviewer("--schema", "@form.json", turns=("Never asked.",))
        assert refused.code == 65, refused.err
    assert not (desk.project / ".mimir").exists()


def test_an_agent_reads_the_skills_that_its_definition_lists(desk: Reviewing):
    words = claude("reviewer", "tools: Read", "skills: [money, unknown]")
    desk.write(".claude/agents/reviewer.md", words)
    body = "Divide only after a check of the number of items."
    skill = front("name: money", "description: Rules for amounts.", prompt=body)
    desk.write(".claude/skills/money/SKILL.md", skill)
    desk.write(".claude/skills/money/references/rounding.md", "Round half to even.\n")
    desk.write(".claude/skills/other/SKILL.md", front("name: other", "description: Another one."))
    reads: Turn = {
        "calls": [
            calls("read_skill", name="money"),
            calls("read_skill", name="money", path="references/rounding.md"),
            calls("read_skill", name="other"),
            calls("read_skill", name="money", path="../../agents/reviewer.md"),
        ]
    }
    said = answer('[call:1] "Divide only after a check" and [call:2] "Round half to even."')

    done = desk.ask_reviewer("--json", turns=(reads, said))

    assert done.code == 0, done.err
    assert "names the skill 'unknown'" in done.err
    assert last(done)["assurance"]["level"] == "cited"
    assert desk.type("replay", last(done)["run"]).code == 0


def test_the_scripts_of_a_skill_run_in_the_sandbox_and_are_not_delivered(desk: Reviewing):
    words = claude("reviewer", "tools: Read, Bash", "skills: [money]")
    desk.write(".claude/agents/reviewer.md", words)
    desk.write(
        ".claude/skills/money/SKILL.md", front("name: money", "description: Rules for amounts.")
    )
    desk.write(".claude/skills/money/scripts/add.sh", "#!/bin/sh\necho $(($1 + $2)) > sum.txt\n")
    trusted = desk.type("agents", "trust", "project:reviewer", "--yes").out
    assert "echo $(($1 + $2))" in trusted
    assert "trusted: .claude/skills/money/SKILL.md" in trusted
    script = ".skill/money/scripts/add.sh"
    turn: Turn = {
        "calls": [
            calls("read_skill", name="money"),
            calls("run", command=f"{script} 40 2; echo x >> {script}"),
        ]
    }
    said = answer(f'[call:1] "{script}" [call:2] "Read-only file system"')

    done = desk.ask_reviewer(
        "--check", "grep -q 42 sum.txt", "--files", "sum.txt", "--json", turns=(turn, said)
    )

    assert done.code == 0, done.out + done.err
    assert last(done)["assurance"]["citations"]["unverified"] == []
    assert [one["path"] for one in last(done)["deliverables"]["documents"]] == ["sum.txt"]


def test_trusted_agent_gets_no_skill_of_a_clone_without_approval(desk: Reviewing):
    mine = desk.project.parent / "home/.claude/agents/mine.md"
    mine.parent.mkdir(parents=True)
    words = claude("mine", "tools: Read, Bash", "skills: [money]")
    mine.write_text(words, encoding="utf-8")
    body = "Divide only after a check of the number of items."
    skill = front("name: money", "description: Rules for amounts.", prompt=body)
    desk.write(".claude/skills/money/SKILL.md", skill)
    withheld = "does not get the skill 'money' of the project, which is not trusted"
    turn: Turn = {"calls": [calls("read_skill", name="money")]}
    parts = [worker("task-1", turn, answer('[call:1] "Divide only after a check"')), *REST]
    desk.script.write_text(yaml.safe_dump({"parts": parts}), encoding="utf-8")

    done = desk.type("invoke", "mine", "Is total right?", "--json")

    assert (done.code, withheld in done.err) == (0, True), done.err
    assert last(done)["assurance"]["citations"]["verified"] == 0
    assert "trusted: .claude/skills/money" in desk.type("agents", "trust", "mine", "--yes").out
    assert withheld not in desk.type("agents", "show", "mine").err
    # A change of any file that an agent gets from it removes the trust.
    desk.write(".claude/skills/money/scripts/add.sh", "#!/bin/sh\necho 42\n")
    assert withheld in desk.type("agents", "show", "mine").err
    assert desk.type("agents", "trust", "mine", "--yes").code == 0
    assert desk.type("agents", "trust", "mine", "--yes").code == 2


def test_a_request_larger_than_the_context_is_refused_before_any_call(desk: Reviewing):
    desk.write("long.txt", "many words " * 20_000)

    refused = desk.ask_reviewer("--context", "@long.txt", turns=("Never asked.",))

    assert refused.code == 65
    assert "of 30,000 tokens. Largest piece: context (" in refused.err
    assert desk.type("runs", "--json").json["runs"] == []


def test_an_agent_is_shown_the_project_within_its_window(desk: Reviewing):
    desk.write("AGENTS.md", "Amounts are whole cents.\n")
    desk.write("notes.txt", "a line of notes\n" * 8_000)
    desk.write("mimir.toml", "[llm]\ncontext_tokens = 10000\n")
    desk.write(".claude/agents/reviewer.md", claude("reviewer", "tools: Read"))
    desk.ask_reviewer(turns=(answer("Yes."),))
    assert desk.type("handoff", "The rounding of shares is open.").code == 0

    done = desk.ask_reviewer("--context-file", "notes.txt", "--json", turns=(answer("Yes."),))

    assert done.code == 0, done.err
    context = last(done)["metadata"]["context"]
    assert context["included_tokens"] < 4_000 < context["omitted_tokens"]
    stored = desk.type("export", last(done)["run"]).out
    assert "Amounts are whole cents." in stored
    assert "The rounding of shares is open." in stored
    assert desk.type("replay", last(done)["run"]).code == 0
