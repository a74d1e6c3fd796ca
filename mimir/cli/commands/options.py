"""Arguments and options of the commands, as types that typer reads."""

from pathlib import Path
from typing import Annotated, Literal

import typer

# Arguments are hidden: the text of each command explains its own.
Request = Annotated[list[str] | None, typer.Argument(metavar="REQUEST", hidden=True)]
PlanName = Annotated[str | None, typer.Argument(metavar="PLAN", hidden=True)]
Ecko = Annotated[bool, typer.Option("--ecko", help="Turn the request into a specification first.")]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", metavar="FILE", help="File of the plan; default: a new folder in chains/."
    ),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Model to use for this command.")
]
Record = Annotated[
    Path | None,
    typer.Option("--record", metavar="FILE", help="Write a recording of the run to FILE."),
]
Words = Annotated[list[str] | None, typer.Argument(metavar="PLAN|REQUEST", hidden=True)]
Run = Annotated[str | None, typer.Argument(metavar="RUN", hidden=True)]
OneRun = Annotated[str, typer.Argument(metavar="RUN", hidden=True)]
Workers = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", min=1, max=256, help="Tasks at once; default: 4."),
]
InRun = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help="Run to serve; default: the newest running one."),
]
Concurrency = Annotated[
    int | None,
    typer.Option("--concurrency", metavar="N", min=1, max=256, help="Tasks at once; default: 4."),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="TASK", help="These tasks and all their dependencies: a,b."),
]
From = Annotated[
    str,
    typer.Option("--from", metavar="RUN", help="Reuse this run's completed tasks if unchanged."),
]
MaxCalls = Annotated[
    int | None, typer.Option("--max-calls", metavar="N", min=1, help="Limit of model calls.")
]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", metavar="N", min=1, help="Limit of tokens.")
]
MaxCost = Annotated[
    str | None,
    typer.Option("--max-cost", metavar="AMOUNT", help="Limit of cost; needs llm.prices."),
]
TimeLimit = Annotated[
    str | None, typer.Option("--time-limit", metavar="TIME", help="Minutes, or 30m, 2h, 1h30m.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Start without confirmation.")]
ApplyMode = Annotated[
    Literal["auto", "never", "commit"] | None,
    typer.Option("--apply", help="Whether to apply the result to your files."),
]
Replay = Annotated[
    Path | None,
    typer.Option("--replay", metavar="FILE", help="Take model answers from a recording."),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="With --replay: fail if a call is unused or missing."),
]
Commit = Annotated[bool, typer.Option("--commit", help="Also commit it on your branch.")]
