"""Durability: no outside effect depends on a write that a power cut could lose."""

from pathlib import Path

import pytest

from mimir.domain.event import EventKind
from mimir.domain.run import RunBudget
from mimir.scheduling import cpu_turns
from mimir.store.sqlite.sqlite_store import SqliteStore
from tests.support.whole_run import PLAN_PATH, opened, plan, start, step, worker, wrote


@pytest.mark.parametrize("models", ["take their time", "answer at once"])
async def test_each_event_with_an_outside_effect_is_written_durably(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: str
):
    at_once = models == "answer at once"
    monkeypatch.setattr(cpu_turns, "AT_ONCE_SECONDS", 3600 if at_once else -1)
    waited: dict[tuple[str, str], bool] = {}
    write = SqliteStore.write

    async def noted(self, work, /, *, durable=True):
        def watched(ops):
            upsert = ops.upsert

            def record_rows(label, rows):
                if label == "Event":
                    waited.update({(row["kind"], row["task"]): durable for row in rows})
                upsert(label, rows)

            ops.upsert = record_rows
            return work(ops)

        return await write(self, watched, durable=durable)

    monkeypatch.setattr(SqliteStore, "write", noted)
    project = start(tmp_path)
    asked = plan(step("a"), step("b", checks=(), files=()))
    parts = [wrote("a"), worker("b", "The answer is that all of it is there.")]
    async with opened(project, parts) as mimir:
        run = await mimir.create_run(asked, PLAN_PATH, only=(), limits=RunBudget())
        ending = await mimir.drive(run, workers=2, apply="never", limits=RunBudget(), resumed=False)
    assert ending.exit_code == 0, ending.message
    expected = {
        (EventKind.RUN_CREATED, ""): False,
        (EventKind.TOOL_CALLED, "a"): True,
        (EventKind.TASK_COMPLETED, "a"): True,
        (EventKind.TASK_COMPLETED, "b"): at_once,  # it is committed together with others
        (EventKind.GATE_PASSED, ""): True,
        (EventKind.RUN_FINISHED, ""): True,
    }
    assert {key: waited.get(key) for key in expected} == expected
