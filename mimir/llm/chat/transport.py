"""The one HTTP client of an endpoint: reused connections, our own headers only, nothing taken from the environment.

What a library below adds (system and version names, headers and organisations from the environment) is not sent.
"""

import asyncio
from collections.abc import Mapping

import httpx2

from mimir.llm.config import EndpointConfig

LANE_HEADER = "x-mimir-lane"
_OURS = frozenset({"host", "content-length", "content-type", "accept", "connection", LANE_HEADER})
_ERROR_BYTES = 65_536
_ERROR_SECONDS = 1.0
"""Most time for the text of an error: its status is known, and a fatal one must stop at once."""


class Transport(httpx2.AsyncBaseTransport):
    """Sends what mimir says, and cuts error pages to a size that can be read whole."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, headers: Mapping[str, str]) -> None:
        self._inner = inner
        self._headers = dict(headers)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; the body of a good answer is left to the reader."""
        kept = [(k, v) for k, v in request.headers.items() if k.lower() in _OURS]
        request.headers = httpx2.Headers([*kept, *self._headers.items()])
        response = await self._inner.handle_async_request(request)
        if response.status_code < 300:
            return response
        content = await _head(response)
        headers = [
            (k, v)
            for k, v in response.headers.items()
            if k.lower() not in ("content-length", "transfer-encoding", "content-encoding")
        ]
        return httpx2.Response(response.status_code, headers=headers, content=content)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


async def _head(response: httpx2.Response) -> bytes:
    """Read the beginning of an error's body; what does not come in time, or breaks off, is left out."""
    taken = bytearray()
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    try:
        async with asyncio.timeout(_ERROR_SECONDS):
            async for chunk in stream:
                taken += chunk
                if len(taken) >= _ERROR_BYTES:
                    break
    except (TimeoutError, httpx2.HTTPError):
        pass
    finally:
        await response.aclose()
    return bytes(taken[:_ERROR_BYTES])


def client(config: EndpointConfig) -> httpx2.AsyncClient:
    """Make the client of an endpoint. Certificates are the system's (or SSL_CERT_FILE's)."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=30)
    headers = {"accept-encoding": "identity", "user-agent": "mimir", **_lower(config.headers)}
    if config.api_key:
        headers.setdefault("authorization", f"Bearer {config.api_key}")
    inner = httpx2.AsyncHTTPTransport(
        verify=config.base_url.startswith("https:"), limits=limits, proxy=config.proxy or None
    )
    timeout = httpx2.Timeout(
        connect=config.connect_seconds,
        read=config.stall_seconds,
        write=config.stall_seconds,
        pool=config.answer_seconds,
    )
    return httpx2.AsyncClient(
        transport=Transport(inner, headers),
        timeout=timeout,
        trust_env=False,
        follow_redirects=False,
    )


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
