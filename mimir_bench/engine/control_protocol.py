"""Protocol between the benchmark and its model server: orders and meters."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Mapping
from dataclasses import asdict

import httpx2

from mimir.errors import UnavailableError
from mimir_bench.engine.workload import Workload


class ServerControl:
    """Client that sets the server's workload and reads its meter."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def order(self, load: Workload, latency_seconds: float) -> None:
        """Start a workload; the meter begins at zero."""
        await self._post("orders", {"load": asdict(load), "latency_seconds": latency_seconds})

    async def meter(self) -> Mapping[str, float]:
        """Return the traffic since the last order."""
        return await self._post("meter", {})

    async def _post(self, name: str, body: object) -> Mapping[str, float]:
        # A proxy from the environment would see, and slow, requests to this machine.
        async with httpx2.AsyncClient(trust_env=False) as client:
            response = await client.post(f"{self._url}/{name}", json=body)
            figures: dict[str, float] = response.json()
            return figures


@contextlib.asynccontextmanager
async def model_server() -> AsyncGenerator[str]:
    """Start the model server and return its URL; it ends with the block."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mimir_bench.engine.model_server"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is handled by the parent, which ends it
    )
    try:
        line = await process.stdout.readline() if process.stdout else b""
        if not line.strip().isdigit():
            raise UnavailableError("The benchmark's model server did not start.")
        yield f"http://127.0.0.1:{int(line)}"
    finally:
        # It may have ended already, such as after an error of its own.
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
