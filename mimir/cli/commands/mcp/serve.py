"""`mimir mcp`: serve this project to agents by the Model Context Protocol."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.session import CommandSession
from mimir.errors import UnavailableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mimir.mcp_server.tools.tool_values import ServedTool
    from mimir.settings.layers import LoadedSettings

Tools = Annotated[
    str,
    typer.Option(
        "--tools", metavar="SETS", help="Tool sets, with commas; default: core,delegation."
    ),
]
Project = Annotated[
    Path | None,
    typer.Option("--project", metavar="DIR", help="Project to serve; default: this directory."),
]
Http = Annotated[bool, typer.Option("--http", help="Serve over HTTP, to clients with a token.")]
Address = Annotated[
    str,
    typer.Option("--address", metavar="HOST:PORT", help="With --http; default: 127.0.0.1:8811."),
]
PublicUrl = Annotated[
    str,
    typer.Option(
        "--public-url", metavar="URL", help="With --http: the only accepted host and origin."
    ),
]


def serve(
    session: CommandSession,
    tools: Tools = "",
    project: Project = None,
    http: Http = False,
    address: Address = "",
    public_url: PublicUrl = "",
) -> int:
    """Serve this project to agents by MCP, on standard input and output.

    An agent starts it. Runs that it starts continue without it.
    """
    if (address or public_url) and not http:
        raise UsageError("--address and --public-url need --http.")
    require_library()
    directory = (session.project / project).resolve() if project else session.project
    if not directory.is_dir():
        raise UsageError(f"--project {str(project)!r} is not a directory.")
    from mimir.mcp_server.messages import start_log
    from mimir.mcp_server.project_access import ProjectAccess

    access = ProjectAccess(directory, store=session.store, say=session.console.note)
    loaded = access.load()
    settings = loaded.settings.mcp
    start_log(settings.log_level)
    chosen = choose_tools(tools.split(",") if tools else settings.tools)
    if not http:
        from mimir.mcp_server.transports.stdio import serve_stdio

        session.run(serve_stdio(access, chosen, wait_seconds=settings.wait_seconds))
        return 0
    from mimir.mcp_server.transports.http import read_address, serve_http
    from mimir.mcp_server.transports.token_file import TokenFile

    place = read_address(address or settings.http, public_url or settings.public_url)
    tokens = TokenFile(own_directory(loaded))
    session.run(serve_http(access, chosen, tokens, place, settings))
    return 0


def own_directory(loaded: "LoadedSettings") -> Path:
    """Return the user's own directory of settings, which holds the tokens.

    Raises:
        UnavailableError: There is none.
    """
    if loaded.directory is None:
        raise UnavailableError(
            "There is no directory for tokens: HOME is not set.",
            next_step="Name a settings file in it: MIMIR_CONFIG=/path/mimir.toml",
        )
    return loaded.directory


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
    from mimir.mcp_server.tools.sets.catalogue import TOOL_SETS

    wanted = [name.strip() for name in names]
    for name in wanted:
        if name not in TOOL_SETS:
            raise UsageError(
                f"There is no tool set {name[:40]!r}.", next_step=f"Sets: {', '.join(TOOL_SETS)}"
            )
    return [tool for name, tools in TOOL_SETS.items() if name in wanted for tool in tools]
