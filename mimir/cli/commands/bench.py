"""`mimir bench`: the benchmarks of the engine, offline."""

import importlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer

from mimir.cli.session import CommandSession
from mimir.errors import UsageError

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", hidden=True)]
Smoke = Annotated[bool, typer.Option("--smoke", help="Run a small part of each benchmark.")]
Large = Annotated[bool, typer.Option("--large", help="Also run the cases that take very long.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Write JSON; FILE.jsonl gets one more line."),
]
Compare = Annotated[
    Path | None,
    typer.Option(
        "--compare", metavar="OLD.json", help="Exit with 1 if a number is outside its tolerance."
    ),
]


def bench(
    session: CommandSession,
    names: Names = None,
    smoke: Smoke = False,
    large: Large = False,
    output: Output = None,
    compare: Compare = None,
) -> int:
    """Run the benchmarks, offline.

    NAME is multi, scale, schedule, engine, faults or checks. Default: all but checks.
    """
    if smoke and large:
        raise UsageError("--smoke and --large exclude each other.")
    # By name: the product never imports its benchmarks.
    entry = importlib.import_module("mimir_bench.entry")
    measure: Callable[[object, object], Awaitable[int]] = entry.bench
    options = entry.BenchOptions(
        names=tuple(names or ()),
        size="smoke" if smoke else "large" if large else "usual",
        store=session.store,
        json=session.json,
        output=output,
        compare=compare,
    )

    async def job() -> int:
        return await measure(session.console, options)

    return session.run(job())
