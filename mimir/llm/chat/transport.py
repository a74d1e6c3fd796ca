"""The connections of one endpoint: used again, our own headers only, nothing taken from the environment.

Questions go to httpx2's transport as they are, without its client: cookies, redirects and logins have no place here, and looking for
them cost as much as the question. Each connection has a transport of its own, the one used last goes first: a common pool looks through
all connections twice a question.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import httpx2

from mimir.llm.config import EndpointConfig

LANE_HEADER = "x-mimir-lane"
_ERROR_BYTES = 65_536
_ERROR_SECONDS = 1.0
"""Most time for the text of an error: its status is known, and a fatal one must stop at once."""
_MOST_IDLE = 64
_ONE = httpx2.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=30)


class Connections:
    """Sends what mimir says, and cuts error pages to a size that can be read whole."""

    def __init__(self, config: EndpointConfig) -> None:
        """Name the endpoint; a connection is opened with the first question. Certificates are the system's (or SSL_CERT_FILE's)."""
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            "user-agent": "mimir",
            **_lower(config.headers),
        }
        if config.api_key:
            headers.setdefault("authorization", f"Bearer {config.api_key}")
        self._headers = headers
        self._config = config
        self._idle: list[httpx2.AsyncHTTPTransport] = []
        timeout = httpx2.Timeout(
            connect=config.connect_seconds,
            read=config.stall_seconds,
            write=config.stall_seconds,
            pool=config.answer_seconds,
        )
        self._extensions = {"timeout": timeout.as_dict()}

    async def post(self, content: bytes, headers: Mapping[str, str]) -> httpx2.Response:
        """Post a chat completion request; the body of a good answer is left to the reader, who closes it.

        Raises:
            httpx2.HTTPError: No connection, timed out, broke off.
        """
        request = httpx2.Request(
            "POST",
            self._url,
            headers={**self._headers, **headers},
            content=content,
            extensions=self._extensions,
        )
        line = self._idle.pop() if self._idle else self._opened()
        try:
            response = await line.handle_async_request(request)
        except BaseException:
            await self.release(line)
            raise
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        held = _Held(inner=stream, line=line, connections=self)
        return await _answer(response.status_code, response.headers, held)

    async def aclose(self) -> None:
        """Close the connections."""
        while self._idle:
            await self._idle.pop().aclose()

    @cached_property
    def _url(self) -> httpx2.URL:
        return httpx2.URL(f"{self._config.base_url}/chat/completions")

    @cached_property
    def _trust(self) -> ssl.SSLContext | bool:
        """Whom to trust; read once, since the system's certificates take long to read."""
        return httpx2.create_ssl_context() if self._url.scheme == "https" else False

    def _opened(self) -> httpx2.AsyncHTTPTransport:
        return httpx2.AsyncHTTPTransport(
            verify=self._trust, limits=_ONE, proxy=self._config.proxy or None
        )

    async def release(self, line: httpx2.AsyncHTTPTransport) -> None:
        """Have it for the next question; one that broke opens its connection anew."""
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(line)
        else:
            await line.aclose()


@dataclass(kw_only=True)
class _Held(httpx2.AsyncByteStream):
    """The body of an answer; its connection serves others once it is closed."""

    inner: httpx2.AsyncByteStream
    line: httpx2.AsyncHTTPTransport
    connections: Connections
    is_open: bool = field(default=True, init=False)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self.inner)

    async def aclose(self) -> None:
        """Close it, once."""
        if not self.is_open:
            return
        self.is_open = False
        try:
            await self.inner.aclose()
        finally:
            await self.connections.release(self.line)


async def _answer(
    status: int, headers: httpx2.Headers, stream: httpx2.AsyncByteStream
) -> httpx2.Response:
    if status < 300:
        return httpx2.Response(status, headers=headers, stream=stream)
    content = await _head(stream)
    kept = [
        (k, v)
        for k, v in headers.items()
        if k.lower() not in ("content-length", "transfer-encoding", "content-encoding")
    ]
    return httpx2.Response(status, headers=kept, content=content)


async def _head(stream: httpx2.AsyncByteStream) -> bytes:
    """Read the beginning of an error's body; what does not come in time, or breaks off, is left out."""
    taken = bytearray()
    try:
        async with asyncio.timeout(_ERROR_SECONDS):
            async for chunk in stream:
                taken += chunk
                if len(taken) >= _ERROR_BYTES:
                    break
    except (TimeoutError, httpx2.HTTPError):
        pass
    finally:
        await stream.aclose()
    return bytes(taken[:_ERROR_BYTES])


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
