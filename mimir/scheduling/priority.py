"""Weights of tasks for their priority: minutes, tool calls, or learned medians. Pure."""

from collections.abc import Mapping

from mimir.domain.plan import Plan, Task


def weights(plan: Plan, learned: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return each task's minutes, else its calls, else its role's learned minutes, else 1."""
    known = learned or {}
    return {task.id: _weight(task, known) for task in plan.tasks}


def _weight(task: Task, learned: Mapping[str, float]) -> float:
    if task.estimated_minutes:
        return task.estimated_minutes
    # One unit a plan is enough: weights are only compared with each other.
    if task.estimated_tool_calls:
        return float(task.estimated_tool_calls)
    return learned.get(task.worker_role, 1.0)
