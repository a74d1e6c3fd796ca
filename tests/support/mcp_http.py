"""A server of `mimir mcp --http` in a process of its own, and requests as a client sends them."""

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.support.crash.process_forge import PythonProcess

VERSION = "2026-07-28"
META: Mapping[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


@dataclass(frozen=True, kw_only=True)
class HttpSite:
    """A running server."""

    url: str

    def post(
        self,
        token: str,
        method: str = "tools/list",
        params: Mapping[str, object] | None = None,
        **changed: Any,
    ) -> httpx2.Response:
        """Send one message; `changed` replaces parts of the request."""
        headers, body = self._write(token, method, params or {})
        headers |= changed.pop("headers", {})
        content: bytes = changed.get("content") or body
        url = self.url + str(changed.get("query", ""))
        kept = {name: value for name, value in headers.items() if value}
        return httpx2.post(url, headers=kept, timeout=60, trust_env=False, content=content)

    @contextlib.contextmanager
    def stream(
        self, token: str, method: str, params: Mapping[str, object]
    ) -> Generator[Iterator[str]]:
        """Send one message; yield the lines with data of its answer as they come."""
        headers, body = self._write(token, method, params)
        client = httpx2.Client(timeout=60, trust_env=False)
        with client, client.stream("POST", self.url, headers=headers, content=body) as response:
            yield (line for line in response.iter_lines() if line.startswith("data:"))

    @staticmethod
    def _write(
        token: str, method: str, params: Mapping[str, object]
    ) -> tuple[dict[str, str], bytes]:
        given = dict(params)
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**given, "_meta": META}}
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Mcp-Protocol-Version": VERSION,
            "Mcp-Method": method,
            **({"Mcp-Name": str(given["name"])} if "name" in given else {}),
        }
        return headers, json.dumps(body).encode()

    def get(self, token: str) -> httpx2.Response:
        """Ask for a stream of messages, as clients of earlier versions do."""
        headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
        return httpx2.get(self.url, headers=headers, timeout=60, trust_env=False)

    def call(self, token: str, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool; return its structured content and whether it is an error."""
        response = self.post(token, "tools/call", {"name": tool, "arguments": arguments})
        assert response.status_code == 200, response.text
        result = response.json()["result"]
        return {**result["structuredContent"], "is_error": result.get("isError", False)}


@contextlib.contextmanager
def http_site(project: Path, env: Mapping[str, str], tools: str = "core") -> Generator[HttpSite]:
    """Serve a project on a free port during the block."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        sys.executable,
        "-m",
        "mimir",
        "mcp",
        "--http",
        "--address",
        address,
        "--tools",
        tools,
    ]
    server = PythonProcess(
        command,
        cwd=project,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stderr is not None
        line = server.stderr.readline()
        assert "listening" in line, line + server.stderr.read()
        yield HttpSite(url=f"http://{address}/mcp")
    finally:
        server.terminate()
        printed = server.communicate()[1]
    # Also when it ends: a library prints nothing else.
    assert all(line.startswith("{") for line in printed.splitlines()), printed
