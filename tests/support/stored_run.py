"""A small run in a store, for tests of the verbs above it."""

from dataclasses import replace
from typing import Any

from mimir.domain.plan import Criterion, Plan, Task
from mimir.store.operations import claims, runs
from mimir.store.operations.runs import NewRun
from mimir.store.protocol import GraphStore, WriteOps


def task(id: str, *dependencies: str, **fields: Any) -> Task:
    """A task with one criterion."""
    made = Task(
        id=id,
        title=f"Title of {id}",
        prompt=f"Do {id}.",
        worker_role="Engineer",
        criteria=(Criterion(id="c1", text="It works"),),
        dependencies=dependencies,
    )
    return replace(made, **fields)


def plan(*tasks: Task) -> Plan:
    """A plan of these tasks."""
    return Plan(title="A plan", goal="A goal", tasks=tasks)


def new_run(plan: Plan | None = None, **fields: Any) -> NewRun:
    """A run of this plan, of no limits."""
    made = NewRun(
        id="r1", kind="execute" if plan else "plan", project_id="p1", project_name="Project", name="Run one",
        request="Do it", plan=plan, plan_path="chains/x/chain-output.md", settings={"workers": 4},
        engine_version="0.1.0", base_commit="c0", base_tree="t0",
    )  # fmt: skip
    return replace(made, **fields)


async def start(store: GraphStore, *tasks: Task, released: bool = True, **fields: Any) -> None:
    """Make a run of these tasks; all of them released by default."""
    made = new_run(plan(*tasks), **fields)

    def work(ops: WriteOps) -> None:
        runs.create(ops, made)
        if released:
            claims.release_task(ops, made.id, [(t.id, 0.0) for t in tasks])

    await store.write(work)
