"""`mimir demo`: a whole run on a small project of its own, offline."""

from pathlib import Path
from typing import Annotated

import typer

from mimir.cli.commands.options import Record
from mimir.cli.session import CommandSession
from mimir.errors import UsageError

Crash = Annotated[bool, typer.Option("--crash", help="Kill the process in mid-run, then resume.")]
Scene = Annotated[str, typer.Argument(metavar="[agents]", hidden=True)]
Directory = Annotated[
    Path | None,
    typer.Option("--directory", metavar="DIR", help="New project; default: a temporary one."),
]


def demo(
    session: CommandSession,
    scene: Scene = "",
    crash: Crash = False,
    directory: Directory = None,
    record: Record = None,
) -> int:
    """Show a whole run, offline.

    It needs no key and no network. The models are scripted; everything else is real. With
    "agents", a reviewer answers with citations, and a program's work is checked.
    """
    from mimir.demo import entry
    from mimir.demo.screen import NarratorScreen

    if scene not in ("", "agents"):
        raise UsageError(
            f"There is no demo {scene[:40]!r}.", next_step="Start: mimir demo, or mimir demo agents"
        )
    if scene and (crash or record):
        raise UsageError("The demo of agents has no --crash and no --record.")
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
            has_agents=bool(scene),
        )
    )
