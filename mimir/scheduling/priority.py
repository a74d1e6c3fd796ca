"""Who goes first: longest remaining path, in minutes, calls, or learned medians. Pure."""

from collections.abc import Mapping

from mimir.domain.plan import Plan, Task


def weights(plan: Plan, learned: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return each task's weight: its estimated minutes, else its calls, else the minutes learned of its role, else 1."""
    known = learned or {}
    return {t.id: _weight(t, known) for t in plan.tasks}


def _weight(task: Task, learned: Mapping[str, float]) -> float:
    if task.estimated_minutes:
        return task.estimated_minutes
    if task.estimated_tool_calls:
        return float(task.estimated_tool_calls)
    return learned.get(task.worker_role, 1.0)
