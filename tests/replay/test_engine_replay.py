"""A run is decided again from its record alone: the same bytes, nothing executed, and a change is named by its place."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mimir.domain.plan import Plan
from mimir.domain.task_states import RunStatus
from mimir.errors import PlanError
from mimir.llm.scripted.scripted_model import ScriptedModel
from mimir.qc.checks.check_execution import CheckExecution
from mimir.recordings.engine_replay.simulation import ACTOR, Simulation
from mimir.workspace.git.history import GitHistory
from mimir.workspace.sandbox.sandbox import Sandbox
from tests.support.recorded_runs import bytes_of, edited, lines, record, replayed, write
from tests.support.whole_run import (
    FAIL,
    Curtain,
    Part,
    calls,
    holds,
    plan,
    qc,
    start,
    step,
    worker,
    writes,
    wrote,
)

SHARED = {"checks": (holds("shared.txt", "."),)}
"""Of two tasks that write the same file."""


def eventful() -> tuple[Plan, list[Part]]:
    """Return a plan whose run has a retry, a breaker's trip, a clash on the line, a failed task and a blocked one."""
    made = plan(
        step("look", estimated_tool_calls=9),
        step("twice", "look", max_retries=1),
        step("one", **SHARED),
        step("other", **SHARED),
        step("bad"),
        step("never", "bad"),
    )
    same = {"calls": [calls("read_file", path="README.md")], "repeat": 3}
    parts = [
        worker("look", writes("look.txt", "look\n"), same, "look.txt is written."),
        worker("twice", writes("twice.txt", "wrong\n"), "Done.", attempt=1),
        wrote("twice", attempt=2),
        worker("one", writes("shared.txt", "one\n"), "One is written."),
        worker("other", writes("shared.txt", "other\n"), "Other is written.", attempt=1),
        worker("other", writes("shared.txt", "one\nother\n"), "Both are there.", attempt=2),
        worker("bad", writes("bad.txt", "no\n"), "It cannot be done."),
        qc("bad", FAIL),
    ]
    return made, parts


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return start(tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def tape(project: Path) -> Path:
    made, parts = eventful()
    file = project.parent / "run.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        Curtain(patch).hold("other", until="one")
        ending = asyncio.run(record(project, made, parts, file, workers=4))
    assert ending.outcome is RunStatus.FAILED
    return file


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no socket be opened, no command be run and no tree be written."""

    def refuse(*_: object, **__: object) -> object:
        raise AssertionError("a replay executes nothing")

    for place, name in (
        (socket.socket, "connect"),
        (Sandbox, "run"),
        (CheckExecution, "run"),
        (GitHistory, "fill"),
        (GitHistory, "checkout"),
        (GitHistory, "snapshot"),
    ):
        monkeypatch.setattr(place, name, refuse)
    return iter(())


@pytest.mark.usefixtures("nothing_runs")
async def test_replay_in_any_order_of_completion_gives_the_same_bytes(
    project: Path, tape: Path
) -> None:
    once = await replayed(project, str(tape))
    assert once.differences == ()
    assert once.status == "failed"
    assert (once.verdicts, once.calls) > (5, 20)
    for seed in range(3):
        assert bytes_of(await replayed(project, str(tape), seed=seed)) == bytes_of(once)


@pytest.mark.usefixtures("nothing_runs")
async def test_attempt_starts_once_when_its_turn_comes_during_a_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins with its own turn, at once; to be let start after that would let a later step out of turn."""
    b_spoke, a_spoke, ask = asyncio.Event(), asyncio.Event(), ScriptedModel.ask

    async def in_turns(model: ScriptedModel, request: object) -> object:
        who = model._lane.split("/")[1]
        if who == "a":
            await b_spoke.wait()
        elif who == "b" and b_spoke.is_set():
            await a_spoke.wait()
        said = await ask(model, request)  # type: ignore[arg-type]
        {"a": a_spoke, "b": b_spoke}.get(who, asyncio.Event()).set()
        return said

    monkeypatch.setattr(ScriptedModel, "ask", in_turns)
    tasks = plan(step("a", checks=(), files=()), step("b", checks=(), files=()))
    look = {"calls": [calls("read_file", path="README.md")]}
    project, file = start(tmp_path), tmp_path / "run.jsonl"
    await record(project, tasks, [worker("*", look, "It says so.")], file, workers=2)
    read = Simulation.read

    async def looking_long(stage: Simulation, work: object, /, **how: object) -> object:
        found = await read(stage, work, **how)  # type: ignore[arg-type]
        for _ in range(5000 if ACTOR.get() is None else 0):
            if stage._owner() in (None, *stage._waiting):
                break  # whose turn it is waits to be let go on
            await asyncio.sleep(0)
        return found

    monkeypatch.setattr(Simulation, "read", looking_long)
    assert (await replayed(project, str(file))).differences == ()


@pytest.mark.usefixtures("nothing_runs")
async def test_replay_of_the_run_itself_is_that_of_its_recording(project: Path, tape: Path) -> None:
    by_store = await replayed(project, "")
    assert by_store.differences == ()
    assert bytes_of(by_store) == bytes_of(await replayed(project, str(tape)))
    report = next((project / "chains").rglob("execution-report.md"))
    assert by_store.report == report.read_text(encoding="utf-8")


async def test_recording_has_retries_a_trip_a_failure_and_a_passed_gate(tape: Path) -> None:
    events = [line for line in lines(tape) if line.get("kind") == "event"]
    kinds = [line["event"] for line in events]
    reasons = {line["data"]["reason"] for line in events if line["event"] == "TaskRetried"}
    assert reasons == {"check_failed", "integration"}
    assert {"BreakerTripped", "TaskFailed", "TaskBlocked", "GatePassed"} <= set(kinds)


async def test_edited_answer_is_named_by_transcript_call_and_difference(
    project: Path, tape: Path
) -> None:
    def change(answer: dict[str, object]) -> None:
        message = answer["message"]
        assert isinstance(message, dict)
        message["text"] = "Let me see."

    other = edited(tape, "look/1/worker", change)
    found = (await replayed(project, str(other))).differences
    assert "look/1/worker, call 0" in found[0].where
    first = next(d for d in found if "message" in d.detail)
    assert first.where == "lane look/1/worker, call 2"
    assert first.detail == "message 3 (assistant), characters 1–11: recorded '', now 'Let me see.'"


async def test_answer_edited_with_its_hash_is_found_by_its_transcript(
    project: Path, tape: Path
) -> None:
    content = lines(tape)
    call = next(
        c for c in content if c.get("kind") == "call" and str(c["lane"]).endswith("bad/1/worker")
    )
    call["answer"] = {**call["answer"], "usage": {"input": 1, "output": 1}}
    call["usage"] = [1, 1]
    found = await replayed(project, str(write(tape.with_name("s.jsonl"), content, stamp=True)))
    assert found.differences[0].where == "lane bad/1/worker, call 0"


async def test_changed_verdict_makes_the_replay_differ(project: Path, tape: Path) -> None:
    def change(answer: dict[str, object]) -> None:
        message = answer["message"]
        assert isinstance(message, dict)
        message["text"] = str(message["text"]).replace("PASS", "FAIL")

    other = edited(tape, "one/1/qc", change)
    found = (await replayed(project, str(other))).differences
    assert any("one/1/qc, call 0" in d.where for d in found)
    assert any("this question was not recorded" in d.detail for d in found)


async def test_run_without_its_beginning_cannot_be_replayed(project: Path, tape: Path) -> None:
    content = [line for line in lines(tape) if line.get("seq") != 1 or line["kind"] != "event"]
    with pytest.raises(PlanError, match="its beginning is missing"):
        await replayed(project, str(write(tape.with_name("b.jsonl"), content)))
