"""Adapter for any LangChain chat model, named `provider:model`.

The only file that imports LangChain, which is slow to import. OpenAI's protocol has its own client: see
docs/decisions/0006-openai-protocol-without-langchain.md.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.tool import ToolCall as LangChainCall
from langsmith import tracing_context  # pyright: ignore[reportUnknownVariableType]  its mappings are bare

from mimir.domain.clock import Clock
from mimir.domain.json_value import JsonObject, as_object, as_objects, as_text, is_array
from mimir.domain.message import Answer, Message, ModelRequest, ToolCall
from mimir.domain.usage import TokenUsage
from mimir.errors import ConfigurationError, ModelError
from mimir.llm.config import PROVIDERS, EndpointConfig, split_provider
from mimir.llm.opaque_fields import OpaqueFields, pack_fields
from mimir.llm.openai import api_errors, payload
from mimir.llm.openai.stream import FINISHES, MAX_CALLS, UnreadableStream
from mimir.llm.protocol import ChatModel, Endpoint
from mimir.llm.storable_text import clean

_CALL_BLOCK = re.compile(r"tool_use|tool_call(_chunk)?|function_call|input_json_delta")
_CALL_MEMBERS = ("tool_calls", "function_call")

ModelOpener = Callable[[str, int, float | None], BaseChatModel]
"""(model, max_tokens, temperature or None for the provider's default) → model."""


def open_model(config: EndpointConfig, *, clock: Clock) -> Endpoint:
    """Open the model of `config.model`; raise `ConfigurationError` without package or key."""
    provider, name = split_provider(config.model)
    return LangChainEndpoint(_provider_opener(provider, config), name, config, clock)


def _provider_opener(provider: str, config: EndpointConfig) -> ModelOpener:
    def make(name: str, max_tokens: int, temperature: float | None, /) -> BaseChatModel:
        # Imported here: 0.2 s that OpenAI's protocol does not need.
        from langchain.chat_models import init_chat_model

        # No key, no address: ours belong to another endpoint, and the provider reads its own variables.
        # No retries: `RetryingModel` alone repeats a call.
        options: dict[str, Any] = {"max_retries": 0, "max_tokens": max_tokens}
        if temperature is not None:
            options["temperature"] = temperature
        try:
            return cast("BaseChatModel", init_chat_model(name, model_provider=provider, **options))
        except ImportError:
            raise ConfigurationError(
                f"The models of {provider!r} need the package {PROVIDERS[provider]}, which is not installed.",
                next_step=f"Install it in mimir's environment: pip install {PROVIDERS[provider]}",
            ) from None
        except Exception as error:  # noqa: BLE001  each provider reports a missing key in its own way
            fault = config.veil(api_errors.error_excerpt(str(error)))
        # Raised outside of the handler: the provider's error may hold the key.
        raise ConfigurationError(
            f"llm.model {config.model!r} cannot be opened: {fault}",
            next_step=f"Set the variables that {PROVIDERS[provider]} documents, its key's first.",
        )

    return make


class LangChainEndpoint:
    """An `Endpoint` for a LangChain chat model; the prompt alone asks for structured answers."""

    def __init__(self, make: ModelOpener, name: str, config: EndpointConfig, clock: Clock) -> None:
        self._make = make
        self._name = name
        self._config = config
        self._clock = clock
        self._open: dict[tuple[str, int, float | None], BaseChatModel] = {}
        # A missing package or key must be found now, not at the first request.
        self._model(ModelRequest(messages=()))

    def for_lane(self, lane: str) -> ChatModel:
        """Return the model; the transcript's name is not sent."""
        return self

    async def aclose(self) -> None:
        """Do nothing: LangChain's models own their connections."""

    async def ask(self, request: ModelRequest) -> Answer:
        """Send one request and read the stream; a `ModelError` has the scope."""
        outcome = await self._try(request)
        if isinstance(outcome, ModelError):
            raise outcome  # outside of the handler: the provider's error may hold the key
        return outcome

    def _model(self, request: ModelRequest) -> BaseChatModel:
        name = split_provider(request.model)[1] or self._name
        key = (name, request.max_tokens, request.temperature)
        if key not in self._open:
            self._open[key] = self._make(*key)
        return self._open[key]

    async def _try(self, request: ModelRequest) -> Answer | ModelError:
        try:
            # LangSmith would upload every prompt, so tracing is always off.
            with tracing_context(enabled=False):
                async with asyncio.timeout(self._config.answer_seconds):
                    return _read_answer(await self._collect(request))
        except TimeoutError:
            return self._error("the answer did not come in time")
        except UnreadableStream as error:
            return self._error(str(error))
        except ConfigurationError:
            raise
        except Exception as error:  # noqa: BLE001  every provider has its own errors
            return self._classify(error)

    async def _collect(self, request: ModelRequest) -> AIMessageChunk:
        model = self._model(request)
        tools = [payload.tool(spec) for spec in request.tools]
        runnable = model.bind_tools(tools) if tools else model
        history = [_message(row) for row in payload.messages(request.messages)]
        arriving = cast("AsyncGenerator[AIMessageChunk]", runnable.astream(history))
        whole: AIMessageChunk | None = None
        size = 0
        async with aclosing(arriving):  # a cancelled request must close its HTTP stream
            while True:
                async with asyncio.timeout(self._config.stall_seconds):
                    chunk = await anext(arriving, None)
                if chunk is None:
                    break
                calls = chunk.tool_call_chunks
                size += len(str(chunk.content)) + len(str(chunk.additional_kwargs))
                size += sum(len(c["args"] or "") for c in calls)
                if size > self._config.max_answer_bytes:
                    raise UnreadableStream("the answer is too large (llm.max_answer_bytes)")
                whole = chunk if whole is None else whole + chunk
        if whole is None:
            raise UnreadableStream("the answer is empty")
        return whole

    def _classify(self, error: Exception) -> ModelError:
        response = getattr(error, "response", None)
        status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
        if not isinstance(status, int):
            return self._error(f"{type(error).__name__}: {api_errors.error_excerpt(str(error))}")
        found = api_errors.parse_error_body(status, self._config.veil(str(error)))
        effect = api_errors.classify_error(found)
        headers = as_object(getattr(response, "headers", None))
        wait = {name.lower(): value for name, value in headers.items() if isinstance(value, str)}
        return ModelError(
            self._describe(
                f"{effect.predicate} ({status}): {api_errors.error_excerpt(found.text)}"
            ),
            scope=effect.scope,
            status=status,
            retry_after_seconds=api_errors.wait_seconds(wait, self._clock.now()),
            next_step=effect.next_step,
        )

    def _error(self, problem: str) -> ModelError:
        return ModelError(self._describe(problem), scope="call")

    def _describe(self, problem: str) -> str:
        return self._config.veil(f"The model {self._config.model}: {problem.rstrip('.')}.")


def _message(row: JsonObject) -> BaseMessage:
    """Convert a message from OpenAI's form, which is already well formed."""
    text = as_text(row["content"])
    match row["role"]:
        case "system":
            return SystemMessage(text)
        case "user":
            return HumanMessage(text)
        case "tool":
            return ToolMessage(text, tool_call_id=as_text(row["tool_call_id"]))
        case _:
            calls = as_objects(row.get("tool_calls"))
            content = row["content"]
            return AIMessage(
                cast("list[str | dict[str, Any]]", content) if is_array(content) else text,
                tool_calls=[_earlier_call(call) for call in calls],
                additional_kwargs=dict(as_object(row.get("additional_kwargs"))),
            )


def _earlier_call(row: JsonObject) -> LangChainCall:
    function = as_object(row["function"])
    return LangChainCall(
        name=as_text(function["name"]),
        args=json.loads(as_text(function["arguments"])),
        id=as_text(row["id"]),
        type="tool_call",
    )


def _read_answer(whole: AIMessageChunk) -> Answer:
    text = clean(str(whole.text))
    message = Message(role="assistant", text=text, calls=_calls(whole), opaque=_opaque(whole))
    finish = "tool_calls" if message.calls else "stop"
    metadata = whole.response_metadata
    for key in ("finish_reason", "stop_reason", "done_reason"):  # providers use different names
        reason = FINISHES.get(str(metadata.get(key, "")).lower())
        if reason in ("length", "content_filter"):
            finish = reason
    if finish == "content_filter":  # text before the filter is not an answer
        message = Message(role="assistant", text="")
    counted = whole.usage_metadata
    usage = counted and TokenUsage(
        input_tokens=counted["input_tokens"], output_tokens=counted["output_tokens"]
    )
    cached = counted.get("input_token_details", {}).get("cache_read", 0) if counted else 0
    model = clean(str(metadata.get("model_name", "")))[:200]
    return Answer(
        message=message, finish=finish, usage=usage or None, model=model, cached_tokens=cached
    )


def _opaque(whole: AIMessageChunk) -> str:
    """Return values that the provider wants back, such as signed thoughts."""
    kept: dict[str, object] = {}
    if is_array(whole.content):
        # LangChain adds the calls again, by `tool_calls`.
        kept["content"] = [one for one in whole.content if not _is_call(one)]
    more = as_object(whole.additional_kwargs)
    kept["additional_kwargs"] = {n: v for n, v in more.items() if n not in _CALL_MEMBERS}
    collected = OpaqueFields(())
    try:
        collected.add(
            {name: json.loads(json.dumps(value)) for name, value in kept.items() if value}
        )
    except (TypeError, ValueError, RecursionError):
        return ""  # no JSON, so no transcript can hold it
    return pack_fields(collected.merged())


def _is_call(block: object) -> bool:
    return _CALL_BLOCK.fullmatch(str(as_object(block).get("type"))) is not None


def _calls(whole: AIMessageChunk) -> tuple[ToolCall, ...]:
    """Return the calls with raw arguments; text that is not JSON stays as it came."""
    if len(whole.tool_call_chunks) > MAX_CALLS:
        raise UnreadableStream(f"the answer asks for more than {MAX_CALLS} tool calls")
    return tuple(
        ToolCall(
            id=clean(row["id"] or f"call-{number}")[:256],
            name=clean(row["name"] or "")[:256],
            arguments=clean(row["args"] or ""),
        )
        for number, row in enumerate(whole.tool_call_chunks)
    )
