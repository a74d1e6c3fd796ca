"""Connection pool of one endpoint, on aiohttp.

It sends mimir's own headers only and takes nothing from the environment. aiohttp needs a third of the CPU time that httpx2
needs for a request (decision 0006).
"""

import asyncio
import io
import select
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cached_property

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from mimir.domain.value_class import value_class
from mimir.llm.config import EndpointConfig

LANE_HEADER = "x-mimir-lane"
_ERROR_BYTES = 65_536
# Most time for the text of an error: its status is known, and a fatal one must stop at once.
_ERROR_SECONDS = 1.0
_IDLE_SECONDS = 30
# More connections than are ever idle at a time.
_MOST_STALE = 300


@value_class
class HttpReply:
    """A response whose body is not read yet; the reader closes it."""

    status: int
    headers: Mapping[str, str]
    """Names in any case."""
    pieces: AsyncIterator[bytes]
    """Of the body; raises `aiohttp.ClientError` on a time-out or a broken connection."""
    close: Callable[[], None]
    """Returns the connection to the pool if the body was read to its end; otherwise closes it."""

    async def read_beginning(self) -> bytes:
        """Read the beginning of an error's body, as far as it arrives in time."""
        data = bytearray()
        try:
            async with asyncio.timeout(_ERROR_SECONDS):
                async for piece in self.pieces:
                    data += piece
                    if len(data) >= _ERROR_BYTES:
                        break
        except (TimeoutError, aiohttp.ClientError):
            pass
        return bytes(data[:_ERROR_BYTES])


class ConnectionPool:
    """The connections of one endpoint; the first request opens one."""

    def __init__(self, config: EndpointConfig) -> None:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            "user-agent": "mimir",
            **{name.lower(): value for name, value in config.headers.items()},
        }
        if config.api_key:
            scheme = "Bearer " if config.key_header == "authorization" else ""
            headers.setdefault(config.key_header, f"{scheme}{config.api_key}")
        self._headers = headers
        self._config = config
        self._url = URL(f"{config.base_url}/chat/completions")

    async def post(self, content: bytes, headers: Mapping[str, str]) -> HttpReply:
        """Post a chat completion request; raise `aiohttp.ClientError` if the connection fails."""
        response = await self._session.post(
            self._url,
            headers={**self._headers, **headers},
            data=io.BytesIO(content),  # aiohttp warns of plain bytes above a megabyte
            allow_redirects=False,  # the key must not follow to another address
            proxy=self._config.proxy or None,
        )
        return _reply(response)

    async def get(self, name: str) -> HttpReply:
        """Get a resource of the endpoint; raises as `post`."""
        response = await self._session.get(
            URL(f"{self._config.base_url}/{name}"),
            headers=self._headers,
            allow_redirects=False,
            proxy=self._config.proxy or None,
        )
        return _reply(response)

    async def aclose(self) -> None:
        """Close the connections."""
        if session := self.__dict__.pop("_session", None):
            await session.close()

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        seconds = self._config.connect_seconds
        return aiohttp.ClientSession(
            # No limit here: `RateLimiter` bounds the concurrent requests.
            connector=_Connector(
                ssl=self._certificates(), limit=0, keepalive_timeout=_IDLE_SECONDS
            ),
            cookie_jar=aiohttp.DummyCookieJar(),  # no state between requests
            auto_decompress=False,  # a small packed body could expand without bound
            timeout=aiohttp.ClientTimeout(
                connect=seconds, sock_connect=seconds, sock_read=self._config.stall_seconds
            ),
        )

    def _certificates(self) -> ssl.SSLContext | bool:
        """Load the certificates of the system or of SSL_CERT_FILE, once: loading is slow."""
        if self._url.scheme != "https":
            return True
        from httpx2 import create_ssl_context

        return create_ssl_context()


def _reply(response: aiohttp.ClientResponse) -> HttpReply:
    return HttpReply(
        status=response.status,
        headers=response.headers,
        pieces=response.content.iter_any(),
        close=response.close,
    )


class _Connector(aiohttp.TCPConnector):
    """Connector that reuses no connection on which data has arrived.

    Such data is the connection's end, or would be taken for the answer to the next request.
    """

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  aiohttp's own signature
    ) -> Connection:
        """Return a connection without waiting data; raise `aiohttp.ClientError` if there is none."""
        for _ in range(_MOST_STALE):
            connection = await super().connect(req, traces, timeout)
            if not _has_data(connection):
                return connection
            connection.close()
        raise aiohttp.ClientConnectionError("the endpoint sends data before a request")


def _has_data(connection: Connection) -> bool:
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None:
        return False
    # The event loop may not have seen the data yet, so the socket itself is polled.
    poll = select.poll()
    poll.register(transport.get_extra_info("socket"), select.POLLIN)
    return protocol.should_close or bool(poll.poll(0))
