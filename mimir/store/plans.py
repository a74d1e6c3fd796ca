"""How a plan is kept: its text, and what a task's node holds of it from the beginning. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from mimir.domain.attempt import Status
from mimir.domain.plan import Plan, Task
from mimir.store import codec
from mimir.store.protocol import Value
from mimir.store.schema import pack


@dataclass(frozen=True, slots=True)
class Written:
    """A plan as it is kept, but for whose it is. Of a large one that takes a while, and needs no transaction."""

    plan: str
    tasks: tuple[Mapping[str, Value], ...]


def written(plan: Plan) -> Written:
    """Write a plan and its tasks."""
    encoded = cast("Mapping[str, Sequence[Mapping[str, object]]]", codec.encode(plan))
    tasks = zip(plan.tasks, encoded["tasks"], strict=True)
    return Written(pack(encoded), tuple(_task_values(*task) for task in tasks))


def _task_values(task: Task, encoded: Mapping[str, object]) -> Mapping[str, Value]:
    return {
        "name": task.title or task.id, "taskId": task.id, "title": task.title, "prompt": task.prompt,
        "status": Status.PENDING.value, "workerRole": task.worker_role, "qcRole": task.reviewer,
        "verificationCriteria": [f"{c.id}: {c.text}" for c in task.criteria],
        "criteriaJson": pack(encoded["criteria"]), "checksJson": pack(encoded["checks"]),
        "dependencies": list(task.dependencies), "files": list(task.files),
        "contextFiles": list(task.context_files), "tools": list(task.tools),
        "estimatedToolCalls": task.estimated_tool_calls, "estimatedMinutes": task.estimated_minutes,
        "timeLimitMinutes": task.time_limit_minutes, "maxRetries": task.max_retries, "model": task.model,
        "parallelGroup": task.parallel_group, "attemptNumber": 0, "isRetry": False, "released": False,
        "priority": 0.0, "fence": 0, "version": 0, "outcomes": 0, "outcomesAtDeath": 0, "deaths": 0,
        "qcFailuresCount": 0, "totalTokensUsed": 0, "totalToolCalls": 0,
    }  # fmt: skip
