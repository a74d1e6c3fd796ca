"""Messages and answers as JSON values and back, without loss. Reading is strict: what was not written here is refused."""

from collections.abc import Mapping, Sequence
from typing import Literal, cast, get_args

from mimir.domain.message import Answer, Finish, Message, ToolCall, ToolSpec
from mimir.domain.usage import MOST, TokenUsage

Json = Mapping[str, object]
Speaker = Literal["system", "user", "assistant", "tool"]
_SPEAKERS, _FINISHES = frozenset(get_args(Speaker)), frozenset(get_args(Finish))
_OF_ANSWER = frozenset(("message", "finish", "usage", "model"))
_OF_USAGE = frozenset(("input", "output"))
_OF_MESSAGE = frozenset(("role", "text", "calls", "call_id", "tool", "tree", "ran", "closing"))
_OF_CALL = frozenset(("id", "name", "arguments"))


def message_json(message: Message) -> dict[str, object]:
    """Write a message; values that are the default are left out."""
    out: dict[str, object] = {"role": message.role, "text": message.text}
    if message.calls:
        out["calls"] = [
            {"id": c.id, "name": c.name, "arguments": c.arguments} for c in message.calls
        ]
    for key in ("call_id", "tool", "tree"):
        if value := getattr(message, key):
            out[key] = value
    if not message.ran:
        out["ran"] = False
    if message.closing:
        out["closing"] = True
    return out


def encode_message(message: Message) -> dict[str, object]:
    """Write what a model is shown of a message: no tree, no bookkeeping of the engine."""
    return {k: v for k, v in message_json(message).items() if k not in ("tree", "ran", "closing")}


def read_message(value: object) -> Message:
    """Read what `message_json` wrote.

    Raises:
        ValueError: `value` is not of that form; the message says where.
    """
    row = _mapping(value, "message")
    _known(row, _OF_MESSAGE, "message")
    role = _text(row, "role")
    if role not in _SPEAKERS:
        raise ValueError(f"message: unknown role {role!r}")
    return Message(
        role=cast("Speaker", role),
        text=_text(row, "text"),
        calls=tuple(_call(c) for c in _list(row.get("calls", []), "calls")),
        call_id=_text(row, "call_id", ""),
        tool=_text(row, "tool", ""),
        tree=_text(row, "tree", ""),
        ran=_flag(row, "ran", default=True),
        closing=_flag(row, "closing", default=False),
    )


def answer_json(answer: Answer) -> dict[str, object]:
    """Write an answer."""
    out: dict[str, object] = {"message": message_json(answer.message), "finish": answer.finish}
    if answer.usage is not None:
        out["usage"] = {"input": answer.usage.input_tokens, "output": answer.usage.output_tokens}
    if answer.model:
        out["model"] = answer.model
    return out


def read_answer(value: object) -> Answer:
    """Read what `answer_json` wrote.

    Raises:
        ValueError: `value` is not of that form; the message says where.
    """
    row = _mapping(value, "answer")
    _known(row, _OF_ANSWER, "answer")
    finish = _text(row, "finish")
    if finish not in _FINISHES:
        raise ValueError(f"answer: unknown finish {finish!r}")
    usage = None
    if "usage" in row:
        counts = _mapping(row["usage"], "usage")
        _known(counts, _OF_USAGE, "usage")
        usage = TokenUsage(
            input_tokens=_count(counts, "input"), output_tokens=_count(counts, "output")
        )
    return Answer(
        message=read_message(row.get("message")),
        finish=cast("Finish", finish),
        usage=usage,
        model=_text(row, "model", ""),
    )


def spec_json(spec: ToolSpec) -> dict[str, object]:
    """Write what a model is told of a tool."""
    return {"name": spec.name, "description": spec.description, "schema": dict(spec.input_schema)}


def _call(value: object) -> ToolCall:
    row = _mapping(value, "call")
    _known(row, _OF_CALL, "call")
    return ToolCall(id=_text(row, "id"), name=_text(row, "name"), arguments=_text(row, "arguments"))


def _mapping(value: object, where: str) -> Json:
    if not isinstance(value, dict):
        raise ValueError(f"{where}: not an object")  # noqa: TRY004  one error for every bad record
    return cast("Json", value)


def _known(row: Json, keys: frozenset[str], where: str) -> None:
    if unknown := sorted(row.keys() - keys):
        raise ValueError(f"{where}: unknown key {unknown[0]!r}")


def _list(value: object, where: str) -> Sequence[object]:
    if not isinstance(value, list):
        raise ValueError(f"{where}: not a list")  # noqa: TRY004
    return cast("Sequence[object]", value)


def _text(row: Json, key: str, default: str | None = None) -> str:
    value = row.get(key, default)
    if not isinstance(value, str):
        raise ValueError(f"{key}: not a text")  # noqa: TRY004
    return value


def _flag(row: Json, key: str, *, default: bool) -> bool:
    value = row.get(key, default)
    if not isinstance(value, bool):
        raise ValueError(f"{key}: not true or false")  # noqa: TRY004
    return value


def _count(row: Json, key: str) -> int:
    value = row.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < MOST:
        raise ValueError(f"{key}: not a count")
    return value
