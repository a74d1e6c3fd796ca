"""The server on standard input and output, for one client on this machine."""

import getpass
from collections.abc import Sequence

from mcp.server.stdio import stdio_server

from mimir.mcp_server.project_access import ProjectAccess
from mimir.mcp_server.server import ProtocolServer
from mimir.mcp_server.tools.tool_values import Principal, ServedTool


async def serve_stdio(
    project: ProjectAccess, tools: Sequence[ServedTool], *, wait_seconds: float
) -> None:
    """Serve until standard input is closed."""
    principal = Principal(
        name=f"stdio:{getpass.getuser()}", scopes=frozenset({"read", "work", "answer"})
    )
    serving = ProtocolServer(project, tools, lambda _: principal, wait_seconds=wait_seconds)
    server = serving.make()
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
