"""Completed tasks of a run, with the checks that later trees must pass too."""

from bisect import insort
from collections.abc import Mapping, Sequence

from mimir.attempts.results import OUTPUT_ON_TASK
from mimir.domain.deliverable import Deliverable
from mimir.domain.event import EventKind
from mimir.domain.evidence import CheckOutcome
from mimir.domain.ids import task_id
from mimir.domain.plan import Plan, Task
from mimir.qc.checks.regression import AcceptedTask, accepted_results
from mimir.store.operations import runs
from mimir.store.operations.record_loading import find_attempt, load_record, load_whole_answer
from mimir.store.protocol import ReadOps
from mimir.store.records.task_records import AcceptedTaskRecord, TaskAnswerRecord


def load_accepted_task(reads: ReadOps, task: Task, record: AcceptedTaskRecord) -> AcceptedTask:
    """Load a completed task with the counts of its accepted verdict."""
    outcomes: tuple[CheckOutcome, ...] = ()
    tree, answer = record.integrated_tree, ""
    # Answers are by far the largest part of a task's node, and only checks read them.
    stored = load_record(reads, TaskAnswerRecord, record.id) if task.checks else None
    if stored:
        answer = load_whole_answer(reads, stored, longest_kept=OUTPUT_ON_TASK)
    attempt = None
    if task.checks and not record.taken_from:  # a reused task's attempt belongs to another run
        attempt = find_attempt(reads, record.run_id, record.task_id, record.accepted_attempt)
    if attempt and attempt.check_outcomes:
        outcomes = attempt.check_outcomes.decode(tuple[CheckOutcome, ...])
    if attempt and attempt.deliverable and not tree:
        tree = attempt.deliverable.decode(Deliverable).tree  # accepted without changes
    return AcceptedTask(
        task=task,
        attempt=record.accepted_attempt,
        answer=answer,
        passed=frozenset(record.passed_checks),
        changed=frozenset(record.files_changed),
        tree=tree,
        results=accepted_results(outcomes),
        broken=_broken_checks(record, task, outcomes),
    )


def _broken_checks(
    record: AcceptedTaskRecord, task: Task, outcomes: Sequence[CheckOutcome]
) -> Mapping[str, str]:
    """Return the required checks of a completed task that could not decide, with the reason."""
    if record.taken_from:
        why = f"it did not decide when {task.id} was accepted in an earlier run."
        return {c.id: why for c in task.checks if c.required and c.id not in record.passed_checks}
    return {o.check: o.findings[0] for o in outcomes if o.required and o.state == "broken"}


class CompletedTasks:
    """Cache of a run's completed tasks; each is read once, because it never changes again."""

    def __init__(self, plan: Plan) -> None:
        self._tasks = {task.id: (place, task) for place, task in enumerate(plan.tasks)}
        self._last_event = 0
        self._known: dict[int, AcceptedTask] = {}
        """By the task's place in the plan."""
        # Kept in order: sorting all places at each call would grow with the run.
        self._places: list[int] = []

    def look(self, reads: ReadOps, run: str) -> tuple[AcceptedTask, ...]:
        """Return the completed tasks in the plan's order; one caller at a time."""
        kinds = (EventKind.TASK_COMPLETED,)
        for event in runs.events(reads, run, after=self._last_event, kinds=kinds):
            place, task = self._tasks[event.task]
            record = load_record(reads, AcceptedTaskRecord, task_id(run, event.task))
            if record:
                if place not in self._known:
                    insort(self._places, place)
                self._known[place] = load_accepted_task(reads, task, record)
            self._last_event = event.seq
        return tuple(self._known[place] for place in self._places)
