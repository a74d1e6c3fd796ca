"""Client of one endpoint: sends a request, reads its stream, classifies each failure.

A failed request is not repeated, with one exception: a request is written again, at once, without a parameter that the
endpoint does not know.
"""

import asyncio
import codecs
import errno
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from urllib.parse import urlsplit

import aiohttp
import orjson

from mimir.domain.clock import Clock
from mimir.domain.json_value import as_whole_number
from mimir.domain.message import Answer, ModelRequest
from mimir.errors import ModelError
from mimir.llm.config import EndpointConfig
from mimir.llm.openai import api_errors, payload
from mimir.llm.openai.api_errors import ErrorResponse
from mimir.llm.openai.capabilities import (
    PROMPT,
    Capabilities,
    CapabilityChange,
    RequestTokens,
    adapt,
)
from mimir.llm.openai.stream import (
    AnswerAssembler,
    AnswerTooLarge,
    EventStream,
    StreamError,
    UnreadableStream,
)
from mimir.llm.openai.transport import ConnectionPool, HttpReply
from mimir.llm.proxies import hide_login, is_loopback

_MOST_ADAPTATIONS = 8
# Bytes of a stream for one byte of text: each token comes in an envelope of some 300 bytes.
_STREAM_FACTOR = 32
_BODY_FACTOR = 2
_DRAIN_SECONDS = 0.25
# Estimates of shorter prompts are not exact enough.
_LONG_PROMPT = 2000
# White space before an answer keeps some connections alive.
_MOST_BLANKS = 65_536


class ChatClient:
    """Client of one endpoint that remembers the known parameters of each model."""

    def __init__(
        self,
        connections: ConnectionPool,
        config: EndpointConfig,
        clock: Clock,
        on_adapt: Callable[[CapabilityChange], None] | None = None,
    ) -> None:
        self._connections = connections
        self._config = config
        self._clock = clock
        self._on_adapt = on_adapt
        self._dialects: dict[str, Capabilities] = {}
        self._has_answered = False
        self._truncating: set[str] = set()

    async def ask(self, request: ModelRequest, headers: Mapping[str, str]) -> Answer:
        """Send one request, adapted to the endpoint; a `ModelError` contains no secret."""
        model = request.model or self._config.default_model
        if not model:
            raise ModelError(
                "No model is named for this endpoint.",
                scope="run",
                next_step="Set llm.model (or MIMIR_MODEL, or --model).",
            )
        trouble = self._error("it refused every form of the request", scope="attempt")
        for _ in range(_MOST_ADAPTATIONS):
            dialect = self._dialect(model)
            body = payload.body(request, self._config, dialect)
            outcome = await self._try(body, headers)
            if isinstance(outcome, Answer):
                self._note_truncation(model, request, outcome)
                return outcome
            refusal, trouble = outcome
            if refusal is None or not self._learn(model, dialect, refusal, body, request):
                break
        raise trouble

    def _dialect(self, model: str) -> Capabilities:
        name = "max_completion_tokens" if self._config.is_openai else "max_tokens"
        first = Capabilities(
            tokens=self._config.token_parameter or name, dropped=self._config.without
        )
        return self._dialects.get(model, first)

    def _learn(
        self,
        model: str,
        dialect: Capabilities,
        refusal: ErrorResponse,
        body: Mapping[str, object],
        request: ModelRequest,
    ) -> bool:
        """Change the dialect after a refusal; True if another try makes sense."""
        if self._dialect(model) != dialect:
            return True  # a concurrent call has just learned it
        # The user's own parameters are never dropped.
        sent = body.keys() - self._config.extra_body.keys()
        learned = adapt(
            dialect,
            refusal,
            sent,
            opaque=payload.opaque_names(request.messages),
            size=RequestTokens(
                prompt=payload.prompt_tokens(request),
                answer=as_whole_number(body.get(dialect.tokens)) or 0,
            ),
        )
        if learned is None:
            return False
        self._dialects[model], parameter, change = learned
        self._report(model, parameter, change)
        return True

    def _note_truncation(self, model: str, request: ModelRequest, answer: Answer) -> None:
        """Report once that the endpoint counted less than half of a prompt."""
        if answer.usage is None or model in self._truncating:
            return
        sent, counted = payload.prompt_tokens(request), answer.usage.input_tokens
        if sent >= _LONG_PROMPT and 0 < counted * 2 < sent:
            self._truncating.add(model)
            change = f"{counted} of about {sent} tokens; raise the context length of the server"
            self._report(model, PROMPT, change)

    def _report(self, model: str, parameter: str, change: str) -> None:
        if self._on_adapt is not None:
            label = self._config.label
            self._on_adapt(
                CapabilityChange(endpoint=label, model=model, parameter=parameter, change=change)
            )

    async def _try(
        self, body: Mapping[str, object], headers: Mapping[str, str]
    ) -> Answer | tuple[ErrorResponse | None, ModelError]:
        # Errors are returned, not raised: raised here they would carry the library's own, which hold the key.
        try:
            async with asyncio.timeout(self._config.answer_seconds):
                reply = await self._connections.post(_encode(body), headers)
                self._has_answered = True
                try:
                    if reply.status >= 300:
                        return await self._read_refusal(reply)
                    return await self._read_answer(reply)
                finally:
                    reply.close()
        except StreamError as error:
            return error.refusal, self._refusal_error(error.refusal, {})
        except AnswerTooLarge as error:
            # The next answer will hardly be shorter, and each one is paid.
            fix = "Raise llm.max_answer_bytes, or use a model that sends less beside its text."
            return None, self._error(str(error), most_tries=2, next_step=fix)
        except UnreadableStream as error:
            return None, self._error(str(error))
        except (aiohttp.ClientError, OSError) as error:
            return None, self._connection_error(error)

    async def _read_answer(self, reply: HttpReply) -> Answer:
        encoding = reply.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise UnreadableStream(
                f"the answer is packed with {encoding[:40]!r}, which was not asked"
            )
        # The content type is often wrong; the first character is not.
        beginning = bytearray()
        async for piece in reply.pieces:
            beginning += piece
            if len(beginning) > _MOST_BLANKS or beginning.removeprefix(codecs.BOM_UTF8).strip():
                break
        pieces = _chain(bytes(beginning), reply.pieces)
        match bytes(beginning).removeprefix(codecs.BOM_UTF8).lstrip()[:1]:
            case b"{" | b"[" | b"<" | b"":
                return await self._read_body(pieces)
            case _:
                return await self._read_stream(pieces)

    async def _read_stream(self, arriving: AsyncIterator[bytes]) -> Answer:
        most = self._config.max_answer_bytes
        events, assembly = EventStream(most), AnswerAssembler(most)
        size = 0
        async for chunk in arriving:
            size += len(chunk)
            if size > most * _STREAM_FACTOR:
                raise AnswerTooLarge(f"the stream is longer than {most * _STREAM_FACTOR:,} bytes")
            for data in events.feed(chunk):
                if data.strip() == "[DONE]":
                    answer = assembly.answer(ended=True)
                    await _drain(arriving)
                    return answer
                assembly.add(data)
        for data in events.feed(b"", last=True):
            if data.strip() != "[DONE]":
                assembly.add(data)
        return assembly.answer()

    async def _read_body(self, arriving: AsyncIterator[bytes]) -> Answer:
        most = self._config.max_answer_bytes
        body = bytearray()
        async for chunk in arriving:
            body += chunk
            if len(body) > most * _BODY_FACTOR:
                raise AnswerTooLarge(
                    f"the answer is larger than {most:,} bytes (llm.max_answer_bytes)"
                )
        text = body.decode("utf-8-sig", "replace")
        body.clear()  # an answer of 10 MB must not be in memory twice
        assembly = AnswerAssembler(most)
        assembly.whole(text)
        return assembly.answer(ended=True)

    async def _read_refusal(self, reply: HttpReply) -> tuple[ErrorResponse, ModelError]:
        text = (await reply.read_beginning()).decode("utf-8", "replace")
        refusal = api_errors.parse_error_body(reply.status, self._config.veil(text))
        return refusal, self._refusal_error(refusal, reply.headers)

    def _refusal_error(self, refusal: ErrorResponse, headers: Mapping[str, str]) -> ModelError:
        effect = api_errors.classify_error(refusal)
        detail = api_errors.error_excerpt(self._config.veil(refusal.text))
        return self._error(
            f"{effect.predicate} ({refusal.status})" + (f": {detail}" if detail else ""),
            scope=effect.scope,
            status=refusal.status,
            wait=api_errors.wait_seconds(headers, self._clock.now()),
            next_step=effect.next_step,
        )

    def _connection_error(self, cause: Exception) -> ModelError:
        limits = self._config
        if _is_certificate_error(cause):
            return self._error(
                "its certificate is not trusted",
                scope="run",
                next_step=f"Correct {limits.section}.base_url, or name your authority's file in SSL_CERT_FILE.",
            )
        if isinstance(cause, aiohttp.ClientHttpProxyError):  # of a CONNECT
            return self._refusal_error(ErrorResponse(status=cause.status, text=cause.message), {})
        # A server that answered before may be starting again.
        if not self._has_answered and _is_refused_here(cause, limits):
            return self._error(
                "the connection is refused",
                most_tries=2,
                next_step=f"Is the server running? Start it, or correct {limits.section}.base_url.",
            )
        if not self._has_answered and isinstance(cause, aiohttp.ClientConnectorDNSError):
            return self._error(
                "its host is not known",
                most_tries=2,
                next_step=f"Correct {limits.section}.base_url, or check the network.",
            )
        # The order matters: aiohttp's time-outs are TimeoutErrors, too.
        match cause:
            case aiohttp.ConnectionTimeoutError():
                problem = f"no connection within {limits.connect_seconds:g} s (llm.connect_seconds)"
            case aiohttp.ServerTimeoutError():
                problem = f"it sent nothing for {limits.stall_seconds:g} s (llm.stall_seconds)"
            case TimeoutError():
                problem = f"the answer was not complete after {limits.answer_seconds:g} s (llm.answer_seconds)"
            case aiohttp.ClientConnectorError():
                problem = f"no connection ({cause.strerror})" if cause.strerror else "no connection"
            case _:
                problem = "the connection broke off"
        return self._error(problem)

    def _error(
        self,
        problem: str,
        *,
        scope: str = "call",
        status: int | None = None,
        wait: float | None = None,
        most_tries: int | None = None,
        next_step: str | None = None,
    ) -> ModelError:
        through = f" through the proxy {shown}" if (shown := hide_login(self._config.proxy)) else ""
        where = f"The model endpoint {self._config.label}{through}"
        return ModelError(
            self._config.veil(f"{where}: {problem.rstrip('.')}."),
            scope=scope,
            status=status,
            retry_after_seconds=wait,
            most_tries=most_tries,
            next_step=next_step,
        )


def _encode(body: Mapping[str, object]) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:
        # A number in the user's own llm.extra_body may be larger than orjson writes.
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode()


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


async def _drain(arriving: AsyncIterator[bytes]) -> None:
    """Read the few bytes after the last event, so that the connection can be reused."""
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in arriving:
                break
    except (TimeoutError, aiohttp.ClientError):
        pass


def _is_refused_here(cause: Exception, config: EndpointConfig) -> bool:
    """Return whether no program listens at an address of this machine."""
    host = urlsplit(config.proxy or config.base_url).hostname or ""
    is_refused = isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED
    return is_refused and is_loopback(host)


def _is_certificate_error(error: BaseException | None) -> bool:
    for _ in range(10):  # a chain of causes may be a circle
        if error is None or isinstance(error, ssl.SSLCertVerificationError):
            return error is not None
        error = error.__cause__ or error.__context__
    return False
    return False
