"""Rows that scheduling looks up in more than one place."""

from collections.abc import Collection

from mimir.attempts.record import OUTPUT_ON_TASK
from mimir.domain.attempt import Status
from mimir.domain.ids import attempt_id
from mimir.domain.plan import Plan
from mimir.scheduling.gate import Accepted
from mimir.store import fields, proof
from mimir.store.protocol import Reads, Row
from mimir.store.schema import Label


def tried(reads: Reads, run: str, task: str | None = None) -> list[Row]:
    """Return the attempts of a run, or of one of its tasks, by task and number."""
    where = {"runId": run} if task is None else {"runId": run, "taskId": task}
    return reads.find(Label.ATTEMPT, where, order=("taskId", "seq"))


def whole_answer(reads: Reads, task: Row) -> str:
    """Return the whole answer of a task's accepted attempt; its row holds the beginning."""
    kept = fields.text(task, "workerOutput")
    if len(kept) < OUTPUT_ON_TASK:
        return kept
    number = fields.whole(task, "acceptedAttempt")
    name = attempt_id(fields.text(task, "runId"), fields.text(task, "taskId"), number)
    return proof.artifact(reads, f"{name}/answer") or kept


def accepted(reads: Reads, plan: Plan, tasks: Collection[Row]) -> tuple[Accepted, ...]:
    """Return the completed tasks of a run with what their accepted verdicts counted, in the plan's order."""
    rows = {fields.text(row, "taskId"): row for row in tasks}
    return tuple(
        Accepted(
            task=task,
            attempt=fields.whole(rows[task.id], "acceptedAttempt"),
            answer=whole_answer(reads, rows[task.id]),
            passed=frozenset(fields.texts(rows[task.id], "passedChecks")),
            changed=frozenset(fields.texts(rows[task.id], "filesChanged")),
        )
        for task in plan.tasks
        if fields.text(rows[task.id], "status") == Status.COMPLETED.value
    )
