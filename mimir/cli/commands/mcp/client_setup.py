"""`mimir mcp config`: the lines that set a client up; they are printed, never written."""

import json
from typing import Annotated, Literal

import typer

from mimir.cli.session import CommandSession

Client = Annotated[
    Literal["claude", "vscode", "cursor", "codex"],
    typer.Argument(metavar="claude|vscode|cursor|codex", hidden=True),
]


def config(session: CommandSession, client: Client) -> int:
    """Print the lines that set a client up: claude, vscode, cursor or codex."""
    place, lines = _lines(client, str(session.project))
    if session.json:
        session.console.json({"schema": 1, "client": client, "place": place, "text": lines})
        return 0
    # The lines alone on standard output can be piped into a file.
    session.console.note(place)
    session.console.say(lines)
    return 0


def _lines(client: str, project: str) -> tuple[str, str]:
    """Return the place of the lines, and the lines."""
    started = {"command": "mimir", "args": ["mcp", "--project", project]}
    match client:
        case "claude":
            return (
                "type this in the project:",
                "claude mcp add mimir -- mimir mcp",
            )
        case "codex":
            args = json.dumps(started["args"])
            return (
                "~/.codex/config.toml:",
                f'[mcp_servers.mimir]\ncommand = "mimir"\nargs = {args}',
            )
        case "vscode":
            shape = {"servers": {"mimir": {"type": "stdio", **started}}}
            return ".vscode/mcp.json:", json.dumps(shape, indent=2)
        case _:
            return ".cursor/mcp.json:", json.dumps({"mcpServers": {"mimir": started}}, indent=2)
