"""A process of `mimir mcp`, and the calls of a client, one JSON object a line."""

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from mimir.domain.json_value import as_object, as_objects, as_text
from mimir.errors import UnavailableError

PROTOCOL = "2026-07-28"
MAX_LINE = 8 * 1024 * 1024
_META: Mapping[str, object] = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL,
    "io.modelcontextprotocol/clientInfo": {"name": "mimir-demo", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class ServerConnection:
    """Calls to a running server; every request has the version, so there is no handshake."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._ids = itertools.count(1)

    async def list_tools(self) -> list[str]:
        """Return the names of the tools."""
        result = await self._request("tools/list", {})
        return [as_text(one.get("name")) for one in as_objects(result.get("tools"))]

    async def call(self, tool: str, **arguments: object) -> Mapping[str, object]:
        """Call a tool and return its structured content."""
        result = await self._request("tools/call", {"name": tool, "arguments": arguments})
        return as_object(result.get("structuredContent"))

    async def _request(self, method: str, params: Mapping[str, object]) -> Mapping[str, object]:
        id, process = next(self._ids), self._process
        message = {
            "jsonrpc": "2.0",
            "id": id,
            "method": method,
            "params": {**params, "_meta": _META},
        }
        if process.stdin is None or process.stdout is None:
            raise UnavailableError("The server has no pipes.")
        process.stdin.write(json.dumps(message).encode() + b"\n")
        await process.stdin.drain()
        # Notifications may come before the answer.
        while line := await process.stdout.readline():
            answer = as_object(json.loads(line))
            if answer.get("id") == id:
                if "error" in answer:
                    problem = as_object(answer["error"]).get("message")
                    raise UnavailableError(f"The server refused {method}: {problem}")
                return as_object(answer.get("result"))
        raise UnavailableError(
            "The server of the demo has ended.", next_step="See why: mimir mcp </dev/null"
        )


@asynccontextmanager
async def serve(
    project: Path, store: str, environment: Mapping[str, str]
) -> AsyncGenerator[ServerConnection]:
    """Serve a project during the block."""
    named = ("--store", store) if store else ()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "mimir", *named, "mcp", "--tools", "core,delegation"),
        cwd=project,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=MAX_LINE,
    )
    try:
        yield ServerConnection(process)
    finally:
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()
