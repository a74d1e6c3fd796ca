"""Patterns of planning: an interview, an approved specification, an approved plan, and the report by requirement."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from mimir.domain.event import EventKind
from mimir.domain.plan import Criterion, Plan
from mimir.errors import Paused
from mimir.orchestrator.questions.answering import Answerer, GivenAnswer, answer_question
from mimir.planning.renderer import render
from mimir.scheduling.input_pause import pause_planning
from mimir.store.protocol import WriteOps
from mimir.store.questions import question_rows
from tests.support.cli_runner import Desk, Said
from tests.support.run_facts import Facts, load
from tests.support.whole_run import (
    REST,
    Part,
    calls,
    check,
    plan,
    qc,
    step,
    worker,
    writes,
    wrote,
)

REQUEST = "Limit the calls of each client."
FOLDER = "chains/limit-calls-each-client"
SPEC = """# Limiter
## Goal
Calls are limited.
## Out of scope
- Redis
## Requirements
- R1: when a client calls too often, then the limiter shall refuse.
- R2: when it refuses, then it shall name the time to wait.
- R3: when the process restarts, then the limiter shall count anew.
## Assumptions
- one process
## Open points
- None.
"""
ASKED = calls(
    "ask_user", title="Which limit?", text="Calls a minute.", options=["60", "600"], default="60"
)
JUDGED = {
    "verdict": "PASS", "score": 100, "feedback": "Good.",
    "criteria": [
        {"id": "c1", "state": "passed"},
        {"id": "c2", "state": "passed", "quote_from": {"source": "file:limiter.txt", "pattern": "wait"}},
        {"id": "c3", "state": "passed", "quote": "this stands nowhere", "source": "check:unit"},
    ],
}  # fmt: skip
POINTS = {"R1": 50, "R2": 40, "R3": 10}
INTERVIEW = {
    "role": "interviewer",
    "turns": [
        {"calls": [ASKED]},
        {"choose": [{"when": {"last_has": "600"}, "text": "## Goal\n600 calls a minute."}]},
        "## Goal\n600 calls a minute, per client.",
    ],
}


def planned(*requirements: str) -> str:
    """The PM's plan, whose criteria name these requirements."""
    texts = {"R1": "limiter.txt holds 600", "R2": "limiter.txt says wait", "R3": "it is right"}
    criteria = tuple(
        Criterion(id=f"c{n}", text=f"{id}: {texts[id]}", points=Fraction(POINTS[id]))
        for n, id in enumerate(requirements, 1)
    )
    checks = (check("grep", "-q", "600", "limiter.txt"),)
    made = plan(step("a", criteria=criteria, checks=checks, files=("limiter.txt",)))
    return render(made)


def author(role: str, *turns: Any) -> Part:
    return {"role": role, "turns": list(turns)}


def sdd(*plans: str) -> Sequence[Part]:
    return [
        INTERVIEW,
        author(
            "spec_writer",
            f"Here:\n\n```markdown\n{SPEC}```\n",
            SPEC.replace("Calls are", "All calls are"),
        ),
        author("oracle", "## Parts\none", "## Parts\none, R3 first"),
        author("pm", *plans),
        worker(
            "a",
            writes("limiter.txt", "600\nwait sixty seconds before the next call\n"),
            "limiter.txt is written.",
        ),
        qc("a", {"verdict": JUDGED, "repeat": "forever"}),
        *REST[:2],
    ]


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.write("README.md", "# A project\n")
    desk.environ(MIMIR_MODEL="play:../script.yaml", MIMIR_CHECKS__CONTROLS="never")
    return desk


def script(desk: Desk, parts: Sequence[Part]) -> None:
    text = yaml.safe_dump({"parts": list(parts)})
    (desk.project.parent / "script.yaml").write_text(text, encoding="utf-8")


def answer(desk: Desk, *words: str) -> Said:
    """Answer the only open question, and continue."""
    (question,) = desk.type("inbox", "--json").json["questions"]
    return desk.type("answer", question["id"], *words, "--resume")


def planning(desk: Desk) -> Facts:
    runs = desk.type("runs", "--json").json["runs"]
    return load(desk.project, next(one["run"] for one in runs if one["run"].startswith("plan-")))


def repeated_calls(facts: Facts) -> list[object]:
    made = Counter(
        (e.data["role"], e.attempt, e.data["seq"])
        for e in facts.events_of_kind(EventKind.MODEL_CALLED)
    )
    return [call for call, count in made.items() if count > 1]


def test_a_specified_request_stops_three_times_and_is_reported_by_requirement(desk: Desk):
    # Given a PM that loses R3, and is rejected once
    script(desk, sdd(planned("R1", "R2"), planned("R1", "R2", "R3"), planned("R1", "R2", "R3")))

    # When the request is executed, the first stop is the question of the interviewer
    first = desk.type("execute", REQUEST, "--pattern", "sdd", "--yes", "--apply", "never")
    assert first.code == 75
    assert "1 question is open" in first.out
    assert "mimir resume plan-" in first.out

    # Then the specification, whose rejection returns to its author
    (question,) = desk.type("inbox", "--json").json["questions"]
    ledger = ("ledger", "--run", question["run"])
    assert "- phase: 1\n" in desk.type(*ledger).out
    assert answer(desk, "600").code == 75
    assert "- phase: 2\n" in desk.type(*ledger).out
    (stop,) = desk.type("inbox", "--json").json["questions"]
    assert (desk.project / FOLDER / "specification.md").read_text() == SPEC
    assert (stop["kind"], stop["risk"], stop["subject"]) == (
        "approval", 2, f"{FOLDER}/specification.md",
    )  # fmt: skip
    assert answer(desk, "no, all calls").code == 75
    assert "All calls are limited." in (desk.project / FOLDER / "specification.md").read_text()
    assert answer(desk, "yes").code == 75

    # Then the plan; the engine found the lost requirement, and the user's words reach oracle and PM
    (stop,) = desk.type("inbox", "--json").json["questions"]
    assert stop["subject"] == f"{FOLDER}/chain-output.md"
    assert answer(desk, "no", "--reason", "R3 comes first").code == 75
    facts = planning(desk)
    findings = [e.data["errors"] for e in facts.events_of_kind(EventKind.PLAN_PROPOSED)]
    assert (findings, len(facts.events_of_kind(EventKind.PLAN_REPAIRED))) == ([1, 0], 1)
    asked = {role: str(facts.nodes["Call"]).count("R3 comes first") for role in ("oracle", "pm")}
    assert min(asked.values()) > 0

    # Then the run of the plan, and its report
    last = answer(desk, "yes")
    assert last.code in (0, 1), last.err
    report = desk.type("report", "--json").json
    assert {one["id"]: one["state"] for one in report["requirements"]} == {
        "R1": "executed", "R2": "judged", "R3": "unverified",
    }  # fmt: skip
    assert "## Requirements" in desk.type("report").out
    # It has the answers and approvals of planning as its direction
    told = [one for one in report["triangle"]["direction"] if one.startswith("Answer to q-")]
    assert len(told) == 5
    assert "Approve the plan?: approve" in "; ".join(report["triangle"]["decisions"])
    facts = planning(desk)
    assert repeated_calls(facts) == []
    closed = [e.data["state"] for e in facts.events_of_kind(EventKind.QUESTION_CLOSED)]
    assert closed == ["answered", "rejected", "answered", "rejected", "answered"]
    assert desk.type("verify").code == 0
    for run in desk.type("runs", "--json").json["runs"]:
        assert "equal bytes" in desk.type("replay", run["run"]).out


def test_edited_specification_needs_a_new_approval_and_is_used_as_approved(desk: Desk):
    script(desk, sdd(planned("R1", "R2", "R3")))
    desk.type("chain", REQUEST, "--pattern", "sdd")
    answer(desk, "600")
    (old,) = desk.type("inbox", "--json").json["questions"]
    spec = desk.project / FOLDER / "specification.md"
    spec.write_text(spec.read_text().replace("count anew", "count on"))

    refused = desk.type("answer", old["id"], "yes")

    (new,) = desk.type("inbox", "--json").json["questions"]
    assert refused.code == 1
    assert (
        f"The specification changed after {old['id']} was asked. {old['id']} is withdrawn; {new['id']} replaces it."
        in refused.err
    )
    # The new question quotes the text that it is bound to
    assert ("count on" in new["text"], "count anew" in new["text"]) == (True, False)
    # A resume does not undo the edit, and the late answer names the valid version
    assert desk.type("resume").code == 75
    assert "count on" in spec.read_text()
    assert "was withdrawn" in desk.type("answer", old["id"], "yes").err
    assert answer(desk, "yes").code == 75
    # The plan is approved in an edited form
    edited = desk.write("edited.md", planned("R1", "R2", "R3").replace("says wait", "says: wait"))
    assert answer(desk, "--edit", edited.name).code == 0
    assert "says: wait" in (desk.project / FOLDER / "chain-output.md").read_text()
    assert "count on" in str(planning(desk).nodes["Artifact"])
    run = desk.type("runs", "--json").json["runs"][0]["run"]
    assert "equal bytes" in desk.type("replay", run).out


def test_a_summary_is_approved_before_the_plan_and_too_many_rejections_end_the_run(desk: Desk):
    script(desk, [INTERVIEW, author("pm", planned("R1", "R2", "R3"))])
    desk.environ(MIMIR_PATTERNS__REJECTIONS="2", MIMIR_PATTERNS__DEFAULT="ask")
    desk.type("chain", REQUEST)
    answer(desk, "600")

    # A wrong decision changes nothing
    (stop,) = desk.type("inbox", "--json").json["questions"]
    for words in (
        ["no"],
        ["perhaps"],
        ["yes", "--reason", "x"],
        ["no", "a\x1bb"],
        ["--field", "a=b"],
    ):
        refused = desk.type("answer", stop["id"], *words)
        assert (refused.code, "stays open" in refused.err) == (2, True), refused.err
    desk.write("answers.yaml", f"{stop['id']}: {{decision: reject, reason: per client}}\n")
    assert desk.type("answer", "--file", "answers.yaml").code == 0
    assert desk.type("resume").code == 75
    assert "per client" in (desk.project / FOLDER / "summary.md").read_text()

    last = answer(desk, "no", "never mind")

    assert last.code == 1
    assert "rejected 2 times" in last.err
    ended = planning(desk).events_of_kind(EventKind.RUN_FINISHED)[-1]
    assert (ended.data["outcome"], ended.data["cause"]) == ("failed", "rejected")
    run = desk.type("runs", "--json").json["runs"][0]["run"]
    assert "equal bytes" in desk.type("replay", run).out


def test_a_resumed_request_executes_the_tasks_that_its_command_named(desk: Desk):
    both = render(plan(step("a"), step("b")))
    parts = [author("interviewer", "## Goal\nTwo files."), author("pm", both), wrote("a"), *REST]
    script(desk, parts)
    words = ("--pattern", "ask", "--only", "a", "--yes", "--apply", "never")

    assert desk.type("execute", REQUEST, *words).code == 75
    last = answer(desk, "yes")

    assert last.code == 0, last.err
    assert "Run it: mimir execute" not in last.out
    tasks = desk.type("status", "--json").json["tasks"]
    assert [(one["id"], one["status"]) for one in tasks] == [("a", "completed")]


def test_expired_approval_pauses_the_run_and_is_requested_again(desk: Desk):
    script(desk, [author("interviewer", "## Goal\nA limiter."), author("pm", planned("R1"))])
    desk.environ(MIMIR_QUESTIONS__EXPIRE_DAYS="0.000000001")

    assert desk.type("chain", REQUEST, "--pattern", "ask").code == 75
    assert desk.type("resume").code == 75

    questions = desk.type("inbox", "--all", "--json").json["questions"]
    assert sorted(one["state"] for one in questions) == ["expired", "open"]
    assert answer(desk, "yes").code == 0
    run = desk.type("runs", "--json").json["runs"][0]["run"]
    assert "equal bytes" in desk.type("replay", run).out


def test_a_cancelled_planning_run_withdraws_its_approval(desk: Desk):
    script(desk, [author("interviewer", "## Goal\nA limiter.")])
    desk.type("chain", REQUEST, "--pattern", "ask")
    (stop,) = desk.type("inbox", "--json").json["questions"]

    assert desk.type("cancel", stop["run"]).code == 0

    assert "was withdrawn" in desk.type("answer", stop["id"], "yes").err


def test_a_pattern_that_mimir_chooses_is_named_with_its_reason(desk: Desk):
    facts = {
        "clear": True, "new_feature": False,
        "quotes": {"clear": "Limit the calls", "new_feature": "of each client"},
    }  # fmt: skip
    text = f"Here: {facts}".replace("'", '"').replace("True", "true").replace("False", "false")
    script(desk, [author("ecko", text), author("pm", planned("R1"))])

    made = desk.type("chain", REQUEST, "--pattern", "auto")

    assert made.code == 0, made.err
    assert "pattern direct: the request is clear and no new feature" in made.err
    run = desk.type("runs", "--json").json["runs"][0]["run"]
    assert "equal bytes" in desk.type("replay", run).out


def test_gaps_of_a_request_reach_the_interviewer(desk: Desk):
    text = '{"clear": false, "missing": ["the limit"], "quotes": {"clear": "Limit the calls"}}'
    script(desk, [author("ecko", text), author("interviewer", "## Goal\nA limiter.")])

    assert desk.type("chain", REQUEST, "--pattern", "auto").code == 75

    asked = [one for one in planning(desk).nodes["Call"] if one["role"] == "interviewer"]
    assert "Noted before: the request is not clear: the limit." in str(asked)


def test_a_pattern_needs_a_request(desk: Desk):
    desk.write("plan.md", render(Plan(title="A", tasks=(step("a"),))))

    assert desk.type("execute", "plan.md", "--pattern", "sdd", "--yes").code == 2


def test_a_process_that_dies_after_its_question_costs_no_second_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    def die(*_: object, **__: object) -> None:
        raise RuntimeError("the process died")

    script(desk, [INTERVIEW, author("pm", planned("R1", "R2", "R3"))])
    with monkeypatch.context() as patch:
        patch.setattr("mimir.orchestrator.plan_creation.pause_planning", die)
        assert desk.type("chain", REQUEST, "--pattern", "ask").code == 70
    (asked,) = desk.type("inbox", "--json").json["questions"]

    # Another process finds the same question, and its answer may come before or after
    assert desk.type("resume").code == 75
    assert [one["id"] for one in desk.type("inbox", "--json").json["questions"]] == [asked["id"]]
    with monkeypatch.context() as patch:
        patch.setattr("mimir.orchestrator.plan_creation.pause_planning", die)
        assert answer(desk, "600").code == 70
    assert answer(desk, "yes").code == 0

    facts = planning(desk)
    assert repeated_calls(facts) == []
    assert len(facts.events_of_kind(EventKind.QUESTION_ASKED)) == 2
    assert "equal bytes" in desk.type("replay", facts.run).out


def test_answer_before_the_pause_continues_the_same_process(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    answerer = Answerer(
        project_id="", by="user", transport="terminal", redact=str, project=desk.project
    )

    def answer_first(ops: WriteOps, run: str, owner: str) -> Paused | None:
        for one in question_rows.load_open(ops, run):
            if one.kind == "input":
                named = replace(answerer, project_id=one.project_id)
                answer_question(ops, one.id, GivenAnswer(text="600"), named)
        return pause_planning(ops, run, owner)

    script(desk, [INTERVIEW, author("pm", planned("R1", "R2", "R3"))])
    monkeypatch.setattr("mimir.orchestrator.plan_creation.pause_planning", answer_first)

    # Its first stop is the approval
    assert desk.type("chain", REQUEST, "--pattern", "ask").code == 75
    assert answer(desk, "yes").code == 0
    facts = planning(desk)
    assert (repeated_calls(facts), len(facts.events_of_kind(EventKind.RUN_PAUSED))) == ([], 1)
    assert "equal bytes" in desk.type("replay", facts.run).out


def test_the_interviewer_asks_in_three_rounds_of_three_questions(desk: Desk):
    fields = {name: {"type": "string"} for name in "abcd"}
    wide = calls("ask_user", title="?", text="?", schema={"type": "object", "properties": fields})
    late = calls("ask_user", title="?", text="?", default="x", blocking=False)
    rounds = [{"calls": [wide]}, {"calls": [late]}, *[{"calls": [ASKED]}] * 2, "## Goal\n600."]
    script(desk, [author("interviewer", *rounds), author("pm", planned("R1"))])

    desk.type("chain", REQUEST, "--pattern", "ask")
    answer(desk, "600")

    # The fourth call was refused, so the summary follows the first answer
    (stop,) = desk.type("inbox", "--json").json["questions"]
    assert stop["kind"] == "approval"
    told = str(planning(desk).nodes["Call"])
    assert "it has 4 fields; 3 are the maximum" in told
    assert "every question waits" in told
    assert "(3 calls) is used up" in told


def test_a_definition_of_the_user_replaces_the_shipped_one(desk: Desk, tmp_path: Path):
    home = tmp_path / "home"
    own = home / ".agents/skills/sdd/agents/interviewer/SKILL.md"
    own.parent.mkdir(parents=True)
    keys = "name: interviewer\ndescription: Mine.\nmodel: wise\nallowed-tools: Read Bash\n"
    own.write_text(f"---\n{keys}---\nAsk about the zebra.\n")
    settings = home / "mimir.toml"
    settings.write_text(f'[agents.models]\nwise = "play:{tmp_path}/wise.yaml"\n')
    desk.environ(HOME=home, MIMIR_CONFIG=settings)
    interview = author("interviewer", {"calls": [calls("list_files")]}, "## Goal\nA limiter.")
    (tmp_path / "wise.yaml").write_text(yaml.safe_dump({"parts": [interview]}))
    script(desk, [author("pm", planned("R1"))])

    desk.type("chain", REQUEST, "--pattern", "ask")
    own.unlink()
    assert answer(desk, "yes").code == 0

    nodes = planning(desk).nodes
    (steps,) = [one for one in nodes["Artifact"] if one["kind"] == "steps"]
    assert "Ask about the zebra." in steps["text"]
    # Only its own model plays the interviewer; of the tools of a step it has those that it names.
    refused = next(one for one in nodes["Call"] if one["tool"] == "list_files")
    assert "may not use" in refused["valueJson"]
