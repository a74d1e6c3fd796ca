"""`mimir execute`, `resume`, `worker`, `cancel`, `apply`: what makes a run go, stop and reach the person's files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mimir.cli.commands.plan_commands import Ecko, Model, Output, Record
from mimir.cli.session import CommandSession

if TYPE_CHECKING:
    from mimir.domain.run import RunResult

Words = Annotated[list[str] | None, typer.Argument(metavar="PLAN|REQUEST", hidden=True)]
Run = Annotated[str | None, typer.Argument(metavar="RUN", hidden=True)]
OneRun = Annotated[str, typer.Argument(metavar="RUN", hidden=True)]
Workers = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", min=1, max=256, help="Tasks at once; default: 4."),
]
InRun = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help="Which run; default: the newest under way."),
]
Concurrency = Annotated[
    int | None,
    typer.Option("--concurrency", metavar="N", min=1, max=256, help="Tasks at once; default: 4."),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only", metavar="TASK", help="These tasks (several: a,b), with all that they depend on."
    ),
]
From = Annotated[
    str,
    typer.Option("--from", metavar="RUN", help="Take over what this run completed and is equal."),
]
MaxCalls = Annotated[
    int | None, typer.Option("--max-calls", metavar="N", min=1, help="Most model calls of the run.")
]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", metavar="N", min=1, help="Most tokens of the run.")
]
MaxCost = Annotated[
    str | None,
    typer.Option("--max-cost", metavar="AMOUNT", help="Most money, at the prices in llm.prices."),
]
TimeLimit = Annotated[
    str | None, typer.Option("--time-limit", metavar="TIME", help="Minutes, or 30m, 2h, 1h30m.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it begins.")]
ApplyMode = Annotated[
    Literal["auto", "never", "commit"] | None,
    typer.Option("--apply", help="What is brought into your files at the end."),
]
Replay = Annotated[
    Path | None,
    typer.Option("--replay", metavar="FILE", help="Let a recording answer; do the work again."),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="With --replay: fail if a call is left over or missing.")
]
Commit = Annotated[bool, typer.Option("--commit", help="Make a commit of it on your branch.")]


def execute(
    session: CommandSession,
    words: Words = None,
    workers: Workers = None,
    only: Only = None,
    from_run: From = "",
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    time_limit: TimeLimit = None,
    yes: Yes = False,
    apply: ApplyMode = None,
    ecko: Ecko = False,
    output: Output = None,
    model: Model = None,
    record: Record = None,
    replay: Replay = None,
    strict: Strict = False,
) -> int:
    """Run a plan; of a request, make the plan first.

    PLAN is a file or a folder of chains/; left out, the newest plan. REQUEST is text in quotes, "-" for the standard input, or @file.
    """
    from mimir.cli.arguments import amount, minutes, plan_or_request, split_tasks
    from mimir.cli.error_output import REFUSED
    from mimir.cli.verbs import planning, running
    from mimir.errors import UsageError

    session.record, session.replay = record, replay
    if record and replay:
        raise UsageError("--record and --replay do not go together: nothing new would be recorded.")
    rest, tasks = split_tasks(words or [], only or [], session.project)
    named = plan_or_request(rest, session.project)
    flags = {
        "run.workers": workers,
        "run.max_calls": max_calls,
        "run.max_tokens": max_tokens,
        "run.max_cost": None if max_cost is None else amount(max_cost),
        "run.time_limit_minutes": None if time_limit is None else minutes(time_limit),
        "run.apply": apply,
        "llm.model": model,
    }
    order = running.RunOptions(only=tasks, from_run=from_run, is_agreed=yes, is_strict=strict)
    if named.plan is None:
        running.must_be_agreed(session, order)
        free = planning.free_output(session.project, output)
        wanted = planning.PlanRequest(
            request=named.request, ecko=ecko, output=free, model=model or ""
        )
        loaded = session.load(flags)
        session.require_model(loaded)
        return session.run(running.run_request(session, loaded, wanted, order))
    if ecko or output is not None:
        raise UsageError("--ecko and --output go with a request; what was given is a plan.")
    checked = planning.read_plan_file(session, named.plan)
    if not checked.can_run:
        planning.print_warnings(session, checked.findings, checked.name)
        return REFUSED
    running.must_know(tasks, checked.plan)
    running.must_be_agreed(session, order)
    loaded = session.load(flags)
    session.require_model(loaded)
    return session.run(running.run_plan(session, loaded, checked.plan, checked.name, order))


def resume(
    session: CommandSession,
    run: Run = None,
    workers: Workers = None,
    model: Model = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    time_limit: TimeLimit = None,
    apply: ApplyMode = None,
    record: Record = None,
) -> int:
    """Go on with a paused run.

    RUN is a run, or how its name begins; left out, the latest. Budgets given here are the run's new totals.
    """
    from mimir.cli.arguments import amount, minutes
    from mimir.cli.verbs import running
    from mimir.domain import money
    from mimir.domain.run import RunBudget

    session.record = record
    cost = None if max_cost is None else money.units(amount(max_cost))
    seconds = None if time_limit is None else minutes(time_limit) * 60
    limits = RunBudget(max_calls=max_calls, max_tokens=max_tokens, seconds=seconds, max_cost=cost)
    loaded = session.load({"run.workers": workers, "llm.model": model})
    return session.run(running.resume_run(session, loaded, run, limits, apply))


def worker(session: CommandSession, run: InRun = None, concurrency: Concurrency = None) -> int:
    """Help a run that is under way, here or in another process.

    Start as many as you like, on any machine that reaches the store. Each claims tasks; when the one that coordinates dies, another one does.
    """
    from mimir.cli.output import run_progress

    loaded = session.load({"run.workers": concurrency})
    session.require_model(loaded)

    async def job() -> int:
        async with session.open(loaded) as mimir:
            return await run_progress.join_and_show(
                session, mimir, loaded, await mimir.find_work(run)
            )

    return session.run(job())


def cancel(session: CommandSession, run: OneRun) -> int:
    """End a run for good.

    RUN is a run, or how its name begins. What it completed stays on its branch.
    """
    loaded = session.load()

    async def job() -> str:
        async with session.open(loaded, create=False) as mimir:
            id = await mimir.find_run(run)
            await mimir.cancel(id)
            return id

    id = session.run(job())
    if session.json:
        session.console.json({"schema": 1, "run": id, "outcome": "cancelled"})
    else:
        session.console.say(f"cancelled: {id}")
        session.console.say(f"next: mimir report {id}")
    return 0


def apply(session: CommandSession, run: Run = None, commit: Commit = False) -> int:
    """Bring a run's result into your files.

    RUN is a run, or how its name begins; left out, the latest. Where you changed a touched file meanwhile, nothing is changed.
    """
    from mimir.cli.output import tables

    loaded = session.load()

    async def job() -> "RunResult":
        async with session.open(loaded, create=False) as mimir:
            return await mimir.apply(await mimir.find_run(run), commit=commit)

    ending = session.run(job())
    if session.json:
        applied, conflicts = list(ending.applied), list(ending.conflicts)
        shape = {"schema": 1, "run": ending.run, "applied": applied, "conflicts": conflicts}
        session.console.json(shape)
    else:
        for line in tables.apply_table(ending):
            session.console.say(line)
    return 1 if ending.conflicts else ending.exit_code
