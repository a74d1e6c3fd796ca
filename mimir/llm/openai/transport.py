"""The connections of one endpoint: used again, our own headers only, nothing taken from the environment.

aiohttp and not httpx2, which OpenAI's own client uses: its parser is compiled, and a question costs a third of the processor's
time (decision 0006).
"""

import asyncio
import io
import select
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from mimir.llm.config import EndpointConfig

LANE_HEADER = "x-mimir-lane"
_ERROR_BYTES = 65_536
_ERROR_SECONDS = 1.0
"""Most time for the text of an error: its status is known, and a fatal one must stop at once."""
_IDLE_SECONDS = 30
_MOST_SPOILT = 300
"""More connections than are idle at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """An answer whose body is not read yet; who has it closes it."""

    status: int
    headers: Mapping[str, str]
    """Found by their names in any case."""
    pieces: AsyncIterator[bytes]
    """Of the body, as they come.

    Raises:
        aiohttp.ClientError: Timed out, broke off.
    """
    close: Callable[[], None]
    """Gives the connection back where the body was read to its end, else closes it."""

    async def beginning(self) -> bytes:
        """Read the beginning of an error's body; what does not come in time, or breaks off, is left out."""
        taken = bytearray()
        try:
            async with asyncio.timeout(_ERROR_SECONDS):
                async for piece in self.pieces:
                    taken += piece
                    if len(taken) >= _ERROR_BYTES:
                        break
        except (TimeoutError, aiohttp.ClientError):
            pass
        return bytes(taken[:_ERROR_BYTES])


class ConnectionPool:
    """Sends what mimir says."""

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
        self._url = URL(f"{config.base_url}/chat/completions")

    async def post(self, content: bytes, headers: Mapping[str, str]) -> HttpReply:
        """Post a chat completion request; the body of its answer is left to the reader, who closes it.

        Raises:
            aiohttp.ClientError: No connection, timed out, broke off.
        """
        response = await self._session.post(
            self._url,
            headers={**self._headers, **headers},
            data=io.BytesIO(content),  # bytes of more than a megabyte are warned of
            allow_redirects=False,
        )
        return HttpReply(
            status=response.status,
            headers=response.headers,
            pieces=response.content.iter_any(),
            close=response.close,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        if session := self.__dict__.pop("_session", None):
            await session.close()

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        """The connections, of which there may be as many as there are questions at a time."""
        seconds = self._config.connect_seconds
        return aiohttp.ClientSession(
            connector=_Connector(ssl=self._trust(), limit=0, keepalive_timeout=_IDLE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(
                connect=seconds, sock_connect=seconds, sock_read=self._config.stall_seconds
            ),
        )

    def _trust(self) -> ssl.SSLContext | bool:
        """Whom to trust; read once, since the system's certificates take long to read."""
        if self._url.scheme != "https":
            return True
        from httpx2 import create_ssl_context

        return create_ssl_context()


class _Connector(aiohttp.TCPConnector):
    """Uses no connection again on which something came since: its end, or what would be taken for the next question's answer."""

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  aiohttp's own signature
    ) -> Connection:
        """Return a connection on which nothing has come.

        Raises:
            aiohttp.ClientError: There is none.
        """
        for _ in range(_MOST_SPOILT):
            connection = await super().connect(req, traces, timeout)
            if not _is_spoilt(connection):
                return connection
            connection.close()
        raise aiohttp.ClientConnectionError("the endpoint speaks before it is asked")


def _is_spoilt(connection: Connection) -> bool:
    """Tell whether something has come on a connection that nobody asked for; what the loop has not seen yet lies in the socket."""
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None:
        return False
    waiting = select.poll()
    waiting.register(transport.get_extra_info("socket"), select.POLLIN)
    return protocol.should_close or bool(waiting.poll(0))


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
