"""Todo lists as runs: each todo is a task without criteria, so that it is never proven.

A list is a run of kind `execute` with the plan `todo:NAME`. It grows, and ends only by `mimir cancel`.
"""

from collections import Counter
from dataclasses import replace

from mimir.domain.plan import Plan, Task
from mimir.domain.run import TODO_PLAN
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.domain.value_class import value_class
from mimir.errors import ToolError
from mimir.orchestrator.sessions.limits import is_same_client, lock_project
from mimir.store.operations import claims, runs
from mimir.store.operations.record_loading import find_plan_text, load_tasks
from mimir.store.operations.runs import NewRun
from mimir.store.protocol import ReadOps, Where, WriteOps
from mimir.store.records.run_records import RunOverviewRecord
from mimir.store.records.task_records import TaskRecord
from mimir.store.run_reading import NEWEST_FIRST, find_records

MAX_TODOS = 200
"""Most todos of one list; each addition stores its plan again."""
ROLE = "Client of the server"
"""Worker role of each todo."""


@value_class
class TodoList:
    """Name of a list, and the client that uses it."""

    name: str
    project_id: str
    project_name: str
    principal: str
    """Client of the server; the clients of the user share their lists."""
    engine_version: str = ""

    @property
    def plan_path(self) -> str:
        """Plan of its run."""
        return f"{TODO_PLAN}{self.name}"


def find_list(reads: ReadOps, wanted: TodoList) -> RunOverviewRecord | None:
    """Return the open run of a list; None: it has no todo yet."""
    where: Where = {
        "projectId": wanted.project_id,
        "planPath": wanted.plan_path,
        "status": RunStatus.RUNNING.value,
    }
    found = find_records(reads, RunOverviewRecord, where, order=NEWEST_FIRST)
    own = [
        one for one in found if one.is_todo_list and is_same_client(one.principal, wanted.principal)
    ]
    return own[0] if own else None


def require_list(reads: ReadOps, wanted: TodoList) -> str:
    """Return the run of a list.

    Raises:
        ToolError: The client has no such list.
    """
    found = find_list(reads, wanted)
    if found is None:
        raise ToolError(
            f"You have no todo list {wanted.name[:60]!r}.", next_step="Call create_todo."
        )
    return found.id


def add_todo(
    ops: WriteOps, wanted: TodoList, *, run: str, title: str, text: str
) -> dict[str, object]:
    """Add a todo to a list; the first one creates its `run`.

    Raises:
        ToolError: The list is full.
    """
    # Two clients may create the list at the same moment.
    lock_project(ops, wanted.project_id)
    known = find_list(ops, wanted)
    number = known.task_count if known else 0
    task = Task(id=f"todo-{number + 1}", title=title, prompt=text or title, worker_role=ROLE)
    if known is None:
        plan = Plan(title=f"Todo list {wanted.name}", tasks=(task,))
        runs.create(ops, _new_run(wanted, run, plan))
    else:
        run = known.id
        if number >= MAX_TODOS:
            raise ToolError(
                f"The list {wanted.name!r} has {MAX_TODOS} todos.", next_step="Use another list."
            )
        plan = runs.read_plan(find_plan_text(ops, run))
        runs.add_task(ops, run, replace(plan, tasks=(*plan.tasks, task)))
    # The oldest one is claimed first.
    claims.release_task(ops, run, [(task.id, -float(number))])
    return {"list": wanted.name, "run": run, "todo": task.id, "status": "open"}


def list_todos(reads: ReadOps, wanted: TodoList, *, every: bool) -> dict[str, object]:
    """Return the todos of a list, oldest first; those that are done only if `every`."""
    known = find_list(reads, wanted)
    tasks = load_tasks(reads, known.id, TaskRecord) if known else []
    shown = [describe_todo(one, reads.now()) for one in tasks]
    counts = Counter(str(one["status"]) for one in shown)
    return {
        "list": wanted.name,
        "run": known.id if known else "",
        "todos": [one for one in shown if every or one["status"] != "done"],
        "open": counts["open"],
        "locked": counts["locked"],
        "done": counts["done"],
    }


def describe_todo(task: TaskRecord, now: str) -> dict[str, object]:
    """Return a todo as JSON values."""
    is_done, is_held = task.status is TaskStatus.COMPLETED, task.is_held_at(now)
    state = "done" if is_done else "locked" if is_held else "open"
    shown: dict[str, object] = {"todo": task.task_id, "title": task.title, "status": state}
    if task.prompt != task.title:
        shown["text"] = task.prompt
    if is_held:
        shown |= {"locked_by": task.locked_by, "locked_until": task.expires_at}
    if is_done:
        # A client marked it: no check and no quote decided anything.
        shown |= {"note": task.worker_output, "assurance": "none"}
    return shown


def _new_run(wanted: TodoList, run: str, plan: Plan) -> NewRun:
    return NewRun(
        id=run,
        kind="execute",
        project_id=wanted.project_id,
        project_name=wanted.project_name,
        name=plan.title,
        request="",
        plan=plan,
        plan_path=wanted.plan_path,
        settings={},
        engine_version=wanted.engine_version,
        base_commit="",
        base_tree="",
        principal=wanted.principal,
    )
