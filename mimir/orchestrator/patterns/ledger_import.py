"""A plan and notes from a ledger whose store is lost."""

from collections.abc import Callable
from pathlib import Path

from mimir.domain.plan import Plan, Task
from mimir.orchestrator.patterns.ledger import LedgerEdits, parse
from mimir.orchestrator.patterns.ledger_state import synchronize
from mimir.orchestrator.services import ProjectServices
from mimir.planning.renderer import render
from mimir.workspace.state_dir import write_state_file

LOST = "The prompt of this task is lost. Write it again."


async def import_ledger(
    services: ProjectServices, text: str, find_path: Callable[[Path, str], str]
) -> tuple[str, int, int]:
    """Write a plan of the open tasks, and store the learnings as notes.

    `find_path` returns a free path for a plan, from the project and a title.

    Returns:
        Path of the plan, number of its tasks, number of notes. Empty path: every task is completed.

    Raises:
        PlanError: The plan cannot be written.
    """
    ledger = parse(text)
    tasks = tuple(
        Task(id=one.id, title=one.title or one.id, prompt=LOST, worker_role=one.role or "executor")
        for one in ledger.tasks
        if one.state != "completed"
    )
    path = ""
    if tasks:
        request = next((line.removeprefix("Request: ") for line in ledger.direction), ledger.title)
        plan = Plan(title=ledger.title, request=request, tasks=tasks)
        path = find_path(services.project, ledger.title)
        write_state_file(services.project, path, render(plan).encode())
    notes = LedgerEdits(added=tuple((one.kind, one.text) for one in ledger.learnings))
    await services.store.write(lambda ops: synchronize(ops, services.project_id, notes))
    return path, len(tasks), len(notes.added)
