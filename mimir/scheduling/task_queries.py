"""Rows that scheduling looks up in more than one place."""

from bisect import insort

from mimir.attempts.results import OUTCOMES, OUTPUT_ON_TASK, WORK
from mimir.domain.event import EventKind
from mimir.domain.ids import attempt_id, task_id
from mimir.domain.plan import Plan, Task
from mimir.qc.checks.regression import AcceptedTask, reported_counts
from mimir.store import row_fields
from mimir.store.operations import evidence, runs
from mimir.store.protocol import ReadOps, Row
from mimir.store.schema import EdgeType, NodeLabel


def load_attempts(reads: ReadOps, run: str, task: str | None = None) -> list[Row]:
    """Return the attempts of a run, or of one of its tasks, by task and number."""
    if task is None:
        return reads.find(NodeLabel.ATTEMPT, {"runId": run}, order=("taskId", "seq"))
    # Along the edges: a search by task would look at every attempt of the run.
    names = reads.neighbours(task_id(run, task), [EdgeType.HAS_ATTEMPT], "out")
    found = [row for name in names if (row := reads.get(NodeLabel.ATTEMPT, name))]
    return sorted(found, key=lambda row: row_fields.int_field(row, "seq"))


OF_ANSWER = ("runId", "taskId", "workerOutput", "acceptedAttempt")
"""What of a task's row `whole_answer` looks at."""


def whole_answer(reads: ReadOps, task: Row) -> str:
    """Return the whole answer of a task's accepted attempt; its row holds the beginning."""
    kept = row_fields.text_field(task, "workerOutput")
    if len(kept) < OUTPUT_ON_TASK:
        return kept
    number = row_fields.int_field(task, "acceptedAttempt")
    name = attempt_id(
        row_fields.text_field(task, "runId"), row_fields.text_field(task, "taskId"), number
    )
    return evidence.artifact(reads, f"{name}/answer") or kept


def of_accepted(plan: Plan) -> tuple[str, ...]:
    """Return what of a task's row `load_accepted_task` looks at: answers are by far the largest part of it, and only checks ask for them."""
    least = ("status", "acceptedAttempt", "passedChecks", "filesChanged", "integratedTree")
    has_checks = any(task.checks for task in plan.tasks)
    return (*least, "takenFrom", *OF_ANSWER) if has_checks else least


def load_accepted_task(reads: ReadOps, task: Task, row: Row) -> AcceptedTask:
    """Return a completed task with what its accepted verdict counted."""
    tried: Row = _accepted_attempt(reads, row) if task.checks else {}
    return AcceptedTask(
        task=task,
        attempt=row_fields.int_field(row, "acceptedAttempt"),
        answer=whole_answer(reads, row) if task.checks else "",
        passed=frozenset(row_fields.text_list_field(row, "passedChecks")),
        changed=frozenset(row_fields.text_list_field(row, "filesChanged")),
        tree=row_fields.text_field(row, "integratedTree") or _looked_at(tried),
        told=reported_counts(OUTCOMES.decode(row_fields.text_field(tried, "checksJson") or "[]")),
    )


class CompletedTasks:
    """What `load_accepted_task` returns of all of them, for one process and run; how a task completed never changes, so each row is read once."""

    def __init__(self, plan: Plan) -> None:
        self._tasks = {task.id: (place, task) for place, task in enumerate(plan.tasks)}
        self._seen = 0
        self._known: dict[int, AcceptedTask] = {}
        """By the task's place in the plan."""
        self._places: list[int] = []
        """The same places, ascending: sorting all of them at each look would grow with the run."""

    def look(self, reads: ReadOps, run: str) -> tuple[AcceptedTask, ...]:
        """Return the completed tasks; one caller at a time."""
        kinds = (EventKind.TASK_COMPLETED,)
        for event in runs.events(reads, run, after=self._seen, kinds=kinds):
            row = reads.get(NodeLabel.TASK, task_id(run, event.task)) or {}
            place, task = self._tasks[event.task]
            if place not in self._known:
                insort(self._places, place)
            self._known[place] = load_accepted_task(reads, task, row)
            self._seen = event.seq
        return tuple(self._known[place] for place in self._places)


def _accepted_attempt(reads: ReadOps, row: Row) -> Row:
    """Return the attempt that a task was completed with; empty: that was in another run."""
    if row.get("takenFrom"):
        return {}
    run, task = row_fields.text_field(row, "runId"), row_fields.text_field(row, "taskId")
    return (
        reads.get(
            NodeLabel.ATTEMPT, attempt_id(run, task, row_fields.int_field(row, "acceptedAttempt"))
        )
        or {}
    )


def _looked_at(attempt: Row) -> str:
    """Return the tree that a task without changes was accepted on; empty: no check of it was."""
    text = row_fields.text_field(attempt, "workJson")
    return WORK.decode(text).tree if text else ""
