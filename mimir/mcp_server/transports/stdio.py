"""The server on standard input and output, for one client on this machine."""

import getpass
import secrets
from collections.abc import Sequence

from mcp.server.stdio import stdio_server

from mimir.mcp_server.project_access import ProjectAccess
from mimir.mcp_server.server import ProtocolServer
from mimir.mcp_server.tools.tool_values import Principal, ServedTool
from mimir.settings.principal import find_session


async def serve_stdio(
    project: ProjectAccess, tools: Sequence[ServedTool], *, wait_seconds: float
) -> None:
    """Serve until standard input is closed."""
    # One session for each process, unless the user names one.
    principal = Principal(
        name=f"stdio:{getpass.getuser()}",
        scopes=frozenset({"read", "work", "answer"}),
        session=find_session() or f"s-{secrets.token_hex(6)}",
    )
    serving = ProtocolServer(project, tools, lambda _: principal, wait_seconds=wait_seconds)
    server = serving.make()
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
