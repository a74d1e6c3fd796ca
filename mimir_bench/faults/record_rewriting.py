"""Manipulation of a failed run's records in the store, so that they say `completed`."""

import json
from pathlib import Path
from typing import Literal, cast

from mimir.domain.clock import Clock
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.reporting.summary.run_data import RunData
from mimir.store.protocol import WriteOps
from mimir.store.schema import NodeLabel
from mimir.store.sqlite.sqlite_store import SqliteStore

Rewriting = Literal["statuses", "exit codes", "records removed"]
REWRITINGS: tuple[Rewriting, ...] = ("statuses", "exit codes", "records removed")


async def rewrite(path: Path, clock: Clock, run: RunData, how: Rewriting) -> None:
    """Rewrite a run's statuses, and the part of its evidence that `how` names."""
    store = SqliteStore(path, clock)
    await store.init()

    def work(ops: WriteOps) -> None:
        done = {"status": RunStatus.COMPLETED.value, "outcome": RunStatus.COMPLETED.value}
        ops.patch(NodeLabel.RUN, run.id, done)
        for task in run.tasks:
            ops.patch(NodeLabel.TASK, task.node, {"status": TaskStatus.COMPLETED.value})
        _evidence(ops, run, how)

    try:
        await store.write(work)
    finally:
        await store.close()


def _evidence(ops: WriteOps, run: RunData, how: Rewriting) -> None:
    rows = [
        row for row in ops.find(NodeLabel.EVIDENCE, {"runId": run.id}) if row.get("kind") == "check"
    ]
    if how == "records removed":
        ops.delete(NodeLabel.EVIDENCE, [str(row["id"]) for row in rows])
    if how != "exit codes":
        return
    for row in rows:
        body = cast("dict[str, object]", json.loads(str(row["body"])))
        text = json.dumps(_green(body), sort_keys=True, separators=(",", ":"))
        ops.patch(NodeLabel.EVIDENCE, str(row["id"]), {"body": text})


def _green(value: object) -> object:
    """Return a sealed body in which every command succeeded and every check passed."""
    if isinstance(value, dict):
        table = cast("dict[str, object]", value)
        said = {"exit_code": 0, "exitCode": 0, "state": "passed"}
        return {key: said[key] if key in said else _green(item) for key, item in table.items()}
    if isinstance(value, list):
        return [_green(item) for item in cast("list[object]", value)]
    return value
