"""Learned estimates of a plan: medians of finished runs next to the PM's."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mimir.cli.console import clean_line
from mimir.cli.session import STATE_DIR, CommandSession
from mimir.domain.estimates import LearnedEstimate
from mimir.domain.plan import Plan, Task
from mimir.errors import MimirError

if TYPE_CHECKING:
    from mimir.settings.layers import LoadedSettings

PATIENCE_SECONDS = 5.0
"""Longest wait for the store; a plan can be checked without it."""
MOST_LINES = 40


def load_estimates_or_empty(session: CommandSession, plan: Plan) -> Mapping[str, LearnedEstimate]:
    """Return the learned estimates by worker role; empty if no store exists or none answers."""
    if not plan.tasks or not (session.project / STATE_DIR).is_dir():
        return {}
    try:
        loaded = session.load()
        return session.run(_load(session, loaded, plan)) if session.has_store(loaded) else {}
    # Estimates are optional: a lost store must not fail the check of a plan.
    except (MimirError, OSError, TimeoutError):
        return {}


def as_lines(plan: Plan, known: Mapping[str, LearnedEstimate]) -> list[str]:
    """Return a line for each task whose role is known."""
    lines = [
        _line(task, known[task.worker_role]) for task in plan.tasks if task.worker_role in known
    ]
    more = [f"and {len(lines) - MOST_LINES} more: --json"] if len(lines) > MOST_LINES else []
    return [*lines[:MOST_LINES], *more]


async def _load(
    session: CommandSession, loaded: "LoadedSettings", plan: Plan
) -> Mapping[str, LearnedEstimate]:
    roles = [task.worker_role for task in plan.tasks]
    async with asyncio.timeout(PATIENCE_SECONDS), session.open(loaded, create=False) as mimir:
        return await mimir.learned_estimates(roles)


def _line(task: Task, known: LearnedEstimate) -> str:
    time, calls = task.estimated_minutes, task.estimated_tool_calls
    minutes = "no minutes" if time is None else f"{time:g} min"
    return (
        f"{clean_line(task.id)}: estimated {minutes}, {'no' if calls is None else calls} calls; "
        f"learned {known.minutes:.1f} min, {known.tool_calls:g} calls (median of {known.tasks})"
    )
