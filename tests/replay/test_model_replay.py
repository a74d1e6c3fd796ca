"""`execute --replay`: a recording answers for the models, all other work is done again; misses and rests are reported."""

import asyncio
import socket
from pathlib import Path

import pytest

from mimir.agents.preambles.trust import OwnPreambles
from mimir.domain.message import Answer, ModelRequest
from mimir.domain.task_states import RunStatus
from mimir.errors import PlanError
from mimir.recordings.model_replay.recorded_models import RecordedModel
from mimir.recordings.model_replay.recorded_order import RecordedAttemptOrder
from tests.support import shipped_recording
from tests.support.projects import make_project
from tests.support.recorded_runs import again, lines, record, replayed, write
from tests.support.whole_run import (
    SHARED,
    Curtain,
    calls,
    edit,
    plan,
    sharer,
    start,
    step,
    worker,
    writes,
    wrote,
)

CLOCK = {"calls": [calls("run", argv=["python3", "-c", "import time; print(time.time_ns())"])]}
"""A tool with another result at each call."""


def trust(project: Path, preamble: Path) -> None:
    """Trust a changed preamble, as the user of these runs does."""
    own = OwnPreambles(
        project=project,
        user_directory=project.parent / ".config/mimir",
        state_directory=project / ".mimir",
    )
    own.trust(preamble.relative_to(project).as_posix())


@pytest.fixture(autouse=True)
def no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)


async def test_shipped_recording_is_used_completely_and_its_tasks_complete(tmp_path: Path) -> None:
    made, _ = shipped_recording.run()
    project = make_project(tmp_path / "project", shipped_recording.README)
    done = await again(project, made, shipped_recording.FILE)
    assert done.used.missed == (), shipped_recording.AGAIN
    assert done.used.left == (), shipped_recording.AGAIN
    assert done.ending.outcome is RunStatus.COMPLETED


async def test_shipped_recording_replays_to_its_own_bytes(tmp_path: Path) -> None:
    found = await replayed(tmp_path, str(shipped_recording.FILE))
    assert "\n".join(f"{d.where}: {d.detail}" for d in found.differences) == "", (
        shipped_recording.AGAIN
    )


async def test_changed_tool_result_is_drift_and_changed_preamble_is_a_miss(
    tmp_path: Path,
) -> None:
    made = plan(step("a"), step("b"))
    parts = [worker("a", writes("a.txt", "a\n"), CLOCK, "a.txt is written."), wrote("b")]
    project, file = start(tmp_path), tmp_path / "run.jsonl"
    assert (await record(project, made, parts, file)).outcome is RunStatus.COMPLETED

    done = await again(project, made, file, only=["a"])
    assert done.ending.outcome is RunStatus.COMPLETED
    drifted = {(d["lane"], d["part"]) for d in done.drifts}
    assert drifted - {("plan/1/pm_reporter", "message 2 (user)")} == {
        ("a/1/worker", "message 6 (run)")
    }
    assert done.used.missed == ()
    assert set(done.used.left) >= {"b/1/worker, call 0", "b/1/qc, call 0"}
    assert not done.used.whole

    for preamble in (project / "generated-agents").glob("worker-*.md"):
        preamble.write_text(preamble.read_text().replace("Work with care", "Work fast"))
        trust(project, preamble)
    missed = await again(project, made, file)
    assert (missed.ending.outcome, missed.ending.exit_code) == (RunStatus.PAUSED, 65)
    why = "/1/worker, call 0: its preamble changed, first difference in message 1 (system), characters"
    assert why in missed.used.missed[0]
    assert why in missed.ending.message


async def test_recording_of_another_plan_is_refused_with_the_difference(tmp_path: Path) -> None:
    project = start(tmp_path)
    made, _ = shipped_recording.run()
    for other, why in (
        (plan(step("first", prompt="Write it.")), "task 'first' has another prompt"),
        (plan(step("fourth")), "task 'fourth' is not in it ('A journey' was recorded)"),
        (plan(step("first")), "task 'second' of it is gone"),
    ):
        with pytest.raises(PlanError) as caught:
            await again(project, other, shipped_recording.FILE)
        assert why in str(caught.value)
        assert caught.value.exit_code == 65
    del made


def test_shipped_recording_holds_nothing_of_the_machine_it_was_made_on() -> None:
    text = shipped_recording.FILE.read_text(encoding="utf-8")
    assert "/tmp" not in text
    assert "/home" not in text
    assert "lockFile" not in text
    assert [line["recording"] for line in lines(shipped_recording.FILE) if "recording" in line] == [
        1
    ]


async def test_missing_call_is_a_miss(tmp_path: Path) -> None:
    made, _ = shipped_recording.run()
    content = [
        c
        for c in lines(shipped_recording.FILE)
        if not str(c.get("lane", "")).endswith("third/1/worker")
    ]
    file = write(tmp_path / "less.jsonl", content)
    done = await again(make_project(tmp_path / "project", shipped_recording.README), made, file)
    assert done.used.missed == ("Lane third/1/worker, call 0: it has no such transcript.",)
    assert done.ending.exit_code == 65


async def test_run_with_cached_preambles_is_repeated_without_a_cache(tmp_path: Path) -> None:
    made, parts = plan(step("a")), [wrote("a")]
    project, file = start(tmp_path), tmp_path / "run.jsonl"
    play = tmp_path / "the.play.yaml"
    await record(project, made, parts, tmp_path / "first.jsonl", play=play)
    await record(project, made, parts, file, play=play)
    assert not [one for one in lines(file) if str(one.get("lane", "")).endswith("/agentinator")]

    done = await again(start(tmp_path / "clone"), made, file)
    assert (done.used.missed, done.used.left) == ((), ())
    assert done.ending.outcome is RunStatus.COMPLETED

    # Local preambles count with any configured model: an edited one is reported.
    for preamble in (project / "generated-agents").glob("worker-*.md"):
        preamble.write_text(preamble.read_text().replace("Work with care", "Work fast"))
        trust(project, preamble)
    missed = await again(project, made, file)
    assert "its preamble changed" in missed.used.missed[0]


async def test_conflicting_tasks_are_merged_in_the_recorded_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plan(sharer("first"), sharer("second"))
    parts = [
        worker(name, edit(name, line), "Done.") for name, line in (("first", 1), ("second", 9))
    ]
    project, file = start(tmp_path, SHARED), tmp_path / "run.jsonl"
    with monkeypatch.context() as patch:
        Curtain(patch).hold("second", until="first")
        assert (await record(project, made, parts, file)).outcome is RunStatus.COMPLETED

    # This time the other one is done first, in a project with a file more, and with fewer agents than there were.
    (other := start(tmp_path / "clone", SHARED)).joinpath("NOTES").write_text("mine\n")
    is_ready = asyncio.Event()
    ask, land = RecordedModel.ask, RecordedAttemptOrder.before_merge

    async def held(model: RecordedModel, request: ModelRequest) -> Answer:
        if "first/1/worker" in model._lane:
            await is_ready.wait()
        return await ask(model, request)

    async def landing(pace: RecordedAttemptOrder, task: str, attempt: int) -> None:
        if task == "second":
            is_ready.set()
        await land(pace, task, attempt)

    monkeypatch.setattr(RecordedModel, "ask", held)
    monkeypatch.setattr(RecordedAttemptOrder, "before_merge", landing)
    done = await again(other, made, file, workers=1)
    assert (done.used.missed, done.used.left) == ((), ())
    assert done.ending.outcome is RunStatus.COMPLETED
