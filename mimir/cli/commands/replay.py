"""`mimir replay`: a run again from its record alone, and where it is not as recorded."""

from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.session import CommandSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mimir.cli.facade import Replayed

What = Annotated[str | None, typer.Argument(metavar="RUN|FILE", hidden=True)]
Diff = Annotated[bool, typer.Option("--diff", help="Name every difference; the first one first.")]


def replay(session: CommandSession, what: What = None, diff: Diff = False) -> int:
    """Let the engine decide a run again, on what was recorded.

    RUN is a run, or how its name begins; left out, the latest. FILE is a recording. Nothing is executed: no model, no tool, no check.
    """
    from mimir.cli.facade import app
    from mimir.cli.output import recordings

    loaded = session.load()

    async def job() -> "Sequence[Replayed]":
        with session.show_wait("Replaying", loaded):
            return await app().replay(session.project, loaded, what or "")

    found = session.run(job())
    if session.json:
        session.console.json({"schema": 1, "runs": [recordings.shape(one) for one in found]})
    else:
        for one in found:
            for line in recordings.replay_lines(one, diff=diff):
                session.console.say(line)
    return recordings.DIFFERENT if any(one.differences for one in found) else 0
