"""Weight of a task in the longest remaining path."""

from mimir.domain.plan import Plan, Task
from mimir.scheduling.priority import weights


def task(id: str, role: str, minutes: float | None = None, calls: int | None = None) -> Task:
    return Task(
        id=id,
        title=id,
        prompt="p",
        worker_role=role,
        estimated_minutes=minutes,
        estimated_tool_calls=calls,
    )


def test_weight_prefers_minutes_then_calls_then_learned_estimates():
    plan = Plan(
        title="t",
        tasks=(
            task("a", "cook", 15, 8),
            task("b", "cook", None, 8),
            task("c", "cook"),
            task("d", "baker"),
        ),
    )
    assert weights(plan, {"cook": 4.5}) == {"a": 15, "b": 8, "c": 4.5, "d": 1}
    assert weights(plan) == {"a": 15, "b": 8, "c": 1, "d": 1}
