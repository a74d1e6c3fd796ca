"""Rows that scheduling looks up in more than one place."""

from bisect import insort

from mimir.attempts.results import OUTCOMES, OUTPUT_ON_TASK, WORK
from mimir.domain.event import EventKind
from mimir.domain.ids import attempt_id, task_id
from mimir.domain.plan import Plan, Task
from mimir.qc.checks.regression import Accepted, told
from mimir.store import row_fields
from mimir.store.operations import evidence, runs
from mimir.store.protocol import Reads, Row
from mimir.store.schema import Edge, Label


def tried(reads: Reads, run: str, task: str | None = None) -> list[Row]:
    """Return the attempts of a run, or of one of its tasks, by task and number."""
    if task is None:
        return reads.find(Label.ATTEMPT, {"runId": run}, order=("taskId", "seq"))
    # Along the edges: a search by task would look at every attempt of the run.
    names = reads.neighbours(task_id(run, task), [Edge.HAS_ATTEMPT], "out")
    found = [row for name in names if (row := reads.get(Label.ATTEMPT, name))]
    return sorted(found, key=lambda row: row_fields.whole(row, "seq"))


OF_ANSWER = ("runId", "taskId", "workerOutput", "acceptedAttempt")
"""What of a task's row `whole_answer` looks at."""


def whole_answer(reads: Reads, task: Row) -> str:
    """Return the whole answer of a task's accepted attempt; its row holds the beginning."""
    kept = row_fields.text(task, "workerOutput")
    if len(kept) < OUTPUT_ON_TASK:
        return kept
    number = row_fields.whole(task, "acceptedAttempt")
    name = attempt_id(row_fields.text(task, "runId"), row_fields.text(task, "taskId"), number)
    return evidence.artifact(reads, f"{name}/answer") or kept


def of_accepted(plan: Plan) -> tuple[str, ...]:
    """Return what of a task's row `accepted` looks at: answers are by far the largest part of it, and only checks ask for them."""
    least = ("status", "acceptedAttempt", "passedChecks", "filesChanged", "integratedTree")
    has_checks = any(task.checks for task in plan.tasks)
    return (*least, "takenFrom", *OF_ANSWER) if has_checks else least


def accepted(reads: Reads, task: Task, row: Row) -> Accepted:
    """Return a completed task with what its accepted verdict counted."""
    tried: Row = _accepted_attempt(reads, row) if task.checks else {}
    return Accepted(
        task=task,
        attempt=row_fields.whole(row, "acceptedAttempt"),
        answer=whole_answer(reads, row) if task.checks else "",
        passed=frozenset(row_fields.texts(row, "passedChecks")),
        changed=frozenset(row_fields.texts(row, "filesChanged")),
        tree=row_fields.text(row, "integratedTree") or _looked_at(tried),
        told=told(OUTCOMES.read(row_fields.text(tried, "checksJson") or "[]")),
    )


class Completions:
    """What `accepted` returns of all of them, for one process and run; how a task completed never changes, so each row is read once."""

    def __init__(self, plan: Plan) -> None:
        self._tasks = {task.id: (place, task) for place, task in enumerate(plan.tasks)}
        self._seen = 0
        self._known: dict[int, Accepted] = {}
        """By the task's place in the plan."""
        self._places: list[int] = []
        """The same places, ascending: sorting all of them at each look would grow with the run."""

    def look(self, reads: Reads, run: str) -> tuple[Accepted, ...]:
        """Return the completed tasks; one caller at a time."""
        kinds = (EventKind.TASK_COMPLETED,)
        for event in runs.events(reads, run, after=self._seen, kinds=kinds):
            row = reads.get(Label.TASK, task_id(run, event.task)) or {}
            place, task = self._tasks[event.task]
            if place not in self._known:
                insort(self._places, place)
            self._known[place] = accepted(reads, task, row)
            self._seen = event.seq
        return tuple(self._known[place] for place in self._places)


def _accepted_attempt(reads: Reads, row: Row) -> Row:
    """Return the attempt that a task was completed with; empty: that was in another run."""
    if row.get("takenFrom"):
        return {}
    run, task = row_fields.text(row, "runId"), row_fields.text(row, "taskId")
    return (
        reads.get(Label.ATTEMPT, attempt_id(run, task, row_fields.whole(row, "acceptedAttempt")))
        or {}
    )


def _looked_at(attempt: Row) -> str:
    """Return the tree that a task without changes was accepted on; empty: no check of it was."""
    text = row_fields.text(attempt, "workJson")
    return WORK.read(text).tree if text else ""
