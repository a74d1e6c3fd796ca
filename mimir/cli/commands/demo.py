"""`mimir demo`: a whole run on a small project of its own, offline."""

from pathlib import Path
from typing import Annotated, get_args

import typer

from mimir.cli.commands.options import Record
from mimir.cli.session import CommandSession
from mimir.errors import UsageError

Crash = Annotated[bool, typer.Option("--crash", help="Kill the process in mid-run, then resume.")]
Scene = Annotated[str, typer.Argument(metavar="[agents|people|delegate]", hidden=True)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="With people: give the usual answers.")]
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
    yes: Yes = False,
) -> int:
    """Show a whole run, offline.

    It needs no key and no network. The models are scripted; everything else is real. With
    "agents", a reviewer answers with citations, and a program's work is checked. With "people",
    you answer one question and approve specification and plan. With "delegate", another agent
    spawns two specialists through the server of `mimir mcp`.
    """
    from mimir.demo import entry
    from mimir.demo.screen import NarratorScreen
    from mimir.domain.json_value import as_member

    known = as_member(scene, get_args(entry.Scene))
    if known is None:
        raise UsageError(
            f"There is no demo {scene[:40]!r}.",
            next_step="Start: mimir demo, or mimir demo agents, people or delegate",
        )
    if scene and (crash or record):
        raise UsageError(f"The demo of {scene} has no --crash and no --record.")
    if scene == "people" and not yes and not session.console.can_ask:
        raise UsageError(
            "The answers are typed, and standard input is not a terminal.",
            next_step="Let the demo answer: mimir demo people --yes",
        )
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
            scene=known,
            ask=None if yes else console.ask_line,
        )
    )
