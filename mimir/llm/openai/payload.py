"""A `ModelRequest` as the body of an OpenAI chat completion. Pure.

What is sent is always well formed, whatever a model answered before: names, arguments and unanswered calls that a server would
refuse are mended here, on the wire only; the record keeps them as they came.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import cast

from mimir.domain.message import Message, ModelRequest, ToolCall, ToolSpec
from mimir.llm.config import EndpointConfig
from mimir.llm.openai.capabilities import Capabilities

_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Return `text` such that it can be written as UTF-8 and shown to C code: lone surrogates and NUL become U+FFFD."""
    whole = text if text.isascii() else _SURROGATE.sub("\ufffd", text)
    return whole.replace("\0", "\ufffd")


def body(request: ModelRequest, config: EndpointConfig, dialect: Capabilities) -> dict[str, object]:
    """Write the request in the endpoint's dialect; what it does not know is left out."""
    tokens = min(request.max_tokens, dialect.token_cap or request.max_tokens)
    out: dict[str, object] = {
        "model": request.model or config.default_model,
        "messages": messages(request.messages),
        dialect.tokens: tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.temperature is not None:
        out["temperature"] = request.temperature
    if request.tools:
        out["tools"] = [tool(spec) for spec in request.tools]
        if request.tool_choice == "none":
            out["tool_choice"] = "none"
    if request.schema is not None and _wants_schema(request, config):
        out["response_format"] = _format(request.schema, request.schema_name)
    out |= config.extra_body
    unknown = set(dialect.dropped)
    if "stream" in unknown:
        unknown.add("stream_options")
    return {key: value for key, value in out.items() if key not in unknown}


def messages(history: Sequence[Message]) -> list[dict[str, object]]:
    """Write a conversation; calls that nobody answered are left out, since servers refuse them."""
    out: list[dict[str, object]] = []
    for at, message in enumerate(history):
        if message.role == "assistant":
            out.append(_assistant(message, _answered(history, at + 1)))
        elif message.role == "tool":
            out.append(
                {
                    "role": "tool",
                    "tool_call_id": clean(message.call_id),
                    "content": clean(message.text),
                }
            )
        else:
            out.append({"role": message.role, "content": clean(message.text)})
    return out


def _answered(history: Sequence[Message], start: int) -> set[str]:
    ids: set[str] = set()
    for message in history[start:]:
        if message.role != "tool":
            break
        ids.add(message.call_id)
    return ids


def _assistant(message: Message, answered: set[str]) -> dict[str, object]:
    calls = [_call(call) for call in message.calls if call.id in answered]
    text = clean(message.text)
    if not calls:
        return {"role": "assistant", "content": text or "(no answer)"}
    return {"role": "assistant", "content": text or None, "tool_calls": calls}


def _call(call: ToolCall) -> dict[str, object]:
    name = _NAME.sub("_", call.name)[:_LONGEST_NAME] or "unnamed"
    function = {"name": name, "arguments": _arguments(call.arguments)}
    return {"id": clean(call.id), "type": "function", "function": function}


def _arguments(raw: str) -> str:
    """Return the arguments if they are a JSON object, else an object that holds them: some servers read them again."""
    raw = clean(raw)
    try:
        if isinstance(json.loads(raw), dict):
            return raw
    except (ValueError, RecursionError):
        pass
    return json.dumps({"unreadable": raw})


def tool(spec: ToolSpec) -> dict[str, object]:
    """Write what a model is told of a tool."""
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.input_schema),
    }
    return {"type": "function", "function": function}


def _wants_schema(request: ModelRequest, config: EndpointConfig) -> bool:
    if config.structured == "auto":
        return not request.tools or request.tool_choice == "none"
    return config.structured == "json_schema"


def _format(schema: Mapping[str, object], name: str) -> dict[str, object]:
    described = {
        "name": _NAME.sub("_", name)[:_LONGEST_NAME] or "answer",
        "schema": dict(schema),
        "strict": is_strict(schema),
    }
    return {"type": "json_schema", "json_schema": described}


def is_strict(schema: object) -> bool:
    """Tell whether a schema keeps the rules of strict mode: every object closed, every property required."""
    if isinstance(schema, list):
        return all(is_strict(item) for item in cast("list[object]", schema))
    if not isinstance(schema, dict):
        return True
    node = cast("Mapping[str, object]", schema)
    properties = node.get("properties")
    if isinstance(properties, dict):
        names = set(cast("Mapping[str, object]", properties))
        required = node.get("required")
        if node.get("additionalProperties") is not False or not isinstance(required, list):
            return False
        if names != set(cast("list[object]", required)):
            return False
    return all(is_strict(value) for value in node.values())
