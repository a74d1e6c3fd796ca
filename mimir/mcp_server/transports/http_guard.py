"""Guard of the HTTP transport: each request is checked before the library sees it."""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from mimir.domain.clock import Clock
from mimir.domain.json_value import as_object, as_text
from mimir.domain.value_class import value_class
from mimir.mcp_server.messages import log
from mimir.mcp_server.tools.tool_values import Principal, Scope
from mimir.mcp_server.transports.token_file import StoredToken, TokenFile

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

PATH = "/mcp"
HEALTH = "/health"
PRINCIPAL = "mimir.principal"
"""Member of the request's scope with a function that returns its principal as it is now."""
MAX_BODY_BYTES = 4 * 1024 * 1024
BODY_SECONDS = 30.0
"""Longest wait for a whole body."""
MINUTE = 60.0
_IN_URL = ("token", "access_token", "authorization", "api_key", "bearer")


class RefusedRequestError(Exception):
    """A request that is refused."""

    def __init__(
        self, *, status: int, error: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.headers = headers or {}


@value_class
class GuardRules:
    """Which requests are served."""

    hosts: frozenset[str]
    origins: frozenset[str]
    requests_per_minute: int
    max_concurrent: int
    scopes: Mapping[str, frozenset[Scope]]
    """Tool → scopes, each of which permits a call."""


class HttpGuard:
    """Application that checks host, origin, token, rate, type, size and scope."""

    def __init__(
        self, inner: Application, tokens: TokenFile, rules: GuardRules, clock: Clock
    ) -> None:
        self._inner = inner
        self._tokens = tokens
        self._rules = rules
        self._clock = clock
        self._times: dict[str, deque[float]] = defaultdict(deque)
        self._active: dict[str, int] = defaultdict(int)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        # No web socket is served; the library of the server closes it.
        if scope["type"] != "http":
            return
        name = ""
        try:
            headers = _read_headers(scope)
            self._check_sender(headers)
            token = self._find_token(scope, headers)
            name = f"token:{token.name}"
            await self._serve(scope, receive, send, headers, token)
        except RefusedRequestError as refusal:
            # A client of an earlier version asks for a stream first, and lives without it.
            level = "debug" if refusal.status == 405 else "warning"
            log("refused", level, principal=name, status=refusal.status, problem=refusal.error)
            await _respond(send, refusal.status, {"error": refusal.error}, refusal.headers)

    async def _serve(
        self,
        scope: MutableMapping[str, Any],
        receive: Receive,
        send: Send,
        headers: Mapping[str, str],
        token: StoredToken,
    ) -> None:
        self._count_request(token.name)
        if scope["path"] == HEALTH and scope["method"] == "GET":
            await _respond(send, 200, {"status": "ok"}, {})
            return
        if scope["path"] != PATH:
            raise RefusedRequestError(status=404, error="not_found")
        # The server sends nothing by itself: an open stream would only take a place.
        if scope["method"] != "POST":
            raise RefusedRequestError(status=405, error="post_only", headers={"Allow": "POST"})
        if self._active[token.name] >= self._rules.max_concurrent:
            raise RefusedRequestError(
                status=429, error="too_many_concurrent_calls", headers={"Retry-After": "1"}
            )
        # Counted before the body: a slow sender takes a place too.
        self._active[token.name] += 1
        try:
            # A stream outlives a token that is revoked.
            scope[PRINCIPAL] = partial(self._find_principal, token)
            body = await self._read_body(receive, headers)
            self._check_scope(body, _make_principal(token))
            await self._inner(scope, _replay(body, receive), send)
        finally:
            self._active[token.name] -= 1

    def _check_sender(self, headers: Mapping[str, str]) -> None:
        """Require an expected host and origin: a page in a browser may be hostile."""
        if headers.get("host", "") not in self._rules.hosts:
            raise RefusedRequestError(status=421, error="unknown_host")
        origin = headers.get("origin")
        if origin is not None and origin not in self._rules.origins:
            raise RefusedRequestError(status=403, error="unknown_origin")

    def _find_token(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> StoredToken:
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        # URLs are in logs and histories.
        if any(name.lower() in _IN_URL for name in query):
            raise _make_unauthorized("token_in_url")
        # The scheme is case-insensitive, the token is not.
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not given:
            raise _make_unauthorized("missing_token")
        found = self._tokens.find(given.strip(), self._clock.now())
        if found is None:
            raise _make_unauthorized("invalid_token")
        return found

    def _find_principal(self, token: StoredToken) -> Principal:
        now = self._clock.now()
        is_valid = any(
            one.sha256 == token.sha256 and one.is_valid(now) for one in self._tokens.load()
        )
        return _make_principal(token) if is_valid else NO_ONE

    def _count_request(self, name: str) -> None:
        times, now = self._times[name], self._clock.monotonic()
        while times and times[0] <= now - MINUTE:
            times.popleft()
        if len(times) >= self._rules.requests_per_minute:
            wait = max(1, round(times[0] + MINUTE - now))
            raise RefusedRequestError(
                status=429, error="too_many_requests", headers={"Retry-After": str(wait)}
            )
        times.append(now)

    async def _read_body(self, receive: Receive, headers: Mapping[str, str]) -> bytes:
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            raise RefusedRequestError(status=415, error="content_type_is_not_json")
        # Refused before a byte of it is read.
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > MAX_BODY_BYTES:
            raise RefusedRequestError(status=413, error="body_over_4_mib")
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await receive()
                    body += message.get("body", b"")
                    # A body without a length is counted while it comes.
                    if len(body) > MAX_BODY_BYTES:
                        raise RefusedRequestError(status=413, error="body_over_4_mib")
                    if message["type"] != "http.request" or not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            raise RefusedRequestError(status=408, error="body_is_too_slow") from None

    def _check_scope(self, body: bytes, principal: Principal) -> None:
        """Refuse a call of a tool that no scope of the token permits."""
        try:
            message = as_object(json.loads(body or b"{}"))
        except (ValueError, RecursionError):
            return  # the library answers a body that is no message
        if message.get("method") != "tools/call":
            return
        needed = self._rules.scopes.get(as_text(as_object(message.get("params")).get("name")))
        # An unknown tool is answered by the list of the known ones.
        if needed and not principal.has_any(needed):
            wanted = " ".join(sorted(needed))
            challenge = f'Bearer error="insufficient_scope", scope="{wanted}"'
            raise RefusedRequestError(
                status=403,
                error=f"insufficient_scope: {wanted}",
                headers={"WWW-Authenticate": challenge},
            )


NO_ONE = Principal(name="", scopes=frozenset())
"""Principal to whom nothing is permitted."""


def _make_principal(token: StoredToken) -> Principal:
    return Principal(name=f"token:{token.name}", scopes=frozenset(token.scopes), is_token=True)


def _make_unauthorized(error: str) -> RefusedRequestError:
    return RefusedRequestError(status=401, error=error, headers={"WWW-Authenticate": "Bearer"})


def _read_headers(scope: Mapping[str, Any]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1").lower()
        # Two hosts or two tokens: the library might read the other one.
        if name in found and name in ("host", "origin", "authorization", "content-type"):
            raise RefusedRequestError(status=400, error=f"{name}_is_given_twice")
        found[name] = value.decode("latin-1")
    return found


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that yields the read body first."""
    is_given = False

    async def next_message() -> Message:
        nonlocal is_given
        # After the body follows the end of the connection.
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return next_message


async def _respond(
    send: Send, status: int, shape: Mapping[str, object], headers: Mapping[str, str]
) -> None:
    body = json.dumps(shape).encode()
    given = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    raw = [(name.encode(), value.encode()) for name, value in given.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
