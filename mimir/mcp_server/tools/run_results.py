"""Results of runs for a model: short values and the next call. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from mimir.domain.clock import moment
from mimir.domain.json_value import as_object, as_objects, as_text
from mimir.domain.question_states import OPEN
from mimir.domain.run import INPUT

MAX_TASKS = 100
"""Most tasks of a status; those that are not completed come first."""
WORKING = "working"
START_GRACE = timedelta(seconds=60)
"""Longest time in which a process that was started appears in the store."""
_CRITERIA = ("executed", "judged", "unverified", "failed")
_ENDED = ("completed", "failed", "cancelled", "answered")


def describe_run(status: Mapping[str, object], *, is_served: bool) -> dict[str, object]:
    """Return the result of a run from its `status`; `is_served`: a process works on it."""
    state = as_text(status.get("status"))
    # A run that was created a moment ago has no coordinator yet, and its status is `paused`.
    # A planning run that has ended is followed by the execution, if a process still works.
    has_ended = state in _ENDED and as_text(status.get("kind")) != "plan"
    shown = WORKING if is_served and not has_ended else state
    tasks = as_objects(status.get("tasks"))
    criteria = Counter[str]()
    for task in tasks:
        given = as_object(task.get("criteria"))
        criteria.update({name: number for name in _CRITERIA if (number := _count(given, name))})
    found: dict[str, object] = {
        "run": status.get("run"),
        "status": shown,
        "title": status.get("title"),
        "message": "" if shown == WORKING else status.get("message"),
        "plan": status.get("plan"),
        "tasks": dict(Counter(as_text(task.get("status")) for task in tasks)),
        "criteria": dict(criteria),
        "calls": status.get("calls"),
        "tokens": status.get("tokens"),
        "cost": status.get("cost"),
        "seal": status.get("seal"),
        "questions": list_open_questions(as_objects(status.get("questions"))),
    }
    kept = {name: value for name, value in found.items() if value not in (None, "", {}, [])}
    return {**kept, "next": next_call(status, shown)}


def is_working(status: Mapping[str, object], now: datetime, *, is_followed: bool) -> bool:
    """Return whether a process works on a task, or was started a moment ago.

    Args:
        status: `status --json` of the run.
        now: Time of day.
        is_followed: Whether another run follows the planning run.
    """
    state, questions = as_text(status.get("status")), as_objects(status.get("questions"))
    # No process works on a todo list, and it never ends by itself.
    if status.get("todo_list") is True:
        return False
    # A queued one is started when another agent of its session ends.
    if state == "running" or (state == "paused" and status.get("queued") is True):
        return True
    started = moment(as_text(status.get("started")))
    seconds = status.get("elapsed_seconds")
    elapsed = timedelta(seconds=seconds if isinstance(seconds, float) else 0.0)
    if state == "paused" and not as_text(status.get("reason")):
        # No process leads it: it was created a moment ago, or its process died.
        return now - started < START_GRACE
    if state == "paused" and status.get("reason") == INPUT and not list_open_questions(questions):
        # Answered: the process that continues it needs a moment.
        closed = [as_text(one.get("closed_at")) for one in questions if one.get("closed_at")]
        return bool(closed) and now - moment(max(closed)) < START_GRACE
    is_planned = as_text(status.get("kind")) == "plan" and state == "completed"
    return is_followed and is_planned and now - started - elapsed < START_GRACE


def describe_planning(status: Mapping[str, object], *, is_served: bool) -> dict[str, object]:
    """Return the result of a planning run, with the path of its plan."""
    found = describe_run(status, is_served=is_served)
    return {**found, "path": found.pop("plan", "")}


def next_call(status: Mapping[str, object], shown: str) -> str:
    """Return the next call after a look at a run."""
    run, plan = as_text(status.get("run")), as_text(status.get("plan"))
    executed = as_text(status.get("executed_by"))
    if status.get("todo_list") is True:
        return "Call list_todos (mimir mcp --tools core,delegation,todo)."
    if shown in (WORKING, "running"):
        return f'Call status with run "{run}" and wait_seconds 45; it continues without this call.'
    if shown == "paused":
        if list_open_questions(as_objects(status.get("questions"))):
            return "Call answer: the user answers the open questions."
        return f"The user can continue it: mimir resume {run}"
    if as_text(status.get("kind")) == "plan":
        if executed:
            return f'Call status with run "{executed}".'
        is_made = shown == "completed" and plan
        return (
            f'Call execute with plan "{plan}".'
            if is_made
            else f"The user can read: mimir show {run}"
        )
    is_applied = as_text(status.get("apply")) not in ("", "never")
    more = "" if is_applied or shown != "completed" else f" The user applies it: mimir apply {run}"
    return f'Call report with run "{run}".{more}'


def list_open_questions(found: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return the open questions with the fields that an answer needs."""
    names = ("id", "kind", "title", "text", "schema", "default_text", "subject", "run", "task")
    return [
        {name: one[name] for name in names if one.get(name)}
        for one in found
        if one.get("state", OPEN) == OPEN
    ]


def limit_tasks(status: Mapping[str, object]) -> dict[str, object]:
    """Return a status with at most `MAX_TASKS` tasks, and the number of those left out."""
    tasks = as_objects(status.get("tasks"))
    if len(tasks) <= MAX_TASKS:
        return dict(status)
    # The sort is stable, so each part keeps the order of the plan.
    ranked = sorted(tasks, key=lambda one: one.get("status") == "completed")
    return {**status, "tasks": ranked[:MAX_TASKS], "omitted_tasks": len(tasks) - MAX_TASKS}


def _count(values: Mapping[str, object], name: str) -> int:
    number = values.get(name)
    return number if isinstance(number, int) else 0
