"""The server over streamable HTTP, for clients with a token."""

import asyncio
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import uvicorn

from mimir.bootstrap.clock import SystemClock
from mimir.domain.value_class import value_class
from mimir.errors import UnavailableError, UsageError
from mimir.mcp_server.messages import log
from mimir.mcp_server.project_access import ProjectAccess
from mimir.mcp_server.server import Context, ProtocolServer
from mimir.mcp_server.tools.tool_values import Principal, ServedTool
from mimir.mcp_server.transports.http_guard import NO_ONE, PATH, PRINCIPAL, GuardRules, HttpGuard
from mimir.mcp_server.transports.token_file import TokenFile
from mimir.settings.model import McpSettings

STOP_SECONDS = 1
"""Longest time in which calls may end when the server is stopped."""
TICK_SECONDS = 1.0
"""Between two updates of the header Date."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@value_class
class HttpAddress:
    """Listening address of the server, and its public URL."""

    host: str
    port: int
    public_url: str = ""
    """Empty: loopback only."""

    @property
    def hosts(self) -> frozenset[str]:
        """The accepted values of the header Host."""
        if self.public_url:
            return frozenset({urlsplit(self.public_url).netloc})
        return frozenset(f"{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]"))

    @property
    def origins(self) -> frozenset[str]:
        """The accepted values of the header Origin."""
        # A page of another scheme is another origin.
        scheme = "https" if self.public_url else "http"
        return frozenset(f"{scheme}://{name}" for name in self.hosts)


def read_address(text: str, public_url: str) -> HttpAddress:
    """Return the address of `HOST:PORT`.

    Raises:
        UsageError: It is none, or another machine could reach it without a public URL.
    """
    host, colon, port = text.rpartition(":")
    host = host.strip("[]")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise UsageError(f"{text[:80]!r} is not HOST:PORT.", next_step="Example: 127.0.0.1:8811")
    if public_url:
        parts = urlsplit(public_url)
        if parts.scheme != "https" or not parts.netloc or parts.path not in ("", "/"):
            raise UsageError("--public-url must be https://HOST without a path.")
    elif host not in LOOPBACK:
        raise UsageError(
            f"{host} can be reached by other machines.",
            next_step="Name the address of the proxy before it: --public-url https://HOST",
        )
    return HttpAddress(host=host, port=int(port), public_url=public_url)


class _QuietServer(uvicorn.Server):
    """Server that leaves the signals to the command, and wakes once a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._is_stopped = asyncio.Event()

    def stop(self) -> None:
        """End the server soon."""
        self.should_exit = True
        self._is_stopped.set()

    async def main_loop(self) -> None:
        """Wait for the stop; the library would wake ten times a second."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._is_stopped.wait()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture none."""
        yield


async def serve_http(
    project: ProjectAccess,
    tools: Sequence[ServedTool],
    tokens: TokenFile,
    address: HttpAddress,
    settings: McpSettings,
) -> None:
    """Serve until the process is interrupted.

    Raises:
        UnavailableError: There is no valid token, or the port is taken.
    """
    clock = SystemClock()
    if not any(one.is_valid(clock.now()) for one in tokens.load()):
        raise UnavailableError(
            "mimir mcp --http needs a token.",
            next_step="mimir mcp token laptop --scope read,work",
        )
    # Bound here, so that a taken port is an error of the command.
    listener = _listen(address)
    serving = ProtocolServer(project, tools, _find_principal, wait_seconds=settings.wait_seconds)
    # No session of the transport: state is in handles and in the store.
    app = serving.make().streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, host=address.host
    )
    rules = GuardRules(
        hosts=address.hosts,
        origins=address.origins,
        requests_per_minute=settings.requests_per_minute,
        max_concurrent=settings.max_concurrent,
        scopes={tool.name: tool.scopes for tool in tools},
    )
    guard = HttpGuard(app, tokens, rules, clock)
    config = uvicorn.Config(
        guard,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    log("listening", url=address.public_url or f"http://{address.host}:{address.port}{PATH}")
    server = _QuietServer(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        # The library ends calls and connections itself; the runs continue.
        server.stop()
        await serving
        raise


def _listen(address: HttpAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        raise UnavailableError(
            f"{address.host}:{address.port} cannot be used: {error.strerror}.",
            next_step="Another project may be served there. Name another: --http HOST:PORT",
        ) from None


def _find_principal(context: Context) -> Principal:
    found = context.request.scope.get(PRINCIPAL) if context.request is not None else None
    principal: object = found() if callable(found) else None
    # The guard has set it; without it, nothing is permitted.
    return principal if isinstance(principal, Principal) else NO_ONE
