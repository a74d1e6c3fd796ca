"""A client of the library, connected to a server of `mimir mcp` in a process of its own."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextContent, TextResourceContents

from tests.support.crash.process_forge import PythonProcess
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

    async def wait_for(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool that waits until nothing works any more, again on a slow machine."""
        found: dict[str, Any] = {"status": "working"}
        for _ in range(20):
            found = await self.call(tool, **arguments, wait_seconds=50)
            if found["status"] not in ("queued", "working", "running"):
                break
        return found

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
    with PythonProcess(
        [sys.executable, "-m", "mimir", "mcp", *words],
        cwd=project,
        env=environment(
            **{"MIMIR_MODEL": "play:../script.yaml", "MIMIR_CHECKS__CONTROLS": "never", **variables}
        ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdin is not None and server.stdout is not None  # noqa: PT018
        # The library starts a program; this one joins its pipes to those of the forked server.
        own = f"/proc/{os.getpid()}/fd"
        joined = f"cat {own}/{server.stdout.fileno()} & exec cat >{own}/{server.stdin.fileno()}"
        command = StdioServerParameters(command="sh", args=["-c", joined])
        async with client(stdio_client(command)) as connected:
            yield Caller(connected)
