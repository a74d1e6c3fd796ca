"""`mimir serve-recording`: a recording as an OpenAI-compatible endpoint for other programs."""

from typing import Annotated

import typer

from mimir.cli.session import CommandSession

Recording = Annotated[str, typer.Argument(metavar="FILE", hidden=True)]
Port = Annotated[
    int, typer.Option("--port", metavar="N", min=0, max=65535, help="Default: a free one.")
]


def serve_recording(session: CommandSession, recording: Recording, port: Port = 0) -> int:
    """Answer other programs from a recording.

    FILE is a recording. The endpoint speaks OpenAI's chat protocol, on this machine only, until Ctrl-C; its URL is the first line.
    """
    import asyncio  # took a fifth of `mimir --help`

    from mimir.errors import UnavailableError
    from mimir.recordings.format import recording_file
    from mimir.recordings.server import recording_server

    tape, _ = recording_file.read_recording(session.project / recording, recording)
    try:
        server = recording_server.RecordingServer(tape, port)
    except OSError as error:
        raise UnavailableError(
            f"Port {port} cannot be used: {error.strerror}.", next_step="Name another: --port N"
        ) from None
    calls = len(server.shelf.calls)
    if session.json:
        session.console.json({"schema": 1, "url": server.url, "calls": calls})
    else:
        session.console.say(server.url)
        session.console.note(f"{calls} recorded calls; end with Ctrl-C")

    async def job() -> None:
        serving_it = asyncio.get_running_loop().run_in_executor(None, server.serve_forever, 0.1)
        try:
            await serving_it
        finally:
            server.shutdown()

    try:
        session.run(job())
    finally:
        server.server_close()
        left = len(server.shelf.left)
        session.console.note(f"{calls - left} of {calls} recorded calls were asked for")
    return 0
