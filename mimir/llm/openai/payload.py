"""Request body of an OpenAI chat completion.

The body is always well formed: names, arguments and unanswered calls that a server would refuse are corrected here. The
transcript keeps them as the model wrote them.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence

from mimir.domain.json_value import as_object, is_array, is_object
from mimir.domain.message import Message, ModelRequest, ToolCall, ToolSpec
from mimir.domain.usage import estimate
from mimir.llm.config import EndpointConfig
from mimir.llm.opaque_fields import unpack_fields
from mimir.llm.openai.capabilities import Capabilities
from mimir.llm.storable_text import clean

_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_NO_ANSWER = "(no answer)"


def body(request: ModelRequest, config: EndpointConfig, dialect: Capabilities) -> dict[str, object]:
    """Return the request in the endpoint's dialect, without parameters that it does not know."""
    name = request.model or config.default_model
    limits = (request.max_tokens, dialect.token_cap, config.output_limit(name))
    tokens = min(limit for limit in limits if limit)
    context = dialect.context_tokens or config.context_limit(name)
    if context:
        tokens = max(min(tokens, context - prompt_tokens(request)), 1)
    out: dict[str, object] = {
        "model": name,
        "messages": messages(request.messages, without=dialect.dropped),
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
    # Many servers cannot combine tools and a schema.
    is_free = not request.tools or request.tool_choice == "none"
    wanted = config.structured == "json_schema" or (config.structured == "auto" and is_free)
    if request.schema is not None and wanted:
        out["response_format"] = _response_format(request.schema, request.schema_name)
    out |= config.extra_body  # the user's own parameters win
    unknown = set(dialect.dropped)
    if "stream" in unknown:
        unknown.add("stream_options")
    return {key: value for key, value in out.items() if key not in unknown}


def messages(
    history: Sequence[Message], *, without: Collection[str] = ()
) -> list[dict[str, object]]:
    """Return a conversation, without calls that have no result: servers refuse them.

    Args:
        history: Oldest first.
        without: Unknown members of a message that the endpoint does not take back.
    """
    out: list[dict[str, object]] = []
    for at, message in enumerate(history):
        text = clean(message.text)
        if message.role == "assistant":
            extra = unpack_fields(message.opaque)
            more = {name: value for name, value in extra.items() if name not in without}
            out.append({**_assistant(message, _result_ids(history, at + 1)), **more})
        elif message.role == "tool":
            out.append({"role": "tool", "content": text, "tool_call_id": clean(message.call_id)})
        else:
            if message.role == "user" and out and out[-1]["role"] == "user":
                # An empty answer was left out, but some servers require that the roles alternate.
                out.append({"role": "assistant", "content": _NO_ANSWER})
            out.append({"role": message.role, "content": text})
    return out


def prompt_tokens(request: ModelRequest) -> int:
    """Estimate the tokens of a request without its answer."""
    texts = [message.text + message.opaque for message in request.messages]
    texts += [call.name + call.arguments for m in request.messages for call in m.calls]
    texts += [json.dumps(tool(spec)) for spec in request.tools]
    return sum(map(estimate, texts))


def opaque_names(history: Sequence[Message]) -> set[str]:
    """Return the names of the unknown members that a conversation sends back."""
    return {name for message in history for name in unpack_fields(message.opaque)}


def _result_ids(history: Sequence[Message], start: int) -> set[str]:
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
        # Some servers refuse an assistant message without content.
        return {"role": "assistant", "content": text or _NO_ANSWER}
    return {"role": "assistant", "content": text or None, "tool_calls": calls}


def _call(call: ToolCall) -> dict[str, object]:
    name = _NAME.sub("_", call.name)[:_LONGEST_NAME] or "unnamed"
    extra = dict(unpack_fields(call.opaque))
    function = {
        "name": name,
        "arguments": _object_text(call.arguments),
        **as_object(extra.pop("function", None)),
    }
    return {"id": clean(call.id), "type": "function", "function": function, **extra}


def _object_text(raw: str) -> str:
    raw = clean(raw)
    try:
        if isinstance(json.loads(raw), dict):
            return raw
    except (ValueError, RecursionError):
        pass
    # Some servers parse the arguments again, so they must be a JSON object.
    return json.dumps({"unreadable": raw})


def tool(spec: ToolSpec) -> dict[str, object]:
    """Return the description of a tool that a model sees."""
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.input_schema),
    }
    return {"type": "function", "function": function}


def _response_format(schema: Mapping[str, object], name: str) -> dict[str, object]:
    described = {
        "name": _NAME.sub("_", name)[:_LONGEST_NAME] or "answer",
        "schema": dict(schema),
        "strict": is_strict(schema),
    }
    return {"type": "json_schema", "json_schema": described}


def is_strict(schema: object) -> bool:
    """Return whether a schema allows strict mode: objects closed, all properties required."""
    if is_array(schema):
        return all(is_strict(item) for item in schema)
    if not is_object(schema):
        return True
    properties, required = schema.get("properties"), schema.get("required")
    if is_object(properties):
        if schema.get("additionalProperties") is not False or not is_array(required):
            return False
        if set(properties) != set(required):
            return False
    return all(is_strict(value) for value in schema.values())
