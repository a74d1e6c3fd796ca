"""Runs: asked for, begun, driven to their end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from mimir.cli.arguments import nearest
from mimir.cli.output import recordings
from mimir.cli.output.run_progress import run_and_show
from mimir.cli.session import CommandSession
from mimir.cli.verbs import planning
from mimir.cli.verbs.planning import PlanRequest
from mimir.domain import money
from mimir.domain.graph import TaskGraph
from mimir.domain.plan import Plan
from mimir.domain.run import NO_LIMITS, Apply, RunBudget
from mimir.errors import UsageError

if TYPE_CHECKING:
    from mimir.cli.facade import Mimir
    from mimir.settings import LoadedSettings

DECLINED = 1
"""Exit code after a "no": nothing was run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a plan is to be run."""

    only: Sequence[str]
    """Tasks; empty: all."""
    from_run: str
    """Empty: nothing is taken over."""
    is_agreed: bool
    """True: nobody is asked."""
    is_strict: bool = False
    """True: what is left over of a recording, or not in it, is a failure."""


def must_be_agreed(session: CommandSession, order: RunOptions) -> None:
    """Refuse a run that nobody has agreed to and nobody can be asked about.

    Raises:
        UsageError: So it is.
    """
    if not order.is_agreed and not session.console.can_ask:
        raise UsageError(
            "Nobody is there to be asked whether the run may begin.",
            next_step="Add --yes to run without being asked.",
        )


async def run_request(
    session: CommandSession, loaded: "LoadedSettings", wanted: PlanRequest, order: RunOptions
) -> int:
    """Plan a request and run the plan; the exit code."""
    async with session.open(loaded) as mimir:
        planned = await planning.make_plan(session, mimir, loaded, wanted)
        planning.print_warnings(session, planned.findings, planned.path)
        if planned.exit_code:
            return planned.exit_code
        must_know(order.only, planned.plan)
        left = planning.limits(loaded)
        if left != NO_LIMITS:
            left = what_is_left(left, await mimir.status(planned.run))
        return await _run(session, mimir, loaded, planned.plan, planned.path, order, left)


async def run_plan(
    session: CommandSession, loaded: "LoadedSettings", plan: Plan, path: str, order: RunOptions
) -> int:
    """Run a checked plan; the exit code."""
    if not session.json:
        session.console.say(f"{path}: {len(plan.tasks)} tasks")
    async with session.open(loaded) as mimir:
        limits = planning.limits(loaded)
        return await _run(session, mimir, loaded, plan, path, order, limits)


async def resume_run(
    session: CommandSession,
    loaded: "LoadedSettings",
    run: str | None,
    limits: RunBudget,
    apply: Apply | None,
) -> int:
    """Go on with a run; the exit code."""
    async with session.open(loaded, create=False) as mimir:
        id = await mimir.find_run(run, resumable=True)
        return await run_and_show(
            session, mimir, loaded, id, limits=limits, apply=apply, resumed=True
        )


def must_know(only: Sequence[str], plan: Plan) -> None:
    """Refuse a task that is not in the plan, before anything is opened.

    Raises:
        UsageError: There is one; the nearest is named.
    """
    known = [task.id for task in plan.tasks]
    for task in only:
        if task not in known:
            near = nearest(task, known)
            step = f"Did you mean {near}?" if near else f"Its tasks: {', '.join(known[:20])}"
            raise UsageError(f"--only names {task!r}, which is not in the plan.", next_step=step)


def what_is_left(limits: RunBudget, spent: Mapping[str, object]) -> RunBudget:
    """Return the bounds of the work, after its planning: what was given holds for both together.

    Args:
        limits: As given.
        spent: The planning's `status`.
    """

    def left(most: int | None, used: object) -> int | None:
        return None if most is None else max(0, most - (used if isinstance(used, int) else 0))

    cost = spent.get("cost")
    paid = money.units(Decimal(cost)) if isinstance(cost, str) else 0
    return replace(
        limits,
        max_calls=left(limits.max_calls, spent.get("calls")),
        max_tokens=left(limits.max_tokens, spent.get("tokens")),
        max_cost=left(limits.max_cost, paid),
    )


async def _run(
    session: CommandSession,
    mimir: "Mimir",
    loaded: "LoadedSettings",
    plan: Plan,
    path: str,
    order: RunOptions,
    limits: RunBudget,
) -> int:
    """Ask, begin and drive a run."""
    if not order.is_agreed:
        tasks, calls, tokens = await mimir.plan_size(_part(plan, order.only))
        size = f"{path}: {tasks} tasks, at most {calls:,} calls and {tokens:,} tokens. Run it?"
        if not await session.console.ask(size):
            session.console.note("Nothing was run.")
            return DECLINED
    with session.show_wait("Beginning", loaded):
        source = await mimir.find_run(order.from_run) if order.from_run else ""
        run = await mimir.create_run(plan, path, only=order.only, limits=limits, from_run=source)
    code = await run_and_show(session, mimir, loaded, run, limits=limits, apply=None, resumed=False)
    if session.replay is None:
        return code
    return recordings.report_usage(session, mimir, code, is_strict=order.is_strict)


def _part(plan: Plan, only: Sequence[str]) -> Plan:
    """Return the part of a plan that these tasks need."""
    if not only:
        return plan
    graph = TaskGraph.from_plan(plan)
    wanted = set(only).union(*(graph.upstream(task) for task in only))
    return replace(plan, tasks=tuple(task for task in plan.tasks if task.id in wanted))
