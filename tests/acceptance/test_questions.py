"""Questions of workers: the run continues without the task that asks, and the answer continues its conversation."""

import contextlib
import json
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from mimir.domain.event import EventKind
from mimir.planning.renderer import render
from tests.support import invariants
from tests.support.cli_runner import Desk, Said
from tests.support.crash.process_forge import PythonProcess, run_python
from tests.support.run_facts import Facts, load
from tests.support.terminal import Terminal, environment
from tests.support.whole_run import REST, Part, Turn, calls, plan, step, worker, writes, wrote

TOOLS = ("read_file", "write_file", "ask_user")
ASKING = step("c", tools=TOOLS)
FOUR = plan(step("a"), step("b", "a"), ASKING, step("d"))
REGION = {"options": ["eu-west", "us-east"], "default": "eu-west"}


def question_turn(**more: Any) -> dict[str, object]:
    given: dict[str, Any] = {"title": "Which region?", "text": "Where is it deployed?", **more}
    return {"calls": [calls("read_file", path="README.md"), calls("ask_user", **given)]}


def asker(*turns: Turn) -> Part:
    """The worker of task c: it writes a note, asks, and writes the user's choice."""
    chosen = [
        {"when": {"last_has": answer}, **writes("c.txt", f"c\n{answer}\n")}
        for answer in ("us-east", "eu-west", "not asked")
    ]
    return worker("c", writes("note.txt", "before\n"), *turns, {"choose": chosen}, "Done.")


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.write("plan.md", render(plan(ASKING)))
    desk.write("README.md", "# A project\n")
    desk.environ(MIMIR_MODEL="play:../script.yaml", MIMIR_CHECKS__CONTROLS="never")
    return desk


def execute(desk: Desk, *turns: Turn, more: Sequence[str] = (), **settings: object) -> Said:
    parts = [wrote("a"), wrote("b"), wrote("d"), asker(*turns)]
    script = yaml.safe_dump({"parts": [*parts, *REST]})
    (desk.project.parent / "script.yaml").write_text(script, encoding="utf-8")
    desk.environ(**{f"MIMIR_{name}": value for name, value in settings.items()})
    return desk.type("execute", "plan.md", "--yes", "--apply", "never", *more)


def mimir_elsewhere(desk: Desk, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run `mimir` as a process of its own."""
    command = [sys.executable, "-m", "mimir", *words]
    return run_python(command, cwd=desk.project, env=environment())


def inbox(desk: Desk, *words: str) -> list[dict[str, Any]]:
    return desk.type("inbox", "--json", *words).json["questions"]


def facts_of(desk: Desk) -> Facts:
    return load(desk.project, desk.status()["run"])


def model_calls(facts: Facts) -> Counter[tuple[object, ...]]:
    return Counter(
        (e.task, e.attempt, e.data["role"], e.data["seq"])
        for e in facts.events_of_kind(EventKind.MODEL_CALLED)
        if e.task
    )


def test_the_answer_from_another_process_continues_the_conversation(desk: Desk):
    # Given a run whose third task asks
    desk.write("plan.md", render(FOUR))
    first = execute(desk, question_turn(**REGION))
    (question,) = inbox(desk)
    paused = desk.status()

    # Then the others are completed, and the run names question and command
    assert first.code == 75
    assert f"1 question is open ({question['id']}); 3 of 4 tasks are done." in first.out
    assert "mimir inbox" in first.out.splitlines()[-1]
    assert paused["reason"] == "input"
    assert desk.statuses() == {
        "a": "completed", "b": "completed", "c": "worker_executing", "d": "completed",
    }  # fmt: skip
    assert [task.get("question") for task in paused["tasks"]] == [None, None, question["id"], None]
    assert question["waiting_tasks"] == ["c"]
    ledger = desk.project / ".mimir/LEDGER.md"
    assert f"executor → needs_input {question['id']}\n" in ledger.read_text()
    assert f"- open: {question['id']} of c; mimir answer {question['id']}\n" in ledger.read_text()
    assert desk.type("runs", "--json").json["runs"][0]["open_questions"] == 1
    work = desk.project / ".mimir" / "work" / paused["run"]
    assert not [path for path in work.glob("c/*") if path.is_dir()], "it has no workspace"
    before = model_calls(facts_of(desk))

    # When a resume finds no answer, nothing is asked of a model
    assert desk.type("resume").code == 75
    assert model_calls(facts_of(desk)) == before

    # When another process answers, and the run is resumed
    answered = mimir_elsewhere(desk, "answer", question["id"][:6], "us-east")
    assert (answered.returncode, answered.stderr) == (0, "")
    assert f"next: mimir resume {paused['run']}" in answered.stdout
    assert "Every question is answered" in desk.status()["message"]
    last = desk.type("resume")

    # Then it ends, with the answer in the conversation and no call repeated
    assert last.code == 0, last.out
    facts = facts_of(desk)
    assert facts.files["c.txt"] == "c\nus-east\n"
    assert facts.files["note.txt"] == "before\n"
    assert set(model_calls(facts).values()) == {1}
    assert len(facts.attempts("c")) == 1
    assert [e.data["state"] for e in facts.events_of_kind(EventKind.QUESTION_CLOSED)] == [
        "answered"
    ]
    assert invariants.broken(facts) == []
    assert f"- Which region?: us-east ({question['id']}, user)\n" in ledger.read_text()
    assert desk.type("verify").code == 0
    assert "equal bytes" in desk.type("replay").out
    shown = desk.type("report", "--json").json["questions"]
    assert [(one["answer"], one["by"], one["transport"]) for one in shown] == [
        ("us-east", "user", "terminal")
    ]

    # And an answer that is changed in the store afterwards is found
    with contextlib.closing(sqlite3.connect(desk.project / ".mimir/mimir.db")) as store, store:
        store.execute(
            "UPDATE nodes SET props = replace(props, 'us-east', 'eu-west') WHERE label = 'Question'"
        )
    assert f"{question['id']}: this node was changed" in desk.type("verify").out


def test_the_first_answer_counts_and_a_later_one_learns_it(desk: Desk):
    execute(desk, question_turn(**REGION))
    (question,) = inbox(desk)
    id = question["id"]

    wrong = desk.type("answer", id, "mars")
    unknown = desk.type("answer", "q-zz", "eu-west")
    nothing = desk.type("answer", id)
    control = desk.type("answer", id, "eu\x1b[31m-west")
    huge = desk.type("answer", id, "x" * 1_000_000)

    for refused in (wrong, unknown, nothing, control, huge):
        assert refused.code == 2
        assert refused.error[-1].startswith("next: ")
        assert len(refused.err) < 1000
    assert "one of eu-west, us-east" in wrong.err
    assert [one["state"] for one in inbox(desk)] == ["open"]

    task = f"{question['run']}/c"
    assert desk.type("answer", task, "US-EAST").code == 0
    late = desk.type("answer", id, "eu-west")
    assert late.code == 1
    assert "was answered at" in late.err
    assert 'by user (terminal): "us-east". Nothing changed.' in late.err
    assert inbox(desk) == []
    assert inbox(desk, "--all")[0]["answer"] == {"answer": "us-east"}


def test_the_inbox_and_the_shell_know_the_open_questions(desk: Desk):
    execute(desk, question_turn(**REGION))
    (question,) = inbox(desk)
    id = question["id"]

    assert mimir_elsewhere(desk, "__complete", "answer", "").stdout == f"{id}\tWhich region?\n"
    assert mimir_elsewhere(desk, "__complete", "answer", id, "us").stdout == "us-east\n"
    command = [sys.executable, "-m", "mimir", "inbox", "--watch"]
    with PythonProcess(
        command, cwd=desk.project, env=environment(), stdout=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        assert any(
            line == f"  answer: mimir answer {id} eu-west|us-east\n" for line in watching.stdout
        )
        assert desk.type("answer", id, "us-east").code == 0
        assert any("by user (terminal): us-east" in line for line in watching.stdout)
        watching.terminate()
    assert mimir_elsewhere(desk, "__complete", "answer", "").stdout == ""


def test_a_file_answers_several_questions_and_each_refused_one_is_reported(desk: Desk):
    fields = {"count": {"type": "integer"}, "go": {"type": "boolean"}}
    execute(desk, question_turn(schema={"type": "object", "properties": fields}))
    (question,) = inbox(desk)
    assert "  count: count (a number)\n  go: go (yes or no)\n" in desk.type("inbox").out
    desk.write("bad.yaml", f"{question['id']}: {{count: many, go: yes}}\nq-none: 3\n")
    desk.write("good.yaml", f"{question['id']}: {{count: 3, go: yes}}\n")
    desk.write("broken.yaml", f"{question['id']}: a\n{question['id']}: b\n")

    broken = desk.type("answer", "--file", "broken.yaml")
    bad = desk.type("answer", "--file", "bad.yaml", "--json")
    good = desk.type("answer", "--file", "good.yaml", "--json")

    assert (broken.code, bad.code, good.code) == (65, 2, 0)
    assert "broken.yaml:2:1" in broken.err
    assert [one["id"] for one in bad.json["refused"]] == [question["id"], "q-none"]
    assert "must be a number" in bad.json["refused"][0]["problem"]
    assert good.json["answered"][0]["answer"] == json.dumps({"count": 3, "go": True})


def test_a_question_that_does_not_wait_uses_its_default(desk: Desk):
    result = execute(desk, question_turn(**REGION, blocking=False))

    assert result.code == 0, result.out
    facts = facts_of(desk)
    assert facts.files["c.txt"] == "c\neu-west\n"
    assert [one["state"] for one in inbox(desk, "--all")] == ["withdrawn"]
    assert desk.type("verify").code == 0
    assert "equal bytes" in desk.type("replay").out


def test_an_answer_that_differs_from_the_assumption_is_a_fix_of_the_next_attempt(desk: Desk):
    # Given work that has assumed the default, before the model's last words
    slow = {"text": "Done.", "delay_seconds": 600}
    first = worker(
        "c",
        question_turn(**REGION, blocking=False),
        writes("c.txt", "c\neu-west\n"),
        slow,
        attempt=1,
    )
    second = worker(
        "c",
        {"when": {"brief_has": "us-east"}, **writes("c.txt", "c\nus-east\n")},
        "Done.",
        attempt=2,
    )
    file = desk.project.parent / "script.yaml"
    file.write_text(yaml.safe_dump({"parts": [first, second, *REST]}), encoding="utf-8")
    command = [sys.executable, "-m", "mimir", "execute", "plan.md", "--yes"]
    with PythonProcess(
        command, cwd=desk.project, env=environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert any("write_file c.txt" in line for line in process.stdout)
        # When the user answers otherwise while the work goes on
        answered = desk.type("answer", inbox(desk)[0]["id"], "us-east")
        process.terminate()
    file.write_text(file.read_text().replace("delay_seconds: 600", "delay_seconds: 0"))
    last = desk.type("resume")

    # Then its attempt is not accepted, and the next one has the answer; none is used up
    assert (answered.code, last.code) == (0, 0), last.out
    assert "is tried again with your answer" in answered.err
    facts = facts_of(desk)
    assert facts.files["c.txt"] == "c\nus-east\n"
    assert [e.data["reason"] for e in facts.events_of_kind(EventKind.TASK_RETRIED)] == ["rejected"]
    assert invariants.broken(facts) == []
    assert desk.type("verify").code == 0
    assert "equal bytes" in desk.type("replay").out


def test_the_state_triangle_shows_answers_defaults_and_noted_assumptions(desk: Desk):
    note = calls("note_assumption", text="Ports are fixed", because="the README says so")
    execute(desk, {"calls": [note]}, question_turn(**REGION))
    assert desk.type("answer", inbox(desk)[0]["id"], "us-east").code == 0
    assert desk.type("resume").code == 0

    triangle = desk.status()["triangle"]
    id = inbox(desk, "--all")[0]["id"]
    assert triangle["direction"] == ["Request: Do it.", f"Answer to {id}: us-east"]
    assert triangle["assumptions"] == ["c: Ports are fixed (because the README says so)"]
    assert triangle["decisions"][1:] == [f"Which region?: us-east ({id}, user)"]
    report = desk.type("report", "--json").json
    assert report["triangle"] == triangle
    assert "  - c: Ports are fixed (because the README says so)" in desk.type("report").out
    ledger = (desk.project / ".mimir/LEDGER.md").read_text()
    assert "- c: Ports are fixed (because the README says so)\n" in ledger
    assert desk.type("verify").code == 0
    assert "equal bytes" in desk.type("replay").out


def test_a_late_answer_to_a_task_that_has_ended_is_a_warning_of_the_report(desk: Desk):
    # Given a task that was completed with its assumption, while another one takes long
    desk.write("plan.md", render(plan(ASKING, step("d"))))
    slow = worker("d", {**writes("d.txt", "d\n"), "delay_seconds": 600}, "Done.")
    parts = [asker(question_turn(**REGION, blocking=False)), slow, *REST]
    file = desk.project.parent / "script.yaml"
    file.write_text(yaml.safe_dump({"parts": parts}), encoding="utf-8")
    command = [sys.executable, "-m", "mimir", "execute", "plan.md", "--yes"]
    with PythonProcess(
        command, cwd=desk.project, env=environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert any("c/1           TaskCompleted" in line for line in process.stdout)
        answered = desk.type("answer", inbox(desk)[0]["id"], "us-east")
        process.terminate()
    file.write_text(file.read_text().replace("delay_seconds: 600", "delay_seconds: 0"))

    # Then nothing is changed, and the user reads it at once and in the report
    assert desk.type("resume").code == 0
    assert "Its task has ended and assumed otherwise" in answered.err
    assert facts_of(desk).files["c.txt"] == "c\neu-west\n"
    (warning,) = [w for w in desk.type("report", "--json").json["warnings"] if "c had ended" in w]
    assert warning.endswith("(Which region?): us-east. It assumed eu-west.")
    assert desk.type("verify").code == 0
    assert "equal bytes" in desk.type("replay").out


def test_a_limit_of_open_questions_is_a_result_for_the_model(desk: Desk):
    result = execute(desk, question_turn(**REGION), QUESTIONS__MAX_OPEN_PER_RUN=0)

    assert result.code == 0, result.out
    assert facts_of(desk).files["c.txt"] == "c\nnot asked\n"
    assert inbox(desk, "--all") == []


def test_a_question_without_an_answer_takes_its_default_when_it_expires(desk: Desk):
    result = execute(desk, question_turn(**REGION), QUESTIONS__EXPIRE_DAYS="0.000000001")

    assert result.code == 0, result.out
    assert facts_of(desk).files["c.txt"] == "c\neu-west\n"
    assert [one["state"] for one in inbox(desk, "--all")] == ["expired"]
    assert "equal bytes" in desk.type("replay").out


def test_a_task_without_an_answer_and_without_a_default_leaves_its_run_with_gaps(desk: Desk):
    script = yaml.safe_dump(
        {"parts": [asker(question_turn(options=["eu-west", "us-east"])), *REST]}
    )
    script = script.replace("not asked", "No answer came in time")
    (desk.project.parent / "script.yaml").write_text(script, encoding="utf-8")
    desk.environ(MIMIR_QUESTIONS__EXPIRE_DAYS="0.000000001")

    result = desk.type("execute", "plan.md", "--yes", "--apply", "never")

    assert result.code == 1, result.out
    (question,) = inbox(desk, "--all")
    assert (question["state"], question["answer"]) == ("expired", None)
    missing = f"c has no answer to {question['id']} (Which region?)."
    assert missing in result.out
    assert desk.status()["status"] == "completed_with_gaps"
    assert desk.type("report", "--json").json["because"].startswith(missing)
    assert desk.type("verify").code == 0
    assert "equal bytes" in desk.type("replay").out


def test_a_cancelled_run_withdraws_its_questions(desk: Desk):
    execute(desk, question_turn(**REGION))
    (question,) = inbox(desk)

    assert desk.type("cancel", question["run"]).code == 0

    late = desk.type("answer", question["id"], "us-east")
    assert late.code == 1
    assert "was withdrawn" in late.err
    assert inbox(desk) == []
    assert desk.type("verify").code == 0
    assert "equal bytes" in desk.type("replay").out


def test_a_run_that_is_served_continues_after_the_answer_by_itself(desk: Desk):
    # Given a process with a task that takes long, and one that asks
    desk.write("plan.md", render(plan(ASKING, step("d"))))
    slow = worker("d", {**writes("d.txt", "d\n"), "delay_seconds": 600})
    script = yaml.safe_dump({"parts": [asker(question_turn(**REGION)), slow, *REST]})
    (desk.project.parent / "script.yaml").write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "mimir", "execute", "plan.md", "--yes"]
    process = PythonProcess(
        command, cwd=desk.project, env=environment(), stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert any("QuestionAsked" in line for line in process.stdout)

        answered = desk.type("answer", inbox(desk)[0]["id"], "us-east")
        continued = any("c/1           TaskCompleted" in line for line in process.stdout)
        process.terminate()

    assert (answered.code, answered.out.count("next:")) == (0, 0)
    assert continued
    assert desk.statuses()["c"] == "completed"


def test_replayed_models_get_the_recorded_answer(desk: Desk):
    execute(desk, question_turn(**REGION), more=("--record", "run.jsonl"))
    desk.type("answer", inbox(desk)[0]["id"], "us-east")
    assert desk.type("resume", "--record", "run.jsonl").code == 0

    again = desk.type("execute", "plan.md", "--yes", "--replay", "run.jsonl", "--strict")

    assert again.code == 0, again.out
    assert facts_of(desk).files["c.txt"] == "c\nus-east\n"
    assert [one["transport"] for one in inbox(desk, "--all")] == ["terminal", "recording"]


def test_question_is_answered_on_a_terminal_and_the_run_continues(desk: Desk):
    script = yaml.safe_dump({"parts": [asker(question_turn(**REGION)), *REST]})
    (desk.project.parent / "script.yaml").write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "mimir", "execute", "plan.md", "--yes"]

    terminal = Terminal(command, desk.project, columns=100, env=environment())
    terminal.until("one of eu-west, us-east; empty: later):")
    terminal.type("mars\n")
    terminal.until("must be one of eu-west, us-east")
    terminal.type("us-east\n")

    assert terminal.end() == 0, terminal.written
    assert [one["transport"] for one in inbox(desk, "--all")] == ["prompt"]
    assert set(model_calls(facts_of(desk)).values()) == {1}


def test_question_under_the_live_output_is_answered_while_other_tasks_run(desk: Desk):
    # Given a task that takes long, and one that asks
    desk.write("plan.md", render(plan(ASKING, step("d"))))
    slow = worker("d", {**writes("d.txt", "d\n"), "delay_seconds": 600})
    script = yaml.safe_dump({"parts": [asker(question_turn(**REGION)), slow, *REST]})
    (desk.project.parent / "script.yaml").write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "mimir", "execute", "plan.md", "--yes"]
    terminal = Terminal(command, desk.project, env=environment())

    # When the user types there: a wrong word, and one with a correction
    terminal.until("Your answer (one of eu-west, us-east; empty: later): _")
    terminal.type("mars\n")
    terminal.until("was not taken")
    terminal.type("us-eastt\x7f\x1b[A")
    terminal.until("later): us-east_")
    terminal.type("\n")

    # Then the task continues, and is completed beside the other one
    terminal.until("completed")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130, terminal.written
    assert desk.statuses() == {"c": "completed", "d": "worker_executing"}
    assert [one["transport"] for one in inbox(desk, "--all")] == ["prompt"]
