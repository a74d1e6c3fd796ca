"""`mimir mcp`: serve this project to agents by the Model Context Protocol."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.session import CommandSession
from mimir.errors import UnavailableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mimir.mcp_server.tools.tool_values import ServedTool

Tools = Annotated[
    str, typer.Option("--tools", metavar="SETS", help="Tool sets, with commas; default: core.")
]
Project = Annotated[
    Path | None,
    typer.Option("--project", metavar="DIR", help="Project to serve; default: this directory."),
]


def serve(session: CommandSession, tools: Tools = "", project: Project = None) -> int:
    """Serve this project to agents by MCP, on standard input and output.

    An agent starts it. Runs that it starts continue without it.
    """
    require_library()
    directory = (session.project / project).resolve() if project else session.project
    if not directory.is_dir():
        raise UsageError(f"--project {str(project)!r} is not a directory.")
    from mimir.mcp_server.project_access import ProjectAccess
    from mimir.mcp_server.transports.stdio import serve_stdio

    access = ProjectAccess(directory, store=session.store, say=session.console.note)
    settings = access.load().settings.mcp
    chosen = choose_tools(tools.split(",") if tools else settings.tools)
    session.run(serve_stdio(access, chosen, wait_seconds=settings.wait_seconds))
    return 0


def require_library() -> None:
    """Require the package of the protocol.

    Raises:
        UnavailableError: It is not installed.
    """
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise UnavailableError(
            "The package mcp is not installed.", next_step="pip install 'mimir[mcp]'"
        )


def choose_tools(names: "Sequence[str]") -> "Sequence[ServedTool]":
    """Return the tools of sets, in the order of the sets.

    Raises:
        UsageError: There is no such set.
    """
    from mimir.mcp_server.tools.core_set import TOOL_SETS

    wanted = [name.strip() for name in names]
    for name in wanted:
        if name not in TOOL_SETS:
            raise UsageError(
                f"There is no tool set {name[:40]!r}.", next_step=f"Sets: {', '.join(TOOL_SETS)}"
            )
    return [tool for name, tools in TOOL_SETS.items() if name in wanted for tool in tools]
