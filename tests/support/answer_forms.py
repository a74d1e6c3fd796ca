"""Forms in which servers send an answer, and a server that sends a play in one of them, or in one after another."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

from mimir.domain.message import Answer, ToolCall
from tests.support import script_responses as wire
from tests.support.script_server import Line, PlayServer

Body = Mapping[str, Any]
Sent = tuple[int, str, Sequence[bytes]]
"""Status, content type, and the pieces of the body."""
Form = Callable[[Body, Answer], Sent]
Fragment = Callable[[int, int, ToolCall, str], Mapping[str, object]]
"""(number of the call, number of the fragment, the call, text of the fragment) → the fragment."""


class FormServer(PlayServer):
    """A play server whose answers have the given forms, in turn."""

    def __init__(self, play: Mapping[str, object], *forms: Form) -> None:
        super().__init__(play)
        self._forms = cycle(forms)

    async def _send(self, line: Line, body: Body, answer: Answer, fault: object) -> bool:
        status, kind, pieces = next(self._forms)(body, answer)
        await line.head(status, kind)
        for piece in pieces:
            await line.chunk(piece)
        await line.end()
        return True


def plain(body: Body, answer: Answer) -> Sent:
    """Return the ordinary stream."""
    return 200, wire.SSE, [*wire.events(answer, usage=True), wire.DONE]


def refusal(text: str) -> Sent:
    """Return a refusal of the request."""
    return 400, wire.JSON, [wire.error_body(text, "invalid_request_error")]


def tools_or_format(body: Body, answer: Answer) -> Sent:
    """Refuse tools together with a response format."""
    if body.get("tools") and body.get("response_format"):
        return refusal("json mode cannot be combined with tool/function calling")
    return plain(body, answer)


def reasoning_first(body: Body, answer: Answer) -> Sent:
    """Use up small token limits for the reasoning, before any text."""
    limit = body.get("max_tokens") or body.get("max_completion_tokens") or 0
    if answer.message.calls or limit > 8000:
        return plain(body, answer)
    cut = replace(answer, finish="length", message=replace(answer.message, text=""))
    return plain(body, cut)


def reasoning_wanted(body: Body, answer: Answer) -> Sent:
    """Refuse a conversation whose calls come back without their reasoning."""
    called = [one for one in body["messages"] if one.get("tool_calls")]
    if not all(one.get("reasoning_content") for one in called):
        return refusal("The `reasoning_content` in the thinking mode must be passed back.")
    thought = _event({"role": "assistant", "reasoning_content": "Let me look first."})
    return 200, wire.SSE, [thought, *plain(body, answer)[2]]


def thinking(before: str) -> Form:
    """Return a form whose texts begin with thoughts."""

    def form(body: Body, answer: Answer) -> Sent:
        message = answer.message
        text = message.text if message.calls else f"{before}\n{message.text}"
        return plain(body, replace(answer, message=replace(message, text=text)))

    return form


def calls_as_text(body: Body, answer: Answer) -> Sent:
    """Write the calls into the text, until a message explains how to call a tool."""
    if any("as text" in str(one.get("content")) for one in body["messages"][2:]):
        return plain(body, answer)
    written = [
        f'<tool_call>{{"name": "{call.name}", "arguments": {call.arguments}}}</tool_call>'
        for call in answer.message.calls
    ]
    text = "\n".join([answer.message.text, *written])
    message = replace(answer.message, text=text, calls=())
    return plain(body, replace(answer, finish="stop", message=message))


def no_finish(body: Body, answer: Answer) -> Sent:
    """End with `[DONE]`, without a reason."""
    rows = [json.loads(row[6:]) for row in wire.events(answer, usage=True)]
    for row in rows:
        for choice in row["choices"]:
            choice["finish_reason"] = None
    return (
        200,
        wire.SSE,
        [*(b"data: " + json.dumps(row).encode() + b"\n\n" for row in rows), wire.DONE],
    )


def bom_body(body: Body, answer: Answer) -> Sent:
    """Send no stream, and begin with a byte order mark."""
    return 200, wire.JSON, [b"\xef\xbb\xbf" + wire.body(answer)]


def stream_as(kind: str) -> Form:
    """Return a form with another content type."""
    return lambda body, answer: (200, kind, plain(body, answer)[2])


def one_newline(body: Body, answer: Answer) -> Sent:
    """End each event with a single line break."""
    return 200, wire.SSE, [*(row.replace(b"\n\n", b"\n") for row in plain(body, answer)[2]), b"\n"]


def fragments(form: Fragment) -> Form:
    """Return a form that cuts the arguments of each call in three."""

    def send(body: Body, answer: Answer) -> Sent:
        rows = [_event({"role": "assistant", "content": answer.message.text})]
        for number, call in enumerate(answer.message.calls):
            third = max(1, len(call.arguments) // 3)
            ends = range(0, len(call.arguments), third)
            for piece, start in enumerate(ends):
                part = form(number, piece, call, call.arguments[start : start + third])
                rows.append(_event({"tool_calls": [part]}))
        rows.append(_event({}, answer.finish))
        return 200, wire.SSE, [*rows, wire.DONE]

    return send


def fragment(text: str, name: str | None = None, **more: object) -> Mapping[str, object]:
    """Return one fragment of a call."""
    return {"type": "function", "function": {"name": name, "arguments": text}, **more}


def _event(delta: Mapping[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    row = {"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(row).encode() + b"\n\n"
