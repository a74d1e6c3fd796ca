"""The adapter of any LangChain chat model (`provider:model`). What speaks OpenAI's protocol is asked by `chat.endpoint` instead.

The only file that imports LangChain, slow to import: only when such a model is first needed. Retries are off at every level below
`retrying`. Source: docs/decisions/0006-openai-protocol-without-langchain.md
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol, cast

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
from mimir.domain.message import Answer, Message, ModelRequest, ToolCall
from mimir.domain.usage import TokenUsage
from mimir.errors import ConfigurationError, ModelError
from mimir.llm.config import PROVIDERS, EndpointConfig, split_provider
from mimir.llm.openai import api_errors as refusals
from mimir.llm.openai import payload
from mimir.llm.openai.stream import FINISHES, MAX_CALLS, UnreadableStream
from mimir.llm.protocol import ChatModel, Endpoint

_FINISH_KEYS = ("finish_reason", "stop_reason", "done_reason")


def open_model(config: EndpointConfig, *, clock: Clock) -> Endpoint:
    """Open the model that `config.model` names as `provider:model`; nothing is sent yet.

    Args:
        config: Its key and address are never given to the provider's model, which looks for its own in its own variables.
        clock: For a Retry-After that is a date.

    Raises:
        ConfigurationError: The provider's package is not installed, or its key is missing.
    """
    provider, name = split_provider(config.model)
    return LangChainEndpoint(_opener(provider, config), name, config, clock)


class ModelOpener(Protocol):
    """Makes the LangChain model of one kind of request."""

    def __call__(self, name: str, max_tokens: int, temperature: float | None, /) -> BaseChatModel:
        """Make it; `temperature` None: the provider's default."""
        ...


def _opener(provider: str, config: EndpointConfig) -> ModelOpener:
    """Return what opens a provider's models. They look for their own key and address: ours belong to another endpoint."""

    def make(name: str, max_tokens: int, temperature: float | None, /) -> BaseChatModel:
        from langchain.chat_models import (
            init_chat_model,
        )  # 0.2 s that OpenAI's protocol need not pay

        options: dict[str, Any] = {"max_retries": 0, "max_tokens": max_tokens}
        if temperature is not None:
            options["temperature"] = temperature
        try:
            return cast("BaseChatModel", init_chat_model(name, model_provider=provider, **options))
        except ImportError:
            raise ConfigurationError(
                f"The models of {provider!r} need the package {PROVIDERS[provider]}, which is not installed.",
                next_step=f"Install it beside mimir: pip install {PROVIDERS[provider]}",
            ) from None
        except Exception as error:  # noqa: BLE001  each provider says in its own way that a key is missing
            fault = config.veil(_line(str(error)))
        raise ConfigurationError(
            f"llm.model {config.model!r} cannot be opened: {fault}",
            next_step=f"Set the variables that {PROVIDERS[provider]} documents, its key's first.",
        )

    return make


class LangChainEndpoint:
    """Any other LangChain chat model. Structured answers are asked for in words only."""

    def __init__(self, make: ModelOpener, name: str, config: EndpointConfig, clock: Clock) -> None:
        self._make = make
        self._name = name
        self._config = config
        self._clock = clock
        self._open: dict[tuple[str, int, float | None], BaseChatModel] = {}
        self._model(ModelRequest(messages=()))

    def for_lane(self, lane: str) -> ChatModel:
        """Return the model; these providers are not told of lanes."""
        return self

    async def aclose(self) -> None:
        """Do nothing: LangChain's models keep their own connections."""

    async def ask(self, request: ModelRequest) -> Answer:
        """Ask once, read as it streams.

        Raises:
            ModelError: With its scope, as far as the provider's error tells it.
        """
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
            with tracing_context(enabled=False):
                async with asyncio.timeout(self._config.answer_seconds):
                    answer = _answer(await self._collect(request))
        except TimeoutError:
            return self._error("the answer did not come in time", scope="call")
        except UnreadableStream as error:
            return self._error(str(error), scope="call")
        except ConfigurationError:
            raise
        except Exception as error:  # noqa: BLE001  every provider has errors of its own
            return self._named(error)
        return answer

    async def _collect(self, request: ModelRequest) -> AIMessageChunk:
        model = self._model(request)
        runnable = (
            model.bind_tools([payload.tool(t) for t in request.tools]) if request.tools else model
        )
        whole: AIMessageChunk | None = None
        taken = 0
        arriving = cast(
            "AsyncGenerator[AIMessageChunk]", runnable.astream(_history(request.messages))
        )
        async with aclosing(arriving):
            while True:
                async with asyncio.timeout(self._config.stall_seconds):
                    chunk = await anext(arriving, None)
                if chunk is None:
                    break
                taken += _size(chunk)
                if taken > self._config.max_answer_bytes:
                    raise UnreadableStream("the answer is too large (llm.max_answer_bytes)")
                whole = chunk if whole is None else whole + chunk
        if whole is None:
            raise UnreadableStream("the answer is empty")
        return whole

    def _named(self, error: Exception) -> ModelError:
        response = getattr(error, "response", None)
        status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
        if not isinstance(status, int):
            return self._error(f"{type(error).__name__}: {_line(str(error))}", scope="call")
        found = refusals.parse_error_body(status, self._config.veil(str(error)))
        ruling = refusals.classify_error(found)
        headers = getattr(response, "headers", None)
        known = cast("Mapping[str, str]", headers) if isinstance(headers, Mapping) else _NOTHING
        return ModelError(
            self._veil(f"{ruling.what} ({status}): {refusals.error_excerpt(found.text)}"),
            scope=ruling.scope,
            status=status,
            retry_after_seconds=refusals.wait_seconds(known, self._clock.now()),
            next_step=ruling.next_step,
        )

    def _error(self, what: str, *, scope: str) -> ModelError:
        return ModelError(self._veil(what), scope=scope)

    def _veil(self, what: str) -> str:
        return self._config.veil(f"The model {self._config.model}: {what.rstrip('.')}.")


_NOTHING: Mapping[str, str] = {}


def _line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:300]


def _history(messages: Sequence[Message]) -> list[BaseMessage]:
    return [_message(message) for message in payload.messages(messages)]


def _message(row: Mapping[str, object]) -> BaseMessage:
    """Turn a message as it stands on the wire into LangChain's: there it is already well formed."""
    text = cast("str", row["content"] or "")
    match row["role"]:
        case "system":
            return SystemMessage(text)
        case "user":
            return HumanMessage(text)
        case "tool":
            return ToolMessage(text, tool_call_id=cast("str", row["tool_call_id"]))
        case _:
            calls = cast("Sequence[Mapping[str, object]]", row.get("tool_calls", ()))
            return AIMessage(text, tool_calls=[_past_call(call) for call in calls])


def _past_call(row: Mapping[str, object]) -> LangChainCall:
    function = cast("Mapping[str, str]", row["function"])
    return LangChainCall(
        name=function["name"],
        args=json.loads(function["arguments"]),
        id=cast("str", row["id"]),
        type="tool_call",
    )


def _size(chunk: AIMessageChunk) -> int:
    return len(str(chunk.text)) + sum(len(c["args"] or "") for c in chunk.tool_call_chunks)


def _answer(whole: AIMessageChunk) -> Answer:
    message = Message(role="assistant", text=payload.clean(str(whole.text)), calls=_calls(whole))
    finish = "tool_calls" if message.calls else "stop"
    for key in _FINISH_KEYS:
        said = str(whole.response_metadata.get(key, "")).lower()
        if FINISHES.get(said) in ("length", "content_filter"):
            finish = FINISHES[said]
    if finish == "content_filter":  # what came before the filter is no answer
        message = Message(role="assistant", text="")
    counted = whole.usage_metadata
    usage = counted and TokenUsage(
        input_tokens=counted["input_tokens"], output_tokens=counted["output_tokens"]
    )
    model = str(whole.response_metadata.get("model_name", ""))
    return Answer(
        message=message, finish=finish, usage=usage or None, model=payload.clean(model)[:200]
    )


def _calls(whole: AIMessageChunk) -> tuple[ToolCall, ...]:
    """Return the calls with their arguments as text: what could not be read as JSON stays as it came."""
    if len(whole.tool_call_chunks) > MAX_CALLS:
        raise UnreadableStream(f"the answer asks for more than {MAX_CALLS} tool calls")
    return tuple(
        ToolCall(
            id=payload.clean(row["id"] or f"call-{number}")[:256],
            name=payload.clean(row["name"] or "")[:256],
            arguments=payload.clean(row["args"] or ""),
        )
        for number, row in enumerate(whole.tool_call_chunks)
    )
