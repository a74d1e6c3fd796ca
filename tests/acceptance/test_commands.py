"""Commands with a model behind HTTP in an empty directory: effects, messages, files and exit codes."""

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from mimir.domain.plan import Check, Criterion, Plan
from mimir.planning.renderer import render
from tests.support.cli_runner import Desk, asked_twice
from tests.support.script_server import PlayServer
from tests.support.whole_run import FAIL, REST, Part, plan, qc, step, wrote

REQUEST = "Write three small files"
CHAIN = "chains/write-three-small-files"
STORE = {".mimir/.gitignore", ".mimir/mimir.db", ".mimir/project"}
THREE = plan(step("a"), step("b", "a"), step("c", "a"), title="Three small files")
CRITERIA = {"executed", "judged", "unverified", "failed"}


def scripted_part(role: str, text: str) -> Part:
    return {"role": role, "turns": [{"text": text, "repeat": "forever"}]}


def play(*parts: Part, proposed: Plan = THREE) -> dict[str, object]:
    done = [wrote(task.id) for task in proposed.tasks]
    return {"parts": [*parts, scripted_part("pm", render(proposed)), *done, *REST]}


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Desk:
    return Desk(tmp_path / "empty", monkeypatch, capsys)


@pytest.fixture
def server() -> Iterator[PlayServer]:
    with PlayServer(play()) as server:
        yield server


def given(desk: Desk, made: Plan = THREE) -> str:
    desk.write("plan.md", render(made))
    return "plan.md"


def is_json(value: object, shape: object) -> bool:
    """Return whether a JSON value has this shape: a type, one of several, a list's item type, or an object's members."""
    match shape:
        case dict():
            return isinstance(value, dict) and all(
                name in value and is_json(value[name], one) for name, one in shape.items()
            )
        case [one]:
            return isinstance(value, list) and all(is_json(item, one) for item in value)
        case tuple():
            return any(is_json(value, one) for one in shape)
        case type():
            return type(value) is shape
        case _:
            return value == shape


CHECK = {
    "schema": 1,
    "tasks": [
        {
            "id": str,
            "title": str,
            "prompt": str,
            "dependencies": [str],
            "worker_role": str,
            "qc_role": str,
            "criteria": [{"id": str, "text": str, "critical": bool}],
            "checks": [{"id": str, "criteria": [str], "run": ([str], str), "required": bool}],
            "estimated_tool_calls": (int, None),
            "max_retries": int,
        }
    ],
    "findings": [
        {
            "code": str,
            "severity": ("error", "warning"),
            "line": int,
            "column": int,
            "message": str,
            "suggestion": str,
        }
    ],
}
STATUS = {
    "schema": 1,
    "run": str,
    "status": str,
    "outcome": (str, None),
    "apply": ("auto", "never", "commit"),
    "tasks": [
        {
            "id": str,
            "status": str,
            "attempts": int,
            "score": (float, None),
            "criteria": dict.fromkeys(CRITERIA, int),
            "tool_calls": int,
            "limit": int,
        }
    ],
}
EVENT = {"schema": 1, "seq": int, "event": str, "run": str, "task": str, "attempt": int}


def test_request_leads_to_plan_result_report_and_evidence(desk: Desk, server: PlayServer):
    desk.ask(server)

    chained = desk.type("chain", REQUEST)
    assert (chained.code, chained.error) == (0, [])
    assert f"next: mimir execute {CHAIN}" in chained.out
    assert desk.files() == {*STORE, f"{CHAIN}/chain-output.md"}

    checked = desk.type("check")
    assert checked.code == 0
    assert "can run: 3 tasks" in checked.out

    executed = desk.type("execute", "--yes")
    assert executed.code == 0, executed.out + executed.err
    assert "3 of 3 tasks completed" in executed.out
    assert "RunFinished: completed" in executed.out
    assert desk.files() == {
        *STORE,
        ".mimir/LEDGER.md",
        ".mimir/ledger-written.md",
        ".mimir/generated-preambles",
        f"{CHAIN}/chain-output.md",
        f"{CHAIN}/execution-report.md",
        *(f"{CHAIN}/deliverables/{task}.md" for task in "abc"),
        *(f"{task}.txt" for task in "abc"),
        *(path for path in desk.files() if path.startswith("generated-agents/")),
    }
    agents = sorted(path.name for path in (desk.project / "generated-agents").iterdir())
    assert [name.split("-")[0] for name in agents] == ["qc", "worker"]
    assert (desk.project / "b.txt").read_text(encoding="utf-8") == "b\n"

    status = desk.type("status")
    assert status.code == 0
    assert "completed" in status.out.splitlines()[0]
    reported = desk.type("report")
    assert reported.code == 0
    text = (desk.project / CHAIN / "execution-report.md").read_text(encoding="utf-8")
    assert reported.out == text
    verified = desk.type("verify")
    assert verified.code == 0
    seal = desk.status()["seal"]
    assert f"seal: {seal}" in verified.out
    assert desk.type("verify", "--seal", seal).code == 0
    assert desk.type("verify", "--seal", "0" * 64).code == 1
    assert desk.type("report", "--json").json["schema"] == 1


def test_request_is_planned_and_executed_in_one_command_with_json_events(
    desk: Desk, tmp_path: Path
):
    specified = scripted_part("ecko", "Goal: three files, each with its own name in it.")
    with PlayServer(play(specified)) as server:
        executed = desk.ask(server).type(
            "execute", "Write three small files", "--ecko", "--yes", "--json"
        )

        assert executed.code == 0, executed.err
        assert len(server.of("ecko")) == 1
        [asked] = server.of("pm")
        assert "each with its own name in it" in json.dumps(asked.body)
    events = executed.events
    assert all(is_json(event, EVENT) for event in events)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert len({event["run"] for event in events}) == 1
    assert (events[-1]["event"], events[-1]["outcome"]) == ("RunFinished", "completed")
    status = desk.type("status", "--json").json
    assert is_json(status, STATUS)
    assert status["outcome"] == "completed"
    assert [task["score"] for task in status["tasks"]] == [100.0] * 3
    checked = desk.type("check", "--json")
    assert checked.code == 0
    assert is_json(checked.json, CHECK)
    assert [task["id"] for task in checked.json["tasks"]] == ["a", "b", "c"]
    [run] = {event["run"] for event in events}
    assert desk.type("verify", run[:-2], "--json").json["ok"] is True


def test_an_unacceptable_plan_is_saved_with_its_findings_after_two_repairs(desk: Desk):
    broken = render(THREE).replace("**Dependencies:** a", "**Dependencies:** z", 1)
    with PlayServer({"parts": [scripted_part("pm", broken), *REST]}) as server:
        chained = desk.ask(server).type("chain", REQUEST)
        assert chained.code == 65
        assert len(server.of("pm")) == 3
    assert "dependency-unknown" in chained.out
    saved = (desk.project / CHAIN / "chain-output.md").read_text(encoding="utf-8")
    assert saved == broken
    checked = desk.type("check", "--json")
    assert checked.code == 65
    assert is_json(checked.json, CHECK)
    [error] = [one for one in checked.json["findings"] if one["severity"] == "error"]
    assert saved.splitlines()[error["line"] - 1].startswith("**Dependencies:** z")
    with PlayServer({"parts": [scripted_part("pm", broken), *REST]}) as server:
        executed = desk.ask(server).type("execute", "Write three more files", "--yes")
        assert executed.code == 65
        assert not server.of("worker")


GAPS = plan(
    step(
        "a",
        criteria=(
            Criterion(id="c1", text="a.txt is right", points=Fraction(60)),
            Criterion(id="c2", text="it reads well", points=Fraction(40)),
        ),
    ),
    title="With a gap",
)
QUOTE = {"state": "passed", "quote": "this stands in no record", "source": "check:unit"}
INVENTED = {"verdict": {"auto": "pass", "criteria": [{"id": id, **QUOTE} for id in ("c1", "c2")]}}


@pytest.mark.parametrize(
    ("made", "judged", "outcome"),
    [
        (GAPS, INVENTED, "completed_with_gaps"),
        (plan(step("a"), step("b", "a"), title="Failing"), FAIL, "failed"),
    ],
)
def test_partly_proven_result_exits_with_1_and_is_not_applied(
    made: Plan, judged: dict[str, object], outcome: str, desk: Desk
):
    part = qc("a", {**judged, "repeat": "forever"})
    with PlayServer(play(part, proposed=made)) as server:
        executed = desk.ask(server).type("execute", given(desk, made), "--yes")
    assert executed.code == 1
    assert executed.out.splitlines()[-1].startswith("next: ")
    assert desk.status()["outcome"] == outcome
    assert f"RunFinished: {outcome}" in executed.out
    assert not (desk.project / "a.txt").exists()
    if outcome == "failed":
        assert desk.statuses() == {"a": "failed", "b": "blocked"}
    else:
        [task] = desk.status()["tasks"]
        assert task["criteria"] == {"executed": 1, "judged": 0, "unverified": 1, "failed": 0}


def test_a_part_is_run_and_a_later_run_takes_it_over(desk: Desk, server: PlayServer):
    name = given(desk)
    first = desk.ask(server).type("execute", name, "--only", "b", "--yes", "--json")
    assert first.code == 0, first.err
    assert desk.statuses() == {"a": "completed", "b": "completed"}
    asked = len(server.of("worker"))

    second = desk.type("execute", name, "--from", first.events[0]["run"], "--yes", "--json")
    assert second.code == 0, second.err
    assert desk.statuses() == dict.fromkeys("abc", "completed")
    assert {s.caller.name.task for s in server.of("worker")[asked:]} == {"c"}
    assert (desk.project / "c.txt").read_text(encoding="utf-8") == "c\n"
    assert desk.type("verify").code == 0


def test_a_result_that_no_longer_passes_is_done_again_and_the_others_are_reused(desk: Desk):
    # Given four results, and then changes of the user: one check is red, and one cannot fail
    check = Check(id="own", criteria=("c1",), run="grep -qx b b.txt && grep -qx one base.txt")
    script = Check(id="script", criteria=("c1",), run="sh tests/d.sh", kind="flip")
    ends = (step("d", checks=(script,), max_retries=0), step("e", "b"))
    made = plan(step("a"), step("b", checks=(check,)), step("c"), *ends)
    sourced = '. ./d.txt\ntest "$(cat d.txt)" = d\n'
    desk.write("base.txt", "one\n")
    desk.write("tests/d.sh", f"d() {{ :; }}\n{sourced}")
    with PlayServer(play(proposed=made)) as server:
        name = given(desk, made)
        first = desk.ask(server).type("execute", name, "--yes", "--json", "--apply", "never")
        assert first.code == 0, first.err
        desk.write("base.txt", "two\n")
        desk.write("tests/d.sh", f"d() {{ exec true; }}\n{sourced}")
        asked = len(server.of("worker"))

        # When they are reused
        second = desk.type("execute", name, "--from", first.events[0]["run"], "--yes", "--json")

        # Then only these tasks and their dependents are done again
        assert second.code == 1, second.err
        assert {request.caller.name.task for request in server.of("worker")[asked:]} == {"b", "d"}
    assert desk.statuses() == {
        **dict.fromkeys("ac", "completed"), **dict.fromkeys("bd", "failed"), "e": "blocked",
    }  # fmt: skip
    assert desk.type("verify").code == 0


def test_a_used_up_budget_pauses_and_a_larger_one_finishes(desk: Desk, server: PlayServer):
    paused = desk.ask(server).type(
        "execute", given(desk), "--yes", "--apply", "never", "--max-calls", "5"
    )
    assert paused.code == 75
    assert "RunFinished: paused" in paused.out
    status = desk.status()
    assert (status["status"], status["reason"], status["apply"]) == ("paused", "budget", "never")
    assert len(server.requests) == 5
    assert set(desk.statuses().values()) <= {"pending", "completed", "worker_executing",
                                             "worker_completed", "qc_executing"}  # fmt: skip
    assert desk.type("resume").code == 75

    resumed = desk.type("resume", "--max-calls", "60")
    assert resumed.code == 0, resumed.out + resumed.err
    assert asked_twice(server) == []
    assert not (desk.project / "a.txt").exists(), "it was begun with --apply never"
    run = desk.status()["run"]

    applied = desk.type("apply", run, "--json")
    assert applied.code == 0
    assert applied.json == {
        "schema": 1,
        "run": run,
        "applied": ["a.txt", "b.txt", "c.txt"],
        "conflicts": [],
    }
    assert (desk.project / "a.txt").read_text(encoding="utf-8") == "a\n"
    assert desk.type("resume").code == 0, "it had ended already"


def test_a_time_limit_pauses_and_a_later_one_finishes(desk: Desk):
    slow = {"role": "worker", "task": "b", "turns": [{"text": "Late.", "delay_seconds": 30}]}
    two = plan(step("a"), step("b", "a"), title="Two")
    with PlayServer(play(slow, proposed=two)) as server:
        paused = desk.ask(server).type("execute", given(desk, two), "--yes", "--time-limit", "3s")
        assert paused.code == 75
        status = desk.status()
        assert (status["reason"], status["message"] != "") == ("time_limit", True)
        run = status["run"]
        assert "failed" not in desk.statuses().values()

        cancelled = desk.type("cancel", run, "--json")
        assert (cancelled.code, cancelled.json["outcome"]) == (0, "cancelled")
    assert desk.status()["outcome"] == "cancelled"
    assert set(desk.statuses().values()) <= {"completed", "cancelled"}
    assert desk.type("resume", run).code == 1
    again = desk.type("cancel", run)
    assert (again.code, len(again.error) <= 3) == (2, True)
    assert desk.type("report", run).code == 0


def test_file_that_the_user_changed_meanwhile_stops_apply(desk: Desk, server: PlayServer):
    executed = desk.ask(server).type("execute", given(desk), "--yes", "--apply", "never")
    assert executed.code == 0
    desk.write("b.txt", "mine\n")
    refused = desk.type("apply")
    assert refused.code == 1
    assert "b.txt" in refused.out
    assert (desk.project / "b.txt").read_text(encoding="utf-8") == "mine\n"
    assert not (desk.project / "a.txt").exists()
    (desk.project / "b.txt").unlink()
    assert desk.type("apply").code == 0
    assert (desk.project / "b.txt").read_text(encoding="utf-8") == "b\n"


def test_store_may_be_outside_the_project(desk: Desk, server: PlayServer, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere" / "runs.db"
    elsewhere.parent.mkdir()
    store: Sequence[str] = ("--store", str(elsewhere))
    executed = desk.ask(server).type("execute", given(desk), "--yes", *store)
    assert executed.code == 0, executed.err
    assert elsewhere.is_file()
    assert ".mimir/mimir.db" not in desk.files()
    assert desk.type("status", *store).code == 0
    assert desk.type("verify", *store).code == 0
    assert desk.type("status").code == 2


NEEDS_NO_KEY = (
    (),
    ("--help",),
    ("check",),
    ("status",),
    ("report",),
    ("verify",),
    ("apply",),
)


def test_commands_that_only_read_work_without_a_key(desk: Desk, server: PlayServer):
    assert desk.ask(server).type("execute", given(desk), "--yes", "--apply", "never").code == 0
    desk.write("chains/mine/chain-output.md", render(THREE))
    asked = len(server.requests)
    desk.unset("OPENAI_API_KEY", "OPENAI_BASE_URL")

    for words in NEEDS_NO_KEY:
        said = desk.type(*words)
        assert (said.code, said.error) == (0, said.error if words == ("report",) else []), words
    doctor = desk.type("doctor", "--json")
    assert doctor.code == 0
    [model] = [one for one in doctor.json["checks"] if one["what"] == "model"]
    assert (model["ok"], "OPENAI_API_KEY" in model["fix"]) == (False, True)
    for words in (("chain", REQUEST), ("execute", REQUEST, "--yes"), ("execute", "--yes")):
        said = desk.type(*words)
        assert said.code == 78
        assert said.out == ""
        assert 1 <= len(said.err.splitlines()) <= 3
        assert "OPENAI_API_KEY" in said.err
        assert "mimir demo" in said.err
    assert len(server.requests) == asked


def test_plan_request_without_a_key_creates_nothing(desk: Desk):
    said = desk.type("chain", REQUEST)
    assert (said.code, desk.files(work=True)) == (78, set())
    assert desk.type("status").code == 2
    assert desk.files(work=True) == set()
