"""`mimir replay`: the engine decides a recorded run again and compares every step."""

from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.session import CommandSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mimir.recordings.engine_replay.differences import ReplayResult

What = Annotated[str | None, typer.Argument(metavar="RUN|FILE", hidden=True)]
Diff = Annotated[bool, typer.Option("--diff", help="Name every difference.")]


def replay(session: CommandSession, what: What = None, diff: Diff = False) -> int:
    """Decide a recorded run again.

    RUN is a run id or its beginning. Default: the latest run. FILE is a recording. Nothing is
    executed: no model, no tool, no check.
    """
    from mimir.cli.output import recordings

    loaded = session.load()

    async def job() -> "Sequence[ReplayResult]":
        with session.show_wait("Replaying", loaded):
            from mimir.bootstrap import app

            return await app.replay(session.project, loaded, what or "")

    results = session.run(job())
    if session.json:
        session.console.json({"schema": 1, "runs": [recordings.shape(one) for one in results]})
    else:
        for one in results:
            for line in recordings.replay_lines(one, diff=diff):
                session.console.say(line)
    return recordings.DIFFERENT if any(one.differences for one in results) else 0
