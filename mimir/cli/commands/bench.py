"""`mimir bench`: what the engine finds, and what it costs; offline."""

import importlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Protocol, cast

import typer

from mimir.cli.session import CommandSession

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[multi|scale|schedule|engine|faults]",
        help="Which, several if wanted; default: all.",
    ),
]
Smoke = Annotated[bool, typer.Option("--smoke", help="A little of each, to see that it works.")]
Large = Annotated[bool, typer.Option("--large", help="Also what takes very long.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Write JSON; to FILE.jsonl: one line more."),
]
Compare = Annotated[
    Path | None,
    typer.Option(
        "--compare", metavar="OLD.json", help="Exit with 1 if a figure left its tolerance."
    ),
]


class Door(Protocol):
    """The module `mimir_bench.entry`."""

    BenchOptions: Callable[..., object]
    BenchScreen: Callable[..., object]
    bench: Callable[[object, object], Awaitable[int]]


def bench(
    session: CommandSession,
    names: Names = None,
    smoke: Smoke = False,
    large: Large = False,
    output: Output = None,
    compare: Compare = None,
) -> int:
    """Measure the engine: context, claims, schedules, cost, planted faults."""
    from mimir.errors import UsageError

    if smoke and large:
        raise UsageError("--smoke and --large exclude each other.")
    door = cast("Door", importlib.import_module("mimir_bench.entry"))
    order = door.BenchOptions(
        names=tuple(names or ()),
        size="smoke" if smoke else "large" if large else "usual",
        store=session.store,
        json=session.json,
        output=output,
        compare=compare,
    )

    async def measure() -> int:
        console = session.console
        screen = door.BenchScreen(say=console.say, note=console.note, json=console.json)
        return await door.bench(screen, order)

    return session.run(measure())
