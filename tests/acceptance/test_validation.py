"""Validation of invocations by command line: the stored run decides, and its proof is repeated."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.agent_corpus import answer, claude
from tests.support.cli_runner import Desk
from tests.support.whole_run import REST, Turn, calls, worker, writes

MONEY = "def total(items):\n    return sum(items) / len(items)\n"
READS: Turn = {"calls": [calls("read_file", path="src/money.py")]}
TRUE = '[file:src/money.py] "return sum(items) / len(items)" and [call:1] "def total(items):"'
FALSE = '[call:1] "raise ValueError here"'


class Validating(Desk):
    """A project with a reviewer whose words a test writes."""

    def invoke(self, *words: str, turns: tuple[Turn, ...]) -> dict[str, Any]:
        """Invoke the reviewer; return its response."""
        script = {"parts": [worker("task-1", *turns), *REST]}
        (self.project.parent / "script.yaml").write_text(yaml.safe_dump(script), encoding="utf-8")
        said = self.type("invoke", "reviewer", "Is total right?", "--json", *words)
        assert said.out, said.err
        return said.events[-1]

    def validate(self, run: str, *words: str) -> dict[str, Any]:
        """Validate a response; the exit code follows from the recommendation."""
        said = self.type("validate", run, "--json", *words)
        found = said.json
        assert said.code == int(found["decision_recommendation"] != "accept"), said.err
        return found


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Validating:
    desk = Validating(tmp_path / "project", monkeypatch, capsys)
    desk.environ(HOME=tmp_path / "home", MIMIR_MODEL="play:../script.yaml")
    desk.environ(MIMIR_CHECKS__CONTROLS="never")
    desk.unset("XDG_CONFIG_HOME", "XDG_STATE_HOME")
    agents = tmp_path / "home" / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "reviewer.md").write_text(claude("reviewer", "tools: Read, Grep, Edit, Write"))
    desk.write("src/money.py", MONEY)
    return desk


def issues(found: dict[str, Any], *, minor: bool = False) -> list[tuple[str, str]]:
    listed = found["identified_issues"]
    return [
        (one["severity"], one["category"]) for one in listed if minor or one["severity"] != "minor"
    ]


def test_an_answer_is_accepted_until_its_citation_is_invented_or_its_file_changes(
    desk: Validating,
):
    right = desk.invoke(turns=(READS, answer(f"It divides: {TRUE}.")))["run"]
    wrong = desk.invoke(turns=(READS, answer(f"It raises: {FALSE}.")))["run"]

    good = desk.validate(right, "--requirement", "It handles an empty list")
    bad = desk.validate(wrong)

    assert (good["decision_recommendation"], good["assurance"]["level"]) == ("accept", "cited")
    assert good["assurance"]["citations"] == {"total": 2, "verified": 2, "unverified": []}
    assert issues(good, minor=True) == [("minor", "requirements")]
    assert bad["decision_recommendation"] == "refine"
    assert issues(bad) == [("important", "accuracy")]
    assert "raise ValueError" in bad["identified_issues"][0]["description"]
    # Then the file that the right answer cites changes
    desk.write("src/money.py", "def total(items):\n    return 0\n")
    late = desk.validate(right)
    assert (late["decision_recommendation"], issues(late)) == (
        "refine",
        [("important", "integration")],
    )
    assert desk.type("verify", right).code == 0


def test_a_check_that_turns_red_and_a_check_of_the_caller_refuse_the_result(desk: Validating):
    settings = desk.project.parent / "home" / ".config" / "mimir" / "mimir.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[sandbox.env]\nLEVEL = "1"\n')
    turns = (writes("src/new.py", "NEW = 1\n"), answer("It is written."))
    words = ("--deliverable", "src/new.py", "--check", 'test "$LEVEL" = 1')
    run = desk.invoke(*words, turns=turns)["run"]

    good = desk.validate(run, "--check", "grep -q NEW src/new.py")
    given = desk.validate(run, "--check", "grep -q OLD src/new.py")
    settings.write_text('[sandbox.env]\nLEVEL = "2"\n')
    red = desk.validate(run)

    assert good["decision_recommendation"] == "accept"
    assert good["assurance"]["level"] == "executed"
    assert [one["check"] for one in good["checks"]] == ["check-1", "deliverable-1", "given-1"]
    assert (given["decision_recommendation"], issues(given)) == (
        "refine",
        [("critical", "requirements")],
    )
    assert (red["decision_recommendation"], red["assurance"]["level"]) == ("refine", "none")
    assert "check-1" in red["identified_issues"][0]["description"]
    assert desk.type("verify", run).code == 0


def test_validation_by_qc_adds_issues_with_verified_quotes(desk: Validating):
    run = desk.invoke(turns=(READS, answer(f"It divides: {TRUE}.")))["run"]
    demands = ("--requirement", "It divides", "--requirement", "It is fast", "--quality", "Short")
    quote = "return sum(items) / len(items)"
    judged = {
        "requirements": [
            {"number": 1, "holds": True, "quote": quote},
            {"number": 2, "holds": True, "quote": "measured at 3 ns"},
            {"number": 3, "holds": False, "quote": ""},
        ],
        "overall_score": "high",
        "completeness": "Whole.",
    }
    said = answer("Judged.")
    script = {
        "parts": [
            worker(
                "task-1", json.dumps({**json.loads(said), "deliverables": {"structured": judged}})
            ),
            *REST,
        ]
    }
    (desk.project.parent / "script.yaml").write_text(yaml.safe_dump(script), encoding="utf-8")

    found = desk.validate(run, "--judge", *demands)

    assert found["decision_recommendation"] == "refine"
    assert run in found["next"]
    texts = [one["description"] for one in found["identified_issues"]]
    assert texts == [
        "Judged as not fulfilled: Short",
        "Judged without a quote that is there: It is fast",
    ]
    assessment = found["quality_assessment"]
    assert (assessment["overall_score"], assessment["completeness"]) == ("medium", "Whole.")
    judging = assessment["judged_by"]["run"]
    assert desk.type("status", judging, "--json").json["status"] == "answered"
    assert desk.type("verify", run).code == 0


def test_a_failed_invocation_is_given_to_another_agent(desk: Validating):
    words = ("--deliverable", "src/new.py")
    run = desk.invoke(*words, turns=(answer("Nothing to do."),) * 4)["run"]

    found = desk.validate(run)

    assert found["decision_recommendation"] == "re-delegate"
    assert found["alternative_approaches"]
    assert ("critical", "completeness") in issues(found)
    assert desk.type("validate", "agent-none").code == 2
