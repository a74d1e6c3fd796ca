"""Manipulation of a failed run's records in the store, so that they say `completed`."""

import json
from pathlib import Path
from typing import Literal

from mimir.domain.clock import Clock
from mimir.domain.json_value import is_array, is_object
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.reporting.summary.run_data import RunData
from mimir.store.protocol import WriteOps
from mimir.store.schema import NodeLabel
from mimir.store.sqlite.sqlite_store import SqliteStore

Rewriting = Literal["statuses", "exit codes", "records removed"]
REWRITINGS: tuple[Rewriting, ...] = ("statuses", "exit codes", "records removed")


async def rewrite(path: Path, clock: Clock, run: RunData, how: Rewriting) -> None:
    """Rewrite a run's statuses, and the part of its evidence that `how` names."""
    # Past the engine: a user with access to the file could do the same.
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
        body: object = json.loads(str(row["body"]))
        # The canonical form of sealed bodies: only the seal, not the format, may reveal the change.
        text = json.dumps(_green(body), sort_keys=True, separators=(",", ":"))
        ops.patch(NodeLabel.EVIDENCE, str(row["id"]), {"body": text})


def _green(value: object) -> object:
    """Return a sealed body in which every command succeeded and every check passed."""
    if is_object(value):
        green = {"exit_code": 0, "exitCode": 0, "state": "passed"}
        return {key: green[key] if key in green else _green(item) for key, item in value.items()}
    return [_green(item) for item in value] if is_array(value) else value
