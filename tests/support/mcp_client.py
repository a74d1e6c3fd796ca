"""A client of the library, connected to a server of `mimir mcp` in a process of its own."""

import contextlib
import json
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextContent, TextResourceContents

from tests.support.terminal import environment


class Caller:
    """A connected client whose answers are plain values."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool; return its structured content and whether it is an error."""
        result = await self.client.call_tool(tool, arguments)
        for block in result.content:
            assert isinstance(block, TextContent)
            assert json.loads(block.text) == result.structured_content
        return {**result.structured_content, "is_error": result.is_error}

    async def read(self, uri: str) -> str:
        """Read a resource."""
        content = (await self.client.read_resource(uri)).contents[0]
        assert isinstance(content, TextResourceContents)
        return content.text

    async def list_as_text(self) -> str:
        """Return the list of tools as it is on the wire."""
        return (await self.client.list_tools()).model_dump_json(by_alias=True, exclude_none=True)


@contextlib.asynccontextmanager
async def connected_client(
    project: Path, words: Sequence[str] = (), *, client: Any = Client, **variables: str
) -> AsyncGenerator[Caller]:
    """Start a server with a scripted model, and connect to it; it ends with the block."""
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "mimir", "mcp", *words],
        cwd=project,
        env=environment(
            **{"MIMIR_MODEL": "play:../script.yaml", "MIMIR_CHECKS__CONTROLS": "never", **variables}
        ),
    )
    async with client(stdio_client(command)) as connected:
        yield Caller(connected)
