"""`mimir execute`, `resume`, `worker`, `cancel` and `apply`: commands that change a run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mimir.cli import arguments
from mimir.cli.commands import options as opt
from mimir.cli.commands import plan_commands
from mimir.cli.commands.plan_commands import PlanRequest
from mimir.cli.session import DECLINED, CommandSession
from mimir.domain.quoted_text import count_noun
from mimir.domain.value_class import value_class
from mimir.errors import PlanError, UsageError

if TYPE_CHECKING:
    from mimir.domain.invocation import PinnedDefinition
    from mimir.domain.plan import Plan
    from mimir.domain.run import RunBudget, RunResult
    from mimir.orchestrator.api import Mimir
    from mimir.orchestrator.patterns.choose import PlanFollowing
    from mimir.settings.layers import LoadedSettings


@value_class
class RunOptions:
    """Options of the execution of a plan."""

    only: Sequence[str]
    """Task ids; empty: all tasks."""
    from_run: str
    """Run whose completed tasks are reused; empty: none."""
    is_confirmed: bool
    """True: no confirmation is asked for."""
    is_strict: bool = False
    """True: an unused or missing call of the recording is a failure."""


def execute(
    session: CommandSession,
    words: opt.Words = None,
    workers: opt.Workers = None,
    only: opt.Only = None,
    from_run: opt.From = "",
    max_calls: opt.MaxCalls = None,
    max_tokens: opt.MaxTokens = None,
    max_cost: opt.MaxCost = None,
    time_limit: opt.TimeLimit = None,
    yes: opt.Yes = False,
    apply: opt.ApplyMode = None,
    ecko: opt.Ecko = False,
    pattern: opt.Pattern = None,
    output: opt.Output = None,
    model: opt.Model = None,
    record: opt.Record = None,
    replay: opt.Replay = None,
    strict: opt.Strict = False,
) -> int:
    """Run a plan or a request.

    PLAN is a file or a folder of chains/. Default: the newest plan. REQUEST is text in quotes,
    "-" for standard input, or @FILE; its plan is made first.
    """
    if record and replay:
        raise UsageError("--record and --replay exclude each other: a replay records nothing new.")
    session.record, session.replay = record, replay
    rest, tasks = arguments.split_tasks(words or [], only or [], session.project)
    target = arguments.plan_or_request(rest, session.project)
    flags: dict[str, object] = {"run.workers": workers, "run.apply": apply, "llm.model": model}
    flags |= _limit_flags(max_calls, max_tokens, max_cost, time_limit)
    options = RunOptions(only=tasks, from_run=from_run, is_confirmed=yes, is_strict=strict)
    if target.plan is not None:
        if ecko or pattern is not None or output is not None:
            raise UsageError(
                "--ecko, --pattern and --output need a request, but the argument is a plan."
            )
        return _execute_plan(session, target.plan, flags, options)
    # Before the planning: a request that cannot be confirmed must cost nothing.
    require_confirmable(session, options)
    free = plan_commands.require_free_output(session.project, output)
    request = PlanRequest(
        request=target.request,
        ecko=ecko,
        output=free,
        model=model or "",
        then="execute" if yes else "confirm",
        only=tasks,
        from_run=from_run,
    )
    loaded = session.load({**flags, "patterns.default": pattern})
    session.require_model(loaded)
    return plan_commands.plan_until_paused(session, run_request(session, loaded, request, options))


def _limit_flags(
    max_calls: int | None, max_tokens: int | None, max_cost: str | None, time_limit: str | None
) -> dict[str, object]:
    """Return the limits of the command line by the path of their setting; None: not given."""
    return {
        "run.max_calls": max_calls,
        "run.max_tokens": max_tokens,
        "run.max_cost": None if max_cost is None else arguments.amount(max_cost),
        "run.time_limit_minutes": None if time_limit is None else arguments.minutes(time_limit),
    }


def _execute_plan(
    session: CommandSession,
    path: Path,
    flags: Mapping[str, object],
    options: RunOptions,
    spent: Mapping[str, object] | None = None,
) -> int:
    """Check a plan file and execute it; the exit code.

    `spent` is the status of the run that planned it: a limit applies to both.
    """
    # The plan is checked before the settings: a bad plan needs no key and no store.
    checked = plan_commands.read_plan_file(session, path)
    if not checked.can_run:
        plan_commands.print_warnings(session, checked.findings, checked.name)
        return PlanError.exit_code
    require_known_tasks(options.only, checked.plan)
    require_confirmable(session, options)
    loaded = session.load(flags)
    session.require_model(loaded)
    plan, agents = plan_commands.pin_agents(session, loaded, checked.plan)

    async def job() -> int:
        # A question begins with this line itself.
        if options.is_confirmed and not session.json:
            session.console.say(f"{checked.name}: {count_noun(len(plan.tasks), 'task')}")
        async with session.open(loaded) as mimir:
            limits = plan_commands.run_limits(loaded)
            if spent is not None:
                limits = remaining_limits(limits, spent)
            return await _run(session, mimir, loaded, plan, checked.name, options, limits, agents)

    return session.run(job())


def resume(
    session: CommandSession,
    run: opt.Run = None,
    workers: opt.Workers = None,
    model: opt.Model = None,
    max_calls: opt.MaxCalls = None,
    max_tokens: opt.MaxTokens = None,
    max_cost: opt.MaxCost = None,
    time_limit: opt.TimeLimit = None,
    apply: opt.ApplyMode = None,
    record: opt.Record = None,
) -> int:
    """Continue a paused run.

    RUN is a run id or its beginning. Default: the latest run that can be resumed. Limits given
    here are the new totals of the run.
    """
    from mimir.cli.output.run_progress import run_and_show
    from mimir.domain import money
    from mimir.domain.run import RunBudget

    session.record = record
    limits = RunBudget(
        max_calls=max_calls,
        max_tokens=max_tokens,
        seconds=None if time_limit is None else arguments.minutes(time_limit) * 60,
        max_cost=None if max_cost is None else money.units(arguments.amount(max_cost)),
    )
    loaded = session.load({"run.workers": workers, "llm.model": model})

    async def resume_run(mimir: "Mimir") -> "tuple[int, PlanFollowing, Mapping[str, object]]":
        id = await mimir.find_run(run, resumable=True)
        if handoff := await mimir.handoff(id):
            session.console.note(f"Resuming from: {handoff}")
        code = await run_and_show(
            session, mimir, loaded, id, limits=limits, apply=apply, resumed=True
        )
        return code, await mimir.find_following(id), await mimir.status(id)

    code, following, spent = session.use_project(resume_run, loaded)
    # A request of `execute` continues with the execution of its plan.
    if code or following.then == "stop":
        return code
    if following.then == "confirm" and not session.console.can_ask:
        session.console.note(f"next: mimir execute {following.path}")
        return code
    given = {"run.workers": workers, "llm.model": model, "run.apply": apply}
    # Values that were given with the request, unless they are given now.
    given |= {name: value for name, value in following.settings.items() if not given.get(name)}
    options = RunOptions(
        only=following.only,
        from_run=following.from_run,
        is_confirmed=following.then == "execute",
    )
    return _execute_plan(session, session.project / following.path, given, options, spent)


def worker(
    session: CommandSession, run: opt.InRun = None, concurrency: opt.Concurrency = None
) -> int:
    """Serve a run with another process.

    Start any number of them, on every machine that reaches the store. Each claims tasks. If the
    coordinator dies, another process takes its place.
    """
    from mimir.cli.output.run_progress import join_and_show

    loaded = session.load({"run.workers": concurrency})
    session.require_model(loaded)

    async def job() -> int:
        async with session.open(loaded) as mimir:
            return await join_and_show(session, mimir, loaded, await mimir.find_work(run))

    return session.run(job())


def cancel(session: CommandSession, run: opt.OneRun) -> int:
    """End a run for good.

    RUN is a run id or its beginning. Completed work stays on the run branch.
    """

    async def cancel_run(mimir: "Mimir") -> str:
        id = await mimir.find_run(run)
        await mimir.cancel(id)
        return id

    id = session.use_project(cancel_run)
    shape = {"run": id, "outcome": "cancelled"}
    return session.show(shape, f"cancelled: {id}", f"next: mimir report {id}")


def apply(
    session: CommandSession,
    run: opt.Run = None,
    commit: opt.Commit = False,
    completed: opt.Completed = False,
    markers: opt.Markers = False,
    yes: opt.ApplyYes = False,
) -> int:
    """Apply the result to your files.

    RUN is a run id or its beginning. Default: the latest run. Files that you changed since the
    run began are merged. If you changed the same lines, no file is changed.
    """
    from mimir.cli.output import tables

    async def apply_result(mimir: "Mimir") -> "RunResult":
        id = await mimir.find_run(run)
        bring = partial(mimir.apply, id, commit=commit, completed=completed, markers=markers)
        result = await bring(is_confirmed=yes)
        if not result.shown or not session.console.can_ask:
            return result
        agreed = await session.console.ask(f"{result.message} Apply it all the same?")
        return await bring(is_confirmed=True) if agreed else result

    result = session.use_project(apply_result)
    if session.json:
        applied, conflicts = list(result.applied), list(result.conflicts)
        shape: dict[str, object] = {"schema": 1, "run": result.run, "applied": applied}
        shape |= {"conflicts": conflicts}
        shape |= {"shown": list(result.shown)} if result.shown else {}
        shape |= {"marked": list(result.marked)} if result.marked else {}
        session.console.json(shape)
    else:
        for line in tables.apply_table(result):
            session.console.say(line)
    return 1 if result.conflicts else result.exit_code


def require_confirmable(session: CommandSession, options: RunOptions) -> None:
    """Require `--yes`, or a terminal on which the user can confirm."""
    if not options.is_confirmed:
        session.console.require_terminal(next_step="Start without confirmation: add --yes")


def require_known_tasks(only: Sequence[str], plan: "Plan") -> None:
    """Require that the plan has these tasks; an error names the nearest."""
    known = [task.id for task in plan.tasks]
    for task in only:
        if task not in known:
            near = arguments.nearest(task, known)
            step = f"Did you mean {near}?" if near else f"Its tasks: {', '.join(known[:20])}"
            raise UsageError(f"--only names {task!r}, which is not in the plan.", next_step=step)


async def run_request(
    session: CommandSession, loaded: "LoadedSettings", request: PlanRequest, options: RunOptions
) -> int:
    """Plan a request and execute the plan; the exit code."""
    from mimir.domain.run import NO_LIMITS

    async with session.open(loaded) as mimir:
        result = await plan_commands.make_plan(session, mimir, loaded, request)
        plan_commands.note_pattern(session, result)
        plan_commands.print_warnings(session, result.findings, result.path)
        if result.exit_code:
            return result.exit_code
        plan, agents = result.plan, ()
        if any(task.agent for task in plan.tasks):
            checked = plan_commands.read_plan_file(session, session.project / result.path)
            if not checked.can_run:
                new = [one for one in checked.findings if one not in result.findings]
                plan_commands.print_warnings(session, new, checked.name)
                return PlanError.exit_code
            plan, agents = plan_commands.pin_agents(session, loaded, checked.plan)
        require_known_tasks(options.only, plan)
        limits = plan_commands.run_limits(loaded)
        # A limit applies to planning and execution together.
        if limits != NO_LIMITS:
            limits = remaining_limits(limits, await mimir.status(result.run))
        return await _run(session, mimir, loaded, plan, result.path, options, limits, agents)


def remaining_limits(limits: "RunBudget", spent: Mapping[str, object]) -> "RunBudget":
    """Return the limits that remain after planning; `spent` is its `status`."""
    from decimal import Decimal

    from mimir.domain import money

    def rest(limit: int | None, used: object) -> int | None:
        return None if limit is None else max(0, limit - (used if isinstance(used, int) else 0))

    cost = spent.get("cost")
    return replace(
        limits,
        max_calls=rest(limits.max_calls, spent.get("calls")),
        max_tokens=rest(limits.max_tokens, spent.get("tokens")),
        max_cost=rest(limits.max_cost, money.units(Decimal(cost)) if isinstance(cost, str) else 0),
    )


async def _run(
    session: CommandSession,
    mimir: "Mimir",
    loaded: "LoadedSettings",
    plan: "Plan",
    path: str,
    options: RunOptions,
    limits: "RunBudget",
    agents: "Sequence[PinnedDefinition]" = (),
) -> int:
    """Ask for confirmation, create the run and execute it; the exit code."""
    from mimir.cli.output import forecasts, recordings
    from mimir.cli.output.run_progress import run_and_show

    if not options.is_confirmed:
        chosen = _select_tasks(plan, options.only)
        probable = await mimir.forecast(chosen, workers=loaded.settings.run.workers)
        size = await mimir.plan_size(chosen)
        lines = forecasts.describe_run(path, probable, size, limits)
        for line in lines:
            session.console.note(line)
        if not await session.console.ask("Run it?"):
            session.console.note("Declined: no run was created.")
            return DECLINED
    with session.show_wait("Starting the run", loaded):
        source = await mimir.find_run(options.from_run) if options.from_run else ""
        run = await mimir.create_run(
            plan, path, only=options.only, limits=limits, from_run=source, agents=agents
        )
    code = await run_and_show(session, mimir, loaded, run, limits=limits, apply=None, resumed=False)
    # The preflight paused it: the user may know that the checks are right.
    if code == PlanError.exit_code and not options.is_confirmed and session.console.can_ask:
        if not await session.console.ask("Run it with these checks?"):
            return code
        code = await run_and_show(
            session, mimir, loaded, run, limits=limits, apply=None, resumed=True
        )
    # Only a run with replayed models has used a recording.
    if session.replay is None:
        return code
    return recordings.report_usage(session, mimir, code, is_strict=options.is_strict)


def _select_tasks(plan: "Plan", only: Sequence[str]) -> "Plan":
    """Return the plan reduced to these tasks and all their dependencies."""
    from mimir.domain.graph import TaskGraph

    if not only:
        return plan
    graph = TaskGraph.from_plan(plan)
    ids = set(only).union(*(graph.upstream(task) for task in only))
    return replace(plan, tasks=tuple(task for task in plan.tasks if task.id in ids))
