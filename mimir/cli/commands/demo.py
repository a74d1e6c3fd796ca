"""`mimir demo`: a whole run on a small project of its own, offline."""

from pathlib import Path
from typing import Annotated

import typer

from mimir.cli.commands.options import Record
from mimir.cli.session import CommandSession
from mimir.errors import UsageError

Crash = Annotated[bool, typer.Option("--crash", help="Kill the process in mid-run, then resume.")]
Directory = Annotated[
    Path | None,
    typer.Option("--directory", metavar="DIR", help="New project; default: a temporary one."),
]


def demo(
    session: CommandSession,
    crash: Crash = False,
    directory: Directory = None,
    record: Record = None,
) -> int:
    """Show a whole run, offline.

    It needs no key and no network. The models are scripted; everything else is real.
    """
    from mimir.demo import entry
    from mimir.demo.screen import NarratorScreen

    if crash and record:
        raise UsageError(
            "--crash and --record exclude each other: the killed process cannot be recorded.",
            next_step="Record the demo without --crash, or replay its run: mimir replay",
        )
    console = session.console
    return session.run(
        entry.demo(
            NarratorScreen(say=console.say, width=lambda: console.width),
            crash=crash,
            directory=directory,
            store=session.store,
            record=record and record.absolute(),
        )
    )
