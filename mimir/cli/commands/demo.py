"""`mimir demo`: a whole run on a small project of its own, offline."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, cast

import typer

from mimir.cli.commands.plan_commands import Record
from mimir.cli.session import CommandSession
from mimir.errors import UsageError

if TYPE_CHECKING:
    from mimir.cli.console import Console

Crash = Annotated[bool, typer.Option("--crash", help="Kill it in mid-run, and resume.")]
Directory = Annotated[
    Path | None,
    typer.Option(
        "--directory", metavar="DIR", help="Where the project is made; default: a fresh one."
    ),
]


class Play(Protocol):
    """The module `mimir.demo.entry`."""

    async def demo(
        self,
        console: "Console",
        *,
        crash: bool,
        directory: Path | None,
        store: str,
        record: Path | None,
    ) -> int:
        """Play it; the exit code."""
        ...


def demo(
    session: CommandSession,
    crash: Crash = False,
    directory: Directory = None,
    record: Record = None,
) -> int:
    """See a request become a proven result, offline, without a key."""
    if crash and record:
        raise UsageError(
            "--crash and --record do not go together: the process that is killed would not be recorded.",
            next_step="Record the demo without --crash, or replay its run: mimir replay",
        )
    play = cast("Play", importlib.import_module("mimir.demo.entry"))
    return session.run(
        play.demo(
            session.console,
            crash=crash,
            directory=directory,
            store=session.store,
            record=record and record.absolute(),
        )
    )
