"""`mimir chain` makes a plan of a request, `mimir check` says what is wrong with one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.session import CommandSession

if TYPE_CHECKING:
    from mimir.cli.facade import Planned

Request = Annotated[list[str] | None, typer.Argument(metavar="REQUEST", hidden=True)]
PlanName = Annotated[str | None, typer.Argument(metavar="PLAN", hidden=True)]
Ecko = Annotated[
    bool, typer.Option("--ecko", help="Let Ecko turn the request into a specification first.")
]
Output = Annotated[
    str | None,
    typer.Option("--output", metavar="FILE", help="Where the plan is written; default: chains/."),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Which model answers this time.")
]
Record = Annotated[
    Path | None,
    typer.Option(
        "--record", metavar="FILE", help="Write all that is asked and answered to a file."
    ),
]


def chain(
    session: CommandSession,
    request: Request = None,
    ecko: Ecko = False,
    output: Output = None,
    model: Model = None,
    record: Record = None,
) -> int:
    """Make a plan of a request.

    REQUEST is text, "-" for the standard input, or @file.
    """
    from mimir.cli.arguments import read_request
    from mimir.cli.verbs import planning
    from mimir.errors import UsageError

    if not request:
        raise UsageError("There is no request.", next_step='Write it: mimir chain "what you want"')
    wanted = planning.PlanRequest(
        request=read_request(request, session.project),
        ecko=ecko,
        output=planning.free_output(session.project, output),
        model=model or "",
    )
    session.record = record
    loaded = session.load({"llm.model": model})
    session.require_model(loaded)

    async def job() -> "Planned":
        async with session.open(loaded) as mimir:
            return await planning.make_plan(session, mimir, loaded, wanted)

    planned = session.run(job())
    planning.report_plan(session, planned)
    return planned.exit_code


def check(session: CommandSession, plan: PlanName = None) -> int:
    """Say what is wrong with a plan, before anything runs.

    PLAN is a file or a folder of chains/; left out, the newest plan.
    """
    from mimir.cli.arguments import the_plan
    from mimir.cli.error_output import REFUSED
    from mimir.cli.verbs import planning

    path = the_plan(session.project, plan)
    return 0 if planning.tell_checked(session, path) else REFUSED
