"""Recorded questions and answers as OpenAI's chat protocol has them. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

from mimir.domain.message import Answer, Message, ToolCall
from mimir.llm.openai import payload
from mimir.recordings.format.request_match import RecordedRequest, comparable_text
from mimir.store.schema import pack

Json = Mapping[str, object]
_SPEAKERS = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def parse_request(body: object) -> RecordedRequest:
    """Read the question of a request.

    Raises:
        ValueError: It is none; the message says why.
    """
    if not isinstance(body, Mapping):
        raise ValueError("the body is no JSON object")  # noqa: TRY004
    messages = cast("Json", body).get("messages")
    if not isinstance(messages, list) or not messages:
        raise ValueError("`messages` is no list, or empty")
    return RecordedRequest(
        messages=tuple(map(_message, cast("list[object]", messages))), settings={}
    )


def format_request(question: RecordedRequest) -> RecordedRequest:
    """Return a recorded question as an endpoint sees it."""
    return RecordedRequest(
        messages=tuple(map(_message, payload.messages(question.messages))), settings={}
    )


def key(question: RecordedRequest) -> str:
    """Return what two questions that are the same have in common."""
    return pack(
        [
            [m.role, comparable_text(m), [[c.name, c.arguments] for c in m.calls]]
            for m in question.messages
        ]
    )


def format_answer(answer: Answer, model: str) -> dict[str, object]:
    """Write an answer that is not streamed."""
    message: dict[str, object] = {"role": "assistant", "content": answer.message.text or None}
    if answer.message.calls:
        message["tool_calls"] = [_call(call) for call in answer.message.calls]
    choice = {"index": 0, "message": message, "finish_reason": answer.finish}
    return {**_frame("chat.completion", model), "choices": [choice], "usage": _usage(answer)}


def format_stream(answer: Answer, model: str, *, usage: bool) -> Sequence[dict[str, object]]:
    """Write an answer as the chunks of a stream."""
    first: dict[str, object] = {"role": "assistant", "content": answer.message.text}
    if answer.message.calls:
        first["tool_calls"] = [
            {"index": at, **_call(call)} for at, call in enumerate(answer.message.calls)
        ]
    frame = _frame("chat.completion.chunk", model)
    chunks: list[dict[str, object]] = [
        {**frame, "choices": [{"index": 0, "delta": first, "finish_reason": None}]},
        {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": answer.finish}]},
    ]
    if usage:
        chunks.append({**frame, "choices": [], "usage": _usage(answer)})
    return chunks


def _message(value: object) -> Message:
    if not isinstance(value, Mapping):
        raise ValueError("a message is no JSON object")  # noqa: TRY004
    row = cast("Json", value)
    role, text = str(row.get("role")), _text(row.get("content"))
    if role == "tool":
        return Message(role="tool", text=text, call_id=str(row.get("tool_call_id") or ""))
    speaker = _SPEAKERS.get(role)
    if speaker == "system":
        return Message(role="system", text=text)
    if speaker == "user":
        return Message(role="user", text=text)
    if speaker == "assistant":
        return Message(role="assistant", text=text, calls=_calls(row.get("tool_calls")))
    raise ValueError(f"there is no role {role[:40]!r}")


def _text(content: object) -> str:
    """Return the text of a message, whole or in parts."""
    if isinstance(content, str):
        return content
    parts = cast("list[object]", content) if isinstance(content, list) else []
    texts = [_json(part).get("text") for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


def _calls(value: object) -> tuple[ToolCall, ...]:
    rows = cast("list[object]", value) if isinstance(value, list) else []
    found: list[ToolCall] = []
    for row in rows:
        one = _json(row)
        said = _json(one.get("function"))
        name, arguments = str(said.get("name") or ""), str(said.get("arguments") or "")
        found.append(ToolCall(id=str(one.get("id") or ""), name=name, arguments=_sorted(arguments)))
    return tuple(found)


def _json(value: object) -> Json:
    return cast("Json", value) if isinstance(value, Mapping) else {}


def _sorted(arguments: str) -> str:
    """Return arguments in one form: other programs write JSON in another order."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _call(call: ToolCall) -> dict[str, object]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _frame(kind: str, model: str) -> dict[str, object]:
    # No time of day: the same question has the same bytes for an answer.
    return {"id": "chatcmpl-recorded", "object": kind, "created": 0, "model": model}


def _usage(answer: Answer) -> dict[str, int]:
    used = answer.usage
    given, made = (used.input_tokens, used.output_tokens) if used else (0, 0)
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
