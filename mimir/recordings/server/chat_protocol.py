"""Recorded requests and answers in the form of OpenAI's chat protocol."""

import json
from collections.abc import Sequence

from mimir.domain.json_value import as_array, as_object, as_objects, as_text, is_object
from mimir.domain.message import Answer, Message, ToolCall
from mimir.llm.opaque_fields import unpack_fields
from mimir.llm.openai import payload
from mimir.recordings.format.request_match import RecordedRequest, comparable_text
from mimir.store.schema import pack

_SPEAKERS = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def parse_request(body: object) -> RecordedRequest:
    """Read a request.

    Raises:
        ValueError: It is not a chat completion; the message states the reason.
    """
    if not is_object(body):
        raise ValueError("the body is not a JSON object")
    messages = as_array(body.get("messages"))
    if not messages:
        raise ValueError("`messages` is not a list, or empty")
    return RecordedRequest(messages=tuple(map(_message, messages)), settings={})


def format_request(question: RecordedRequest) -> RecordedRequest:
    """Return a recorded request as an endpoint receives it."""
    return RecordedRequest(
        messages=tuple(map(_message, payload.messages(question.messages))), settings={}
    )


def key(question: RecordedRequest) -> str:
    """Return the key that equal requests share."""
    return pack(
        [
            [m.role, comparable_text(m), [[c.name, c.arguments] for c in m.calls]]
            for m in question.messages
        ]
    )


def format_answer(answer: Answer, model: str) -> dict[str, object]:
    """Return an answer that is not streamed."""
    message: dict[str, object] = {"role": "assistant", "content": answer.message.text or None}
    if answer.message.calls:
        message["tool_calls"] = [_call(call) for call in answer.message.calls]
    message |= unpack_fields(answer.message.opaque)
    choice = {"index": 0, "message": message, "finish_reason": answer.finish}
    return {**_frame("chat.completion", model), "choices": [choice], "usage": _usage(answer)}


def format_stream(answer: Answer, model: str, *, usage: bool) -> Sequence[dict[str, object]]:
    """Return an answer as the chunks of a stream."""
    first: dict[str, object] = {"role": "assistant", "content": answer.message.text}
    if answer.message.calls:
        first["tool_calls"] = [
            {"index": at, **_call(call)} for at, call in enumerate(answer.message.calls)
        ]
    first |= unpack_fields(answer.message.opaque)
    frame = _frame("chat.completion.chunk", model)
    chunks: list[dict[str, object]] = [
        {**frame, "choices": [{"index": 0, "delta": first, "finish_reason": None}]},
        {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": answer.finish}]},
    ]
    if usage:
        chunks.append({**frame, "choices": [], "usage": _usage(answer)})
    return chunks


def _message(value: object) -> Message:
    if not is_object(value):
        raise ValueError("a message is not a JSON object")
    role, text = str(value.get("role")), _text(value.get("content"))
    if role == "tool":
        return Message(role="tool", text=text, call_id=str(value.get("tool_call_id") or ""))
    speaker = _SPEAKERS.get(role)
    if speaker == "system":
        return Message(role="system", text=text)
    if speaker == "user":
        return Message(role="user", text=text)
    if speaker == "assistant":
        return Message(role="assistant", text=text, calls=_calls(value.get("tool_calls")))
    raise ValueError(f"there is no role {role[:40]!r}")


def _text(content: object) -> str:
    """Return the text of a message, whole or in parts."""
    if isinstance(content, str):
        return content
    return "".join(as_text(part.get("text")) for part in as_objects(content))


def _calls(value: object) -> tuple[ToolCall, ...]:
    found: list[ToolCall] = []
    for call in map(as_object, as_array(value)):
        function = as_object(call.get("function"))
        name, arguments = str(function.get("name") or ""), str(function.get("arguments") or "")
        id = str(call.get("id") or "")
        found.append(ToolCall(id=id, name=name, arguments=_normalise(arguments)))
    return tuple(found)


def _normalise(arguments: str) -> str:
    """Return arguments in one form: other programs write JSON in another order."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _call(call: ToolCall) -> dict[str, object]:
    extra = dict(unpack_fields(call.opaque))
    more = as_object(extra.pop("function", None))
    function = {"name": call.name, "arguments": call.arguments, **more}
    return {"id": call.id, "type": "function", "function": function, **extra}


def _frame(kind: str, model: str) -> dict[str, object]:
    # Without a time: equal requests get equal bytes.
    return {"id": "chatcmpl-recorded", "object": kind, "created": 0, "model": model}


def _usage(answer: Answer) -> dict[str, int]:
    used = answer.usage
    given, made = (used.input_tokens, used.output_tokens) if used else (0, 0)
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
