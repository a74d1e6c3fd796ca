"""Estimates from finished runs of a project: durations and tool calls per role.

One node per role holds its newest tasks, so a query costs the same after ten runs and after ten thousand.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping

from mimir.domain.estimates import LearnedEstimate, TaskSample, medians, role_key
from mimir.domain.task_states import TaskStatus
from mimir.domain.text_hash import hash_text
from mimir.store.operations import record_loading
from mimir.store.protocol import ReadOps, Row, WriteOps
from mimir.store.records.task_records import TaskRecord
from mimir.store.row_fields import text_list_field
from mimir.store.schema import NodeLabel

# Kind of the artifacts.
KIND = "estimate"
# Tasks that a role remembers.
MOST_SAMPLES = 100
# Tasks of one run that are read, from its end.
_MOST_TASKS = 1_000

# Role, as `role_key` writes it → its tasks.
Samples = Mapping[str, list[TaskSample]]


def of_run(reads: ReadOps, run: str) -> Samples:
    """Return the samples of a run's completed tasks, without reused ones."""
    last: deque[tuple[str, TaskSample]] = deque(maxlen=_MOST_TASKS)
    for task in record_loading.iterate_tasks(reads, run, TaskRecord):
        if task.status is TaskStatus.COMPLETED:
            calls, seconds = task.worker_tool_calls, task.held_seconds
            one = TaskSample(source=task.id, seconds=seconds, tool_calls=calls)
            last.appendleft(("" if task.is_reused else role_key(task.worker_role), one))
    found: dict[str, list[TaskSample]] = {}
    for role, one in last:
        if role and one.seconds > 0:
            found.setdefault(role, []).append(one)
    return found


def save_samples(ops: WriteOps, project: str, run: str, samples: Samples) -> None:
    """Save the samples of a run; a run that is saved twice counts once."""
    # A resumed run may save its samples twice.
    for role, new in sorted(samples.items()):
        id = _id(project, role)
        before = _read_samples(ops.get(NodeLabel.ARTIFACT, id) or {})
        others = [one for one in before if not one.source.startswith(f"{run}/")]
        kept = [*others, *reversed(new)][-MOST_SAMPLES:]
        row: Row = {
            "id": id, "name": role[:200], "projectId": project, "kind": KIND, "samples": _sample_texts(kept),
        }  # fmt: skip
        ops.upsert(NodeLabel.ARTIFACT, [row])


def load_estimates(
    reads: ReadOps, project: str, roles: Collection[str]
) -> Mapping[str, LearnedEstimate]:
    """Return the estimates of these roles; a role without samples is left out."""
    found: dict[str, LearnedEstimate] = {}
    for role in dict.fromkeys(roles):
        row = reads.get(NodeLabel.ARTIFACT, _id(project, role_key(role)))
        known = medians(_read_samples(row or {}))
        if known is not None:
            found[role] = known
    return found


def _id(project: str, role: str) -> str:
    digest = hash_text(role)
    return f"{project}#estimate-{digest[:16]}"


def _sample_texts(samples: Iterable[TaskSample]) -> list[str]:
    return [f"{one.seconds} {one.tool_calls} {one.source}" for one in samples]


def _read_samples(row: Row) -> list[TaskSample]:
    parts = [text.split(" ", 2) for text in text_list_field(row, "samples")]
    return [TaskSample(source=p[2], seconds=float(p[0]), tool_calls=int(p[1])) for p in parts]
