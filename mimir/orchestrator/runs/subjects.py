"""Subjects of `mimir show`, as in `RUN[/TASK[/ATTEMPT]]`, without heavy imports."""

from mimir.domain import ids
from mimir.domain.value_class import value_class
from mimir.errors import UsageError
from mimir.orchestrator.runs.listing import find_id, match_id
from mimir.store.protocol import ReadOps
from mimir.store.records.task_records import TaskStatusRecord
from mimir.store.run_reading import find_records
from mimir.store.schema import EdgeType


@value_class
class Subject:
    """Subject of `mimir show`: a run, one of its tasks, or one attempt of it."""

    run: str
    task: str = ""
    """Empty: the whole run."""
    attempt: int = 0
    """0: the whole task."""


def find_subject(reads: ReadOps, project_id: str, name: str) -> Subject:
    """Return the subject of `RUN[/TASK[/ATTEMPT]]`; an empty RUN is the latest.

    Raises:
        UsageError: There is no such subject, or several ids begin with a part of it.
    """
    run, _, rest = name.partition("/")
    id = find_id(reads, project_id, run or None, planning=True)
    task, _, attempt = rest.partition("/")
    if not task:
        return Subject(run=id)
    tasks = find_records(reads, TaskStatusRecord, {"runId": id}, order=("seq",))
    titles = {one.task_id: one.title for one in tasks}
    found = match_id(task, titles, "tasks")
    if not found:
        raise UsageError(
            f"Run {id} has no task {task[:80]!r}.", next_step=f"See its tasks: mimir show {id}"
        )
    return Subject(run=id, task=found, attempt=_find_attempt(reads, id, found, attempt))


def _find_attempt(reads: ReadOps, run: str, task: str, number: str) -> int:
    if not number:
        return 0
    names = reads.neighbours(ids.task_id(run, task), [EdgeType.HAS_ATTEMPT], "out")
    # The id ends with the number: no attempt must be read for it.
    numbers = sorted(int(name.rpartition("/")[2]) for name in names)
    if not number.isdecimal() or int(number) not in numbers:
        known = ", ".join(str(one) for one in numbers) or "none yet"
        raise UsageError(
            f"Task {task} of run {run} has no attempt {number[:20]!r}.",
            next_step=f"Its attempts: {known}.",
        )
    return int(number)
