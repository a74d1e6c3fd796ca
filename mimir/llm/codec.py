"""JSON form of messages and answers: written without loss, read strictly."""

from typing import Literal, TypeVar, get_args

from mimir.domain.json_value import JsonObject, as_member, as_whole_number, is_array, is_object
from mimir.domain.message import Answer, Finish, Message, ToolCall, ToolSpec
from mimir.domain.usage import MOST, TokenUsage, read_cached_tokens

T = TypeVar("T")
Speaker = Literal["system", "user", "assistant", "tool"]
_SPEAKERS: tuple[Speaker, ...] = get_args(Speaker)
_FINISHES: tuple[Finish, ...] = get_args(Finish)
_ANSWER_KEYS = ("message", "finish", "usage", "model")
_MESSAGE_KEYS = ("role", "text", "calls", "call_id", "tool", "tree", "ran", "closing", "opaque")
# Bookkeeping of the engine: no model sees it, so it must not change the hash of a request.
_ENGINE_KEYS = ("tree", "ran", "closing")


def message_json(message: Message) -> dict[str, object]:
    """Return a message as JSON values, without members that have their default."""
    out: dict[str, object] = {"role": message.role, "text": message.text}
    if message.calls:
        out["calls"] = [_call_json(call) for call in message.calls]
    for key in ("call_id", "tool", "tree", "opaque"):
        if value := getattr(message, key):
            out[key] = value
    # Members with their default are left out: stored transcripts stay small and readable.
    if not message.ran:
        out["ran"] = False
    if message.closing:
        out["closing"] = True
    return out


def encode_message(message: Message) -> dict[str, object]:
    """Return the part of a message that a model sees."""
    return {k: v for k, v in message_json(message).items() if k not in _ENGINE_KEYS}


def read_message(value: object) -> Message:
    """Read a message that `message_json` wrote; a `ValueError` names the wrong member."""
    row = _object(value, "message", _MESSAGE_KEYS)
    role = as_member(row.get("role"), _SPEAKERS)
    calls = row.get("calls", [])
    if role is None:
        raise ValueError(f"message: unknown role {row.get('role')!r}")
    if not is_array(calls):
        raise ValueError("calls: not a list")
    return Message(
        role=role,
        text=_member(row, "text", str),
        calls=tuple(_read_call(call) for call in calls),
        call_id=_member(row, "call_id", str, ""),
        tool=_member(row, "tool", str, ""),
        tree=_member(row, "tree", str, ""),
        ran=_member(row, "ran", bool, True),
        closing=_member(row, "closing", bool, False),
        opaque=_member(row, "opaque", str, ""),
    )


def answer_json(answer: Answer) -> dict[str, object]:
    """Return an answer as JSON values."""
    out: dict[str, object] = {"message": message_json(answer.message), "finish": answer.finish}
    if answer.usage is not None:
        usage = {"input": answer.usage.input_tokens, "output": answer.usage.output_tokens}
        if answer.cached_tokens:
            usage["cached"] = answer.cached_tokens
        out["usage"] = usage
    if answer.model:
        out["model"] = answer.model
    return out


def read_answer(value: object) -> Answer:
    """Read an answer that `answer_json` wrote; a `ValueError` names the wrong member."""
    row = _object(value, "answer", _ANSWER_KEYS)
    finish = as_member(row.get("finish"), _FINISHES)
    if finish is None:
        raise ValueError(f"answer: unknown finish {row.get('finish')!r}")
    return Answer(
        message=read_message(row.get("message")),
        finish=finish,
        usage=_read_usage(row["usage"]) if "usage" in row else None,
        model=_member(row, "model", str, ""),
        cached_tokens=read_cached_tokens(row),
    )


def spec_json(spec: ToolSpec) -> dict[str, object]:
    """Return the description of a tool that a model sees."""
    return {"name": spec.name, "description": spec.description, "schema": dict(spec.input_schema)}


def _call_json(call: ToolCall) -> dict[str, object]:
    row: dict[str, object] = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return row | ({"opaque": call.opaque} if call.opaque else {})


def _read_call(value: object) -> ToolCall:
    row = _object(value, "call", ("id", "name", "arguments", "opaque"))
    return ToolCall(
        id=_member(row, "id", str),
        name=_member(row, "name", str),
        arguments=_member(row, "arguments", str),
        opaque=_member(row, "opaque", str, ""),
    )


def _read_usage(value: object) -> TokenUsage:
    row = _object(value, "usage", ("input", "output", "cached"))
    counts = [as_whole_number(row.get(key)) for key in ("input", "output")]
    given, made = (n if n is not None and 0 <= n < MOST else None for n in counts)
    if given is None or made is None:
        raise ValueError("usage: not a count")
    return TokenUsage(input_tokens=given, output_tokens=made)


def _object(value: object, name: str, keys: tuple[str, ...]) -> JsonObject:
    if not is_object(value):
        raise ValueError(f"{name}: not an object")
    if unknown := sorted(value.keys() - keys):
        raise ValueError(f"{name}: unknown key {unknown[0]!r}")
    return value


def _member(row: JsonObject, key: str, kind: type[T], default: T | None = None) -> T:
    value = row.get(key, default)
    if not isinstance(value, kind):
        raise ValueError(f"{key}: not of type {kind.__name__}")  # noqa: TRY004  one error for every bad record
    return value
