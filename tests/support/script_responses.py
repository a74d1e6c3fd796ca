"""Answers as bytes: the OpenAI protocol, streamed and whole, and every way in which it breaks."""

import json
import socket
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from typing import Any

from mimir.domain.message import Answer
from mimir.llm.scripted.faults import ScriptedFault
from mimir.llm.scripted.script import TurnFault

HUGE_BYTES = 10_000_000
_PIECE = 65_536
SSE, JSON, PAGE, PLAIN = "text/event-stream", "application/json", "text/html", "text/plain"


class Line:
    """One connection, as a server writes to it."""

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def head(self, status: int, kind: str, headers: Sequence[tuple[str, str]] = ()) -> None:
        """Write status and headers; the body follows in chunks."""
        phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Unknown"
        lines = [
            f"HTTP/1.1 {status} {phrase}",
            f"Date: {format_datetime(datetime.now(UTC), usegmt=True)}",
            f"Content-Type: {kind}",
            "Transfer-Encoding: chunked",
            *(f"{name}: {value}" for name, value in headers),
        ]
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        await self.writer.drain()

    async def chunk(self, data: bytes) -> None:
        """Write a part of the body."""
        self.writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await self.writer.drain()

    async def end(self) -> None:
        """End the body."""
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def whole(
        self, status: int, kind: str, data: bytes, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Write a whole answer."""
        await self.head(status, kind, headers)
        await self.chunk(data)
        await self.end()

    async def stall(self) -> None:
        """Say nothing more until the other side gives up."""
        await self.reader.read(1)
        self.reset()

    def reset(self) -> None:
        """Break the connection off, so that the other side sees a reset."""
        sock: socket.socket | None = self.writer.get_extra_info("socket")
        if sock is not None and sock.fileno() >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


def error_body(message: str, code: str, parameter: str = "") -> bytes:
    """Write an error of the protocol."""
    return json.dumps(
        {"error": {"message": message, "type": code, "param": parameter or None, "code": code}}
    ).encode()


def page(text: str) -> bytes:
    """Write a page as proxies do."""
    return f"<html><head><title>{text}</title></head><body><h1>{text}</h1></body></html>".encode()


def retry_after(fault: ScriptedFault, staged: TurnFault) -> list[tuple[str, str]]:
    """Return the header that a fault carries."""
    match fault.retry_after:
        case "seconds":
            return [("Retry-After", f"{staged.seconds:g}")]
        case "date":
            # HTTP dates are whole seconds, and `Date` is cut in the same way: the difference is exact.
            at = datetime.now(UTC) + timedelta(seconds=staged.seconds)
            return [("Retry-After", format_datetime(at, usegmt=True))]
        case "absurd":
            return [("Retry-After", "99999999999")]
        case "negative":
            return [("Retry-After", "-5")]
        case "garbled":
            return [("Retry-After", "soon")]
        case _:
            return []


def events(answer: Answer, *, usage: bool) -> list[bytes]:
    """Write an answer as server-sent events, in several pieces each."""
    rows = [_delta({"role": "assistant", "content": ""})]
    rows += [_delta({"content": piece}) for piece in _pieces(answer.message.text)]
    for index, call in enumerate(answer.message.calls):
        first, *rest = _pieces(call.arguments, 4) or [""]
        function = {"name": call.name, "arguments": first}
        row = {"index": index, "id": call.id, "type": "function", "function": function}
        rows.append(_delta({"tool_calls": [row]}))
        rows += [
            _delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in rest
        ]
    rows.append(_delta({}, answer.finish))
    if usage and answer.usage is not None:
        rows.append({**_frame("chat.completion.chunk"), "choices": [], "usage": _usage(answer)})
    return [event(row) for row in rows]


def event(row: object) -> bytes:
    """Write one event."""
    return f"data: {json.dumps(row)}\n\n".encode()


DONE = b"data: [DONE]\n\n"


def body(answer: Answer) -> bytes:
    """Write an answer that is not streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.message.text or None}
    if answer.message.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in answer.message.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": answer.finish}
    row = {**_frame("chat.completion"), "choices": [choice]}
    if answer.usage is not None:
        row["usage"] = _usage(answer)
    return json.dumps(row).encode()


def broken(rows: Sequence[bytes], fault: str) -> Iterator[bytes]:
    """Write the events of a stream as a fault leaves them; those that break the connection get the first half."""
    half = rows[: max(1, len(rows) // 2)]
    match fault:
        case "cut_stream" | "reset" | "stall_middle":
            yield from half
        case "truncated_json":
            yield from (*half, rows[0][: len(rows[0]) // 2] + b"\n\n")
        case "invalid_json":
            yield from (*half, b"data: {this is no json}\n\n", DONE)
        case "error_in_stream":
            yield from (*half, event({"error": {"message": "upstream failed", "code": 502}}))
        case "huge":
            for _ in range(HUGE_BYTES // _PIECE + 1):
                yield event(_delta({"content": "x" * _PIECE}))
            yield from rows
        case "endless" | "endless_pings":
            yield from _endless(fault)
        case _:
            yield from rows


def _endless(fault: str) -> Iterator[bytes]:
    row = event(_delta({"content": "x" * _PIECE}))
    while True:
        yield row if fault == "endless" else b": still thinking\n\n" * 1000


def _pieces(text: str, most: int = 8) -> list[str]:
    size = max(12, len(text) // most + 1)
    return [text[at : at + size] for at in range(0, len(text), size)]


def _frame(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-play", "object": kind, "created": 0, "model": "play"}


def _delta(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**_frame("chat.completion.chunk"), "choices": [choice]}


def _usage(answer: Answer) -> dict[str, int]:
    assert answer.usage is not None
    return {
        "prompt_tokens": answer.usage.input_tokens,
        "completion_tokens": answer.usage.output_tokens,
        "total_tokens": answer.usage.total,
    }
