"""`mimir bench`: what the engine finds, and what it costs; offline."""

import importlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, cast

import typer

from mimir.cli.session import Session

if TYPE_CHECKING:
    from mimir.cli.console import Console

Names = Annotated[list[str] | None, typer.Argument(metavar="[faults]", help="Which; default: all.")]
Smoke = Annotated[bool, typer.Option("--smoke", help="A few runs of each, in a minute.")]
Compare = Annotated[
    Path | None,
    typer.Option("--compare", metavar="OLD.json", help="Exit with 1 if a figure differs."),
]


class Door(Protocol):
    """The module `mimir.bench.door`."""

    Order: Callable[..., object]
    bench: Callable[["Console", object], Awaitable[int]]


def bench(
    session: Session, names: Names = None, smoke: Smoke = False, compare: Compare = None
) -> int:
    """Measure the engine: planted faults."""
    door = cast("Door", importlib.import_module("mimir.bench.door"))
    order = door.Order(names=tuple(names or ()), smoke=smoke, json=session.json, compare=compare)

    async def measure() -> int:
        return await door.bench(session.console, order)

    return session.run(measure())
