"""An endpoint for its own tests: over HTTP, from a server that sends any bytes."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from mimir.errors import ModelError
from mimir.llm.config import EndpointConfig
from mimir.llm.openai.capabilities import CapabilityChange
from mimir.llm.openai.endpoint import OpenAIEndpoint
from mimir.llm.protocol import ChatModel
from tests.support.clock import FrozenClock
from tests.support.model_requests import question

KEY = "sk-endpoint-0123456789"
LANE = "run-1/task-1/1/worker"
FOREVER = "default: [{text: a good answer, repeat: forever}]"


@asynccontextmanager
async def asking(
    url: str, *, learned: list[CapabilityChange] | None = None, **settings: object
) -> AsyncGenerator[ChatModel]:
    known = {"api_key": KEY, "model": "m", "stall_seconds": 0.3} | settings
    config = EndpointConfig(base_url=url, **known)  # type: ignore[arg-type]
    on_adapt = learned.append if learned is not None else None
    endpoint = OpenAIEndpoint(config, FrozenClock(), on_adapt)
    try:
        yield endpoint.for_lane(LANE)
    finally:
        await endpoint.aclose()


@asynccontextmanager
async def serving(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncGenerator[str]:
    """Serve each connection by a function; the endpoint's address."""
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def request_of(reader: asyncio.StreamReader) -> bytes:
    """Read one request to its end; its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    return await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split()[0]))


@asynccontextmanager
async def raw_server(*answers: bytes, asked: asyncio.Event | None = None) -> AsyncGenerator[str]:
    """Serve bytes as they are, one answer a connection; an answer without an end stalls."""
    left = list(answers)
    served: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        served.append(task)
        await reader.readuntil(b"\r\n\r\n")
        if asked is not None:
            asked.set()
        writer.write(left.pop(0))
        with suppress(ConnectionError):
            await writer.drain()
            await reader.read()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    try:
        async with serving(serve) as url:
            yield url
    finally:
        await asyncio.gather(*served)


def answer(body: bytes, kind: str = "application/json", *more: str) -> bytes:
    lines = [
        "HTTP/1.1 200 OK",
        *([f"Content-Type: {kind}"] if kind else []),
        f"Content-Length: {len(body)}",
        *more,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def refused(model: ChatModel) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.ask(question())
    return caught.value


GOOD = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}'
