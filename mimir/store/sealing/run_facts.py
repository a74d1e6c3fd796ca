"""Facts of a run that its seal covers: plan, request, settings, outcome, tasks, result."""

from collections.abc import Mapping

from mimir.domain.text_hash import hash_text
from mimir.store import run_reading
from mimir.store.operations import record_loading
from mimir.store.protocol import ReadOps, Row
from mimir.store.schema import NodeLabel, unpack

SEAL_FORM = 1
"""Form of the seals of new runs. A run without it has no sealed facts and no record."""
_TASK_FACTS = {
    "taskId": "task", "status": "status", "qcScore": "score", "attemptNumber": "attempts",
    "acceptedAttempt": "accepted", "integratedCommit": "commit", "integratedTree": "tree",
}  # fmt: skip
"""Stored property of a task → its name in the record."""

Facts = Mapping[str, object]


def load_facts(reads: ReadOps, run: str) -> dict[str, object]:
    """Return the facts of a run as stored; the outcome is the one that its gate decided."""
    row = run_reading.load_run_row(reads, run)
    return {
        "plan": hash_text(record_loading.find_plan_text(reads, run)),
        "request": row.get("request"),
        "settings": unpack(str(row.get("settingsJson") or "{}")),
        "outcome": row.get("outcome"),
        "tree": row.get("headTree"),
        "tasks": _load_tasks(reads, run),
    }


def has_record_form(reads: ReadOps, run: str) -> bool:
    """Return whether the gate of a run seals facts, and its end a record."""
    return run_reading.load_run_row(reads, run).get("sealForm") is not None


def _load_tasks(reads: ReadOps, run: str) -> list[dict[str, object]]:
    where, names = {"runId": run}, ("taskId", "seq", "chainHash")
    attempts = reads.find(NodeLabel.ATTEMPT, where, order=("id",), only=names)
    heads: dict[object, list[object]] = {}
    for attempt in attempts:
        heads.setdefault(attempt.get("taskId"), []).append(
            [attempt.get("seq"), attempt.get("chainHash")]
        )
    tasks = reads.find(NodeLabel.TASK, where, order=("seq",), only=tuple(_TASK_FACTS))
    return [_task_facts(task, heads.get(task.get("taskId"), [])) for task in tasks]


def _task_facts(task: Row, heads: list[object]) -> dict[str, object]:
    shown = {shown: task.get(name) for name, shown in _TASK_FACTS.items()}
    return {**shown, "evidence": heads}
