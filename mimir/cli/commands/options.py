"""Arguments and options of the commands, as types that typer reads."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

# Arguments are hidden: the text of each command explains its own.
Request = Annotated[list[str] | None, Argument(metavar="REQUEST", hidden=True)]
PlanName = Annotated[str | None, Argument(metavar="PLAN", hidden=True)]
TryChecks = Annotated[bool, Option("--run", help="Run the checks too, on your files as they are.")]
Ecko = Annotated[bool, Option("--ecko", help="Turn the request into a specification first.")]
Pattern = Annotated[
    Literal["direct", "ask", "sdd", "auto"] | None,
    Option("--pattern", help="Stops of planning at which you decide; default: direct."),
]
Output = Annotated[
    str | None,
    Option("--output", metavar="FILE", help="File of the plan; default: a new folder in chains/."),
]
Model = Annotated[
    str | None, Option("--model", metavar="NAME", help="Model to use for this command.")
]
Record = Annotated[
    Path | None, Option("--record", metavar="FILE", help="Write a recording of the run to FILE.")
]
Words = Annotated[list[str] | None, Argument(metavar="PLAN|REQUEST", hidden=True)]
Run = Annotated[str | None, Argument(metavar="RUN", hidden=True)]
OneRun = Annotated[str, Argument(metavar="RUN", hidden=True)]
Workers = Annotated[
    int | None, Option("--workers", metavar="N", min=1, max=256, help="Tasks at once; default: 4.")
]
InRun = Annotated[
    str | None,
    Option("--run", metavar="RUN", help="Run to serve; default: the newest running one."),
]
Concurrency = Annotated[
    int | None,
    Option("--concurrency", metavar="N", min=1, max=256, help="Tasks at once; default: 4."),
]
Only = Annotated[
    list[str] | None,
    Option("--only", metavar="TASK", help="These tasks and all their dependencies: a,b."),
]
From = Annotated[
    str, Option("--from", metavar="RUN", help="Reuse this run's completed tasks if unchanged.")
]
MaxCalls = Annotated[
    int | None, Option("--max-calls", metavar="N", min=1, help="Limit of model calls.")
]
MaxTokens = Annotated[
    int | None, Option("--max-tokens", metavar="N", min=1, help="Limit of tokens.")
]
MaxCost = Annotated[
    str | None, Option("--max-cost", metavar="AMOUNT", help="Limit of cost; needs llm.prices.")
]
TimeLimit = Annotated[
    str | None, Option("--time-limit", metavar="TIME", help="Minutes, or 30m, 2h, 1h30m.")
]
Yes = Annotated[bool, Option("--yes", "-y", help="Start without confirmation.")]
ApplyYes = Annotated[
    bool, Option("--yes", "-y", help="Apply it even if git then shows files that it ignored.")
]
ApplyMode = Annotated[
    Literal["auto", "never", "commit"] | None,
    Option("--apply", help="Whether to apply the result to your files."),
]
Replay = Annotated[
    Path | None, Option("--replay", metavar="FILE", help="Take model answers from a recording.")
]
Strict = Annotated[
    bool, Option("--strict", help="With --replay: fail if a call is unused or missing.")
]
Completed = Annotated[
    bool, Option("--completed", help="The completed tasks of a run that failed or was cancelled.")
]
Markers = Annotated[
    bool, Option("--markers", help="Write conflict markers where you changed the same lines.")
]
Commit = Annotated[bool, Option("--commit", help="Also commit it on your branch.")]
