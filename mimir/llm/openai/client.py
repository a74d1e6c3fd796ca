"""One question over HTTP: sent in the endpoint's dialect, read as it streams, every trouble named by what it ends.

No retries but one kind: a request that names a parameter the endpoint does not know is written again without it, at once.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

import aiohttp

from mimir.domain.clock import Clock
from mimir.domain.message import Answer, ModelRequest
from mimir.errors import ModelError
from mimir.llm.config import EndpointConfig
from mimir.llm.openai import api_errors as refusals
from mimir.llm.openai import payload
from mimir.llm.openai.api_errors import ErrorResponse
from mimir.llm.openai.capabilities import Capabilities, CapabilityChange, adapt
from mimir.llm.openai.stream import (
    AnswerAssembler,
    AnswerTooLarge,
    EventStream,
    StreamError,
    UnreadableStream,
)
from mimir.llm.openai.transport import HttpReply

_MOST_ADAPTATIONS = 8
_STREAM_FACTOR = 32
"""A stream may take so many times the bytes of its text: each token comes in an envelope of some 300 bytes."""
_BODY_FACTOR = 2
_DRAIN_SECONDS = 0.25


class RequestSender(Protocol):
    """Sends one chat completion request; the answer's body is not yet read."""

    async def __call__(self, body: Mapping[str, object], headers: Mapping[str, str]) -> HttpReply:
        """Send it.

        Raises:
            aiohttp.ClientError: No connection, timed out, broke off.
        """
        ...


class ChatClient:
    """Asks one endpoint; what it learns of its dialect is kept per model for the life of the process."""

    def __init__(
        self,
        post: RequestSender,
        config: EndpointConfig,
        clock: Clock,
        on_adapt: Callable[[CapabilityChange], None] | None = None,
    ) -> None:
        self._post = post
        self._config = config
        self._clock = clock
        self._on_adapt = on_adapt
        self._dialects: dict[str, Capabilities] = {}

    async def ask(self, request: ModelRequest, headers: Mapping[str, str]) -> Answer:
        """Ask once, adapting the request where the endpoint wants it.

        Raises:
            ModelError: With its scope; its text holds neither the key nor control characters.
        """
        model = request.model or self._config.default_model
        if not model:
            raise ModelError(
                "No model is named for this endpoint.",
                scope="run",
                next_step="Set llm.model (or MIMIR_MODEL, or --model).",
            )
        trouble = self._error("it refused every form of the request", scope="attempt")
        for _ in range(_MOST_ADAPTATIONS):
            dialect = self._dialects.get(model, self._first_dialect())
            body = payload.body(request, self._config, dialect)
            outcome = await self._try(body, headers)
            if isinstance(outcome, Answer):
                return outcome
            refusal, trouble = outcome
            if refusal is None or not self._learn(model, dialect, refusal, body):
                break
        raise trouble

    def _first_dialect(self) -> Capabilities:
        return Capabilities(
            tokens="max_completion_tokens" if self._config.is_openai else "max_tokens"
        )

    def _learn(
        self, model: str, dialect: Capabilities, refusal: ErrorResponse, body: Mapping[str, object]
    ) -> bool:
        """Change the dialect after a refusal; True if another try makes sense."""
        if self._dialects.get(model, self._first_dialect()) != dialect:
            return True  # another call has just learned it
        learned = adapt(dialect, refusal, body.keys() - self._config.extra_body.keys())
        if learned is None:
            return False
        self._dialects[model], parameter, change = learned
        if self._on_adapt is not None:
            self._on_adapt(
                CapabilityChange(
                    endpoint=self._config.base_url, model=model, parameter=parameter, change=change
                )
            )
        return True

    async def _try(
        self, body: Mapping[str, object], headers: Mapping[str, str]
    ) -> Answer | tuple[ErrorResponse | None, ModelError]:
        """Send once. Errors are returned, not raised: raised here they would carry the library's own, which hold the key."""
        try:
            async with asyncio.timeout(self._config.answer_seconds):
                reply = await self._post(body, headers)
                try:
                    if reply.status >= 300:
                        return await self._status(reply)
                    return await self._read(reply)
                finally:
                    reply.close()
        except StreamError as error:
            return error.refusal, self._refused(error.refusal, {})
        except UnreadableStream as error:
            return None, self._trouble(str(error))
        except (aiohttp.ClientError, OSError) as error:
            return None, self._disconnected(error)

    async def _read(self, reply: HttpReply) -> Answer:
        kind = reply.headers.get("content-type", "").split(";")[0].strip().lower()
        encoding = reply.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise UnreadableStream(
                f"the answer is packed with {encoding[:40]!r}, which was not asked"
            )
        if kind == "text/event-stream":
            return await self._stream(reply.pieces)
        if kind == "application/json" or kind.endswith("+json"):
            return await self._body(reply.pieces)
        raise UnreadableStream(
            f"the answer has the content type {kind[:80]!r}, not JSON or a stream"
        )

    async def _stream(self, arriving: AsyncIterator[bytes]) -> Answer:
        most = self._config.max_answer_bytes
        events, assembly = EventStream(most), AnswerAssembler(most)
        taken = 0
        async for chunk in arriving:
            taken += len(chunk)
            if taken > most * _STREAM_FACTOR:
                raise AnswerTooLarge(f"the stream is longer than {most * _STREAM_FACTOR:,} bytes")
            for data in events.feed(chunk):
                if data.strip() == "[DONE]":
                    answer = assembly.answer()
                    await _drain(arriving)
                    return answer
                assembly.add(data)
        for data in events.feed(b"", last=True):
            if data.strip() != "[DONE]":
                assembly.add(data)
        return assembly.answer()

    async def _body(self, arriving: AsyncIterator[bytes]) -> Answer:
        most = self._config.max_answer_bytes
        taken = bytearray()
        async for chunk in arriving:
            taken += chunk
            if len(taken) > most * _BODY_FACTOR:
                raise AnswerTooLarge(
                    f"the answer is larger than {most:,} bytes (llm.max_answer_bytes)"
                )
        text = taken.decode("utf-8", "replace")
        taken.clear()  # an answer of 10 MB shall not be held twice while it is read
        assembly = AnswerAssembler(most)
        assembly.whole(text)
        return assembly.answer()

    def _refused(self, refusal: ErrorResponse, headers: Mapping[str, str]) -> ModelError:
        ruling = refusals.classify_error(refusal)
        said = refusals.error_excerpt(self._config.veil(refusal.text))
        return self._error(
            f"{ruling.what} ({refusal.status})" + (f": {said}" if said else ""),
            scope=ruling.scope,
            status=refusal.status,
            wait=refusals.wait_seconds(headers, self._clock.now()),
            next_step=ruling.next_step,
        )

    async def _status(self, reply: HttpReply) -> tuple[ErrorResponse, ModelError]:
        said = (await reply.beginning()).decode("utf-8", "replace")
        refusal = refusals.parse_error_body(reply.status, self._config.veil(said))
        return refusal, self._refused(refusal, reply.headers)

    def _disconnected(self, cause: Exception) -> ModelError:
        if _is_certificate(cause):
            return self._error(
                "its certificate is not trusted",
                scope="run",
                next_step="Correct llm.base_url, or name your authority's file in SSL_CERT_FILE.",
            )
        if isinstance(cause, aiohttp.ConnectionTimeoutError):
            return self._trouble(
                f"no connection within {self._config.connect_seconds:g} s (llm.connect_seconds)"
            )
        if isinstance(cause, aiohttp.ServerTimeoutError):
            return self._trouble(
                f"it said nothing for {self._config.stall_seconds:g} s (llm.stall_seconds)"
            )
        if isinstance(cause, TimeoutError):  # aiohttp's own are that, too
            return self._trouble(
                f"the answer was not whole after {self._config.answer_seconds:g} s (llm.answer_seconds)"
            )
        if isinstance(cause, aiohttp.ClientConnectorError):
            return self._trouble("no connection")
        return self._trouble("the connection broke off")

    def _trouble(self, what: str) -> ModelError:
        return self._error(what, scope="call")

    def _error(
        self,
        what: str,
        *,
        scope: str,
        status: int | None = None,
        wait: float | None = None,
        next_step: str | None = None,
    ) -> ModelError:
        return ModelError(
            self._config.veil(f"The model endpoint {self._config.base_url}: {what.rstrip('.')}."),
            scope=scope,
            status=status,
            retry_after_seconds=wait,
            next_step=next_step,
        )


async def _drain(arriving: AsyncIterator[bytes]) -> None:
    """Read the few bytes after the last event, so that the connection can be used again; not waited for, not believed."""
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in arriving:
                break
    except (TimeoutError, aiohttp.ClientError):
        pass


def _is_certificate(error: BaseException | None) -> bool:
    seen = 0
    while error is not None and seen < 10:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error, seen = error.__cause__ or error.__context__, seen + 1
    return False
