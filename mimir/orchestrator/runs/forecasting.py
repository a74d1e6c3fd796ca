"""Forecast of a run before it starts, from the newest ended runs of the project."""

from collections.abc import Mapping

from mimir.domain.estimates import role_key
from mimir.domain.forecast import RunForecast, TaskEffort, forecast_run
from mimir.domain.graph import TaskGraph
from mimir.domain.ids import PLAN_TASK
from mimir.domain.plan import Plan
from mimir.domain.task_states import RUN_ENDED, TaskStatus
from mimir.store.operations.record_loading import load_tasks
from mimir.store.protocol import ReadOps
from mimir.store.records.run_records import RunOverviewRecord
from mimir.store.records.task_records import TaskEffortRecord
from mimir.store.run_reading import count_model_calls, load_run_overviews

MOST_RUNS = 20
"""Newest ended runs that are read."""


def forecast_plan(reads: ReadOps, project_id: str, plan: Plan, workers: int) -> RunForecast:
    """Return the probable effort of a plan; without ended runs it is a guess."""
    samples: dict[str, list[TaskEffort]] = {}
    overhead: list[TaskEffort] = []
    ended = [
        run
        for run in load_run_overviews(reads, project_id)
        if run.kind == "execute" and run.status in RUN_ENDED and not run.is_todo_list
    ]
    for run in ended[:MOST_RUNS]:
        calls = count_model_calls(reads, run.id)
        tasks = [
            one
            for one in load_tasks(reads, run.id, TaskEffortRecord)
            if one.status is TaskStatus.COMPLETED and not one.taken_from and one.held_seconds > 0
        ]
        for one in tasks:
            samples.setdefault(role_key(one.worker_role), []).append(_effort(one, calls))
        if tasks:
            overhead.append(_overhead(run, tasks, calls))
    roles = [role_key(task.worker_role) for task in plan.tasks]
    priced = [run for run in ended[:MOST_RUNS] if run.prices and run.tokens_used]
    tokens = sum(run.tokens_used for run in priced)
    return forecast_run(
        roles,
        samples,
        overhead,
        parallel=_parallel(plan, workers),
        cost_of_token=sum(run.cost_used for run in priced) / tokens if tokens else 0.0,
    )


def _effort(task: TaskEffortRecord, calls: Mapping[str, int]) -> TaskEffort:
    return TaskEffort(
        calls=calls.get(task.task_id, 0), tokens=task.total_tokens_used, seconds=task.held_seconds
    )


def _overhead(
    run: RunOverviewRecord, tasks: list[TaskEffortRecord], calls: Mapping[str, int]
) -> TaskEffort:
    used = sum(one.total_tokens_used for one in tasks)
    return TaskEffort(
        calls=calls.get(PLAN_TASK, 0), tokens=max(0, run.tokens_used - used), seconds=0.0
    )


def _parallel(plan: Plan, workers: int) -> float:
    """Return how many tasks are worked on at once, by the workers and the task graph."""
    if not plan.tasks:
        return 1.0
    graph = TaskGraph.from_plan(plan)
    longest = max(graph.remaining_path(dict.fromkeys(graph.ids, 1.0)).values())
    return min(float(workers), len(plan.tasks) / longest)
