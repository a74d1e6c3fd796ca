"""Documents of a response: the changed files of the deliverable, with change and lines."""

from collections.abc import Mapping, Sequence

from mimir.domain.deliverable import Deliverable
from mimir.orchestrator.services import ProjectServices
from mimir.store.operations.record_loading import load_run, load_task_attempts, load_tasks
from mimir.store.protocol import ReadOps
from mimir.store.records.task_records import TaskRecord

MAX_DOCUMENTS = 200
"""Files whose lines are counted."""
MAX_BYTES = 2_000_000


async def describe_documents(services: ProjectServices, run: str) -> Sequence[Mapping[str, object]]:
    """Return path, change and lines of each file that an invocation changed.

    A run of another kind has none. `lines` is None for a file that is deleted, binary or large.
    """

    def look(reads: ReadOps) -> Deliverable | None:
        if load_run(reads, run).kind != "agent":
            return None
        task = load_tasks(reads, run, TaskRecord)[0]
        attempts = load_task_attempts(reads, run, task.task_id)
        # Without an accepted attempt, the last attempt is shown.
        number = task.accepted_attempt or len(attempts)
        last = next((one for one in attempts if one.number == number), None)
        return last.deliverable.decode(Deliverable) if last and last.deliverable else None

    work = await services.store.read(look)
    if work is None or not work.changed:
        return ()
    history = services.history
    changes = await history.diff_trees(work.base_tree, work.tree)
    documents: list[Mapping[str, object]] = []
    for number, change in enumerate(changes):
        content = None
        if change.status != "deleted" and number < MAX_DOCUMENTS:
            content = await history.file(work.tree, change.path)
        documents.append(
            {"path": change.path, "change": change.status, "lines": _count_lines(content)}
        )
    return documents


def _count_lines(content: bytes | None) -> int | None:
    if content is None or len(content) > MAX_BYTES or b"\0" in content:
        return None
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
