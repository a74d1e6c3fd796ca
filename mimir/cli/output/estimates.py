"""What finished runs showed of a plan's roles, beside what the PM estimated."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mimir.cli.console import clean_line
from mimir.cli.session import ROOM, CommandSession
from mimir.domain.estimates import LearnedEstimate
from mimir.domain.plan import Plan, Task
from mimir.errors import MimirError

if TYPE_CHECKING:
    from mimir.settings import LoadedSettings

STORE = "mimir.db"
PATIENCE_SECONDS = 5.0
"""How long a store may take to answer; a plan is checked without it as well."""
MOST_LINES = 40


def load_estimates_or_empty(session: CommandSession, plan: Plan) -> Mapping[str, LearnedEstimate]:
    """Return what is known, by worker role; nothing where there is no store, or none that answers. Makes nothing."""
    if not plan.tasks or not (session.project / ROOM).is_dir():
        return {}
    try:
        loaded = session.load()
        kept = bool(loaded.settings.store) or (session.project / ROOM / STORE).is_file()
        return session.run(_ask(session, loaded, plan)) if kept else {}
    except (MimirError, OSError, TimeoutError):
        return {}


def as_lines(plan: Plan, known: Mapping[str, LearnedEstimate]) -> list[str]:
    """Return a line for each task whose role is known."""
    lines = [
        _line(task, known[task.worker_role]) for task in plan.tasks if task.worker_role in known
    ]
    more = [f"and {len(lines) - MOST_LINES} more: --json"] if len(lines) > MOST_LINES else []
    return [*lines[:MOST_LINES], *more]


async def _ask(
    session: CommandSession, loaded: "LoadedSettings", plan: Plan
) -> Mapping[str, LearnedEstimate]:
    roles = [task.worker_role for task in plan.tasks]
    async with asyncio.timeout(PATIENCE_SECONDS), session.open(loaded, create=False) as mimir:
        return await mimir.learned_estimates(roles)


def _line(task: Task, known: LearnedEstimate) -> str:
    minutes = "no minutes" if task.estimated_minutes is None else f"{task.estimated_minutes:g} min"
    calls = (
        "no calls" if task.estimated_tool_calls is None else f"{task.estimated_tool_calls} calls"
    )
    return (
        f"{clean_line(task.id)}: estimated {minutes}, {calls}; learned {known.minutes:.1f} min, "
        f"{known.tool_calls:g} calls (median of {known.tasks})"
    )
