"""A run that pauses is replayed to its pause, with any calls in progress."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from mimir.domain.task_states import RunStatus
from mimir.errors import ModelError
from mimir.llm.scripted.scripted_model import ScriptedModel
from mimir.workspace.sandbox.sandbox import Sandbox
from tests.support.recorded_runs import bytes_of, record, replayed
from tests.support.whole_run import calls, plan, start, step, worker, wrote


async def test_run_that_pauses_amid_a_command_replays_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command was begun and never ended: no record of it is served, and no report counts it."""
    begun = asyncio.Event()
    ask, run = ScriptedModel.ask, Sandbox.run

    async def never_ends(sandbox: Sandbox, argv: Sequence[str], **more: object) -> object:
        if "make" in argv[-1]:
            begun.set()
            await asyncio.Event().wait()
        return await run(sandbox, argv, **more)  # type: ignore[arg-type]

    async def refuses_then(model: ScriptedModel, request: object) -> object:
        if model._lane.endswith("/b/1/worker"):
            await begun.wait()
            raise ModelError("The key is no longer valid.", scope="run")
        return await ask(model, request)  # type: ignore[arg-type]

    monkeypatch.setattr(ScriptedModel, "ask", refuses_then)
    project, tape = start(tmp_path), tmp_path / "run.jsonl"
    reads, makes = calls("read_file", path="README.md"), calls("run", command="make")
    parts = [worker("a", {"calls": [reads]}, {"calls": [makes]}, "Done."), wrote("b")]
    monkeypatch.setattr(Sandbox, "run", never_ends)

    ending = await record(project, plan(step("a"), step("b")), parts, tape, workers=2)

    again = await replayed(project, str(tape))

    assert begun.is_set()
    assert ending.outcome is RunStatus.PAUSED
    assert again.differences == ()
    assert "| 1 of 6 |" in again.report
    assert bytes_of(await replayed(project, str(tape), seed=1)) == bytes_of(again)
