"""`mimir replay`, `mimir serve-recording`: decide a run again, or serve its answers."""

from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.session import CommandSession
from mimir.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mimir.recordings.engine_replay.differences import ReplayResult

Source = Annotated[str | None, typer.Argument(metavar="RUN|FILE", hidden=True)]
Diff = Annotated[bool, typer.Option("--diff", help="Name every difference.")]

Recording = Annotated[str, typer.Argument(metavar="FILE", hidden=True)]
Port = Annotated[
    int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0: a free one.")
]


def replay(session: CommandSession, source: Source = None, diff: Diff = False) -> int:
    """Decide a recorded run again.

    RUN is a run id or its beginning. Default: the latest run. FILE is a recording. Nothing is
    executed: no model, no tool, no check.
    """
    from mimir.cli.output import recordings

    loaded = session.load()

    async def job() -> "Sequence[ReplayResult]":
        with session.show_wait("Replaying", loaded):
            from mimir.bootstrap import app

            return await app.replay(session.project, loaded, source or "")

    results = session.run(job())
    lines = [line for one in results for line in recordings.replay_lines(one, diff=diff)]
    session.show({"runs": [recordings.shape(one) for one in results]}, *lines)
    return recordings.DIFFERENT if any(one.differences for one in results) else 0


def serve_recording(session: CommandSession, recording: Recording, port: Port = 0) -> int:
    """Serve recorded answers over HTTP.

    FILE is a recording. The OpenAI-compatible endpoint serves other programs on this machine
    until Ctrl-C. Its URL is the first line of the output.
    """
    import asyncio  # a fifth of the time of `mimir --help`

    from mimir.recordings.format import recording_file
    from mimir.recordings.server import recording_server

    content, _ = recording_file.read_recording(session.project / recording, recording)
    try:
        server = recording_server.RecordingServer(content, port)
    except OSError as error:
        raise UnavailableError(
            f"Port {port} is not available: {error.strerror}.",
            next_step="Choose another port: --port N",
        ) from None
    calls = len(server.index.calls)
    if session.json:
        session.console.json({"schema": 1, "url": server.url, "calls": calls})
    else:
        session.console.say(server.url)
        session.console.note(f"{calls} recorded calls; stop with Ctrl-C")

    async def job() -> None:
        serving = asyncio.get_running_loop().run_in_executor(None, server.serve_forever, 0.1)
        try:
            await serving
        finally:
            # Without it the thread would never end, and the loop would wait for it.
            server.shutdown()

    try:
        session.run(job())
    finally:
        server.server_close()
        unused = len(server.index.left)
        session.console.note(f"{calls - unused} of {calls} recorded calls were requested")
    return 0
