"""Program that serves models over HTTP: `python -m mimir_bench.engine.model_server`.

It implements the part of OpenAI's chat protocol that engine and peers use. An answer depends on the
header `X-Mimir-Lane` and on the number of earlier answers. One meter counts the traffic of all.
"""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from urllib.parse import unquote

import orjson

from mimir.bootstrap.clock import SystemClock
from mimir.domain.json_value import JsonObject, as_number, as_object, as_objects
from mimir.store.codec import decode
from mimir_bench.engine import workload
from mimir_bench.engine.workload import PREAMBLE, Workload


@dataclass(slots=True, kw_only=True)
class RequestMeter:
    """Traffic since the last order."""

    calls: int = 0
    first_seconds: float = -1.0
    """Time of the first request on the monotonic clock; -1: none."""
    message_bytes: int = 0
    """Of messages, tool lists and answers, each counted once a conversation."""
    answer_bytes: int = 0
    """Of answers alone."""
    largest_bytes: int = 0
    """Of the largest request body."""
    _seen: dict[str, int] = field(default_factory=dict[str, int])

    def count_request(self, now: float, whole: int) -> None:
        """Count a request of `whole` bytes."""
        if self.first_seconds < 0:
            self.first_seconds = now
        self.calls += 1
        self.largest_bytes = max(self.largest_bytes, whole)

    def count(self, lane: str, asked: JsonObject, message: JsonObject) -> None:
        """Count the new parts of a request, and its answer.

        Args:
            lane: Name of the conversation.
            asked: Request; the model's own messages were counted as answers.
            message: Answer.
        """
        messages = as_objects(asked["messages"])
        seen = self._seen.get(lane)
        # The list of tools is of the same length in every request of a conversation.
        new = len(json.dumps(asked.get("tools") or "")) if seen is None else 0
        answer = _bytes(message, own=True)
        self.message_bytes += new + sum(map(_bytes, messages[seen or 0 :])) + answer
        self.answer_bytes += answer
        # The next request repeats these messages; only those after them are new bytes.
        self._seen[lane] = len(messages)

    def figures(self) -> dict[str, object]:
        """Return the figures."""
        return {name: value for name, value in asdict(self).items() if name[0] != "_"}


class ModelServer:
    """HTTP server that answers one workload after the other."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._load = Workload()
        self._latency = 0.0
        self._meter = RequestMeter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection until it ends."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                headers = _headers(head)
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                kind, data = await self._answer(head.split(" ", 2)[1], headers, body)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s"
                    % (kind, len(data), data)
                )
                await writer.drain()
        # A client that closes its connection between requests is the normal end.
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(
        self, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[bytes, bytes]:
        if path == "/orders":
            self._order(json.loads(body))
            return b"application/json", b"{}"
        if path == "/meter":
            return b"application/json", json.dumps(self._meter.figures()).encode()
        # Before parsing, so that the time of the first request has no time of the server in it.
        self._meter.count_request(self._clock.monotonic(), len(body))
        asked = as_object(orjson.loads(body))
        messages = as_objects(asked["messages"])
        lane = unquote(headers.get("x-mimir-lane", "")) or _lane_of_brief(messages)
        # The server keeps no conversation: a retry or a new process gets the same answer.
        turn = sum(message["role"] == "assistant" for message in messages)
        message = self._say(lane, turn)
        self._meter.count(lane, asked, message)
        if self._latency:
            await asyncio.sleep(self._latency)
        if asked.get("stream"):
            return b"text/event-stream", _format_stream(message)
        return b"application/json", _format_answer(message)

    def _order(self, orders: JsonObject) -> None:
        self._load = decode(Workload, orders["load"])
        self._latency = as_number(orders["latency_seconds"]) or 0.0
        self._meter = RequestMeter()

    def _say(self, lane: str, turn: int) -> JsonObject:
        # A lane is run/task/attempt/role; the answer does not depend on the run.
        task, _, last = lane.split("/")[-3:] if lane.count("/") >= 2 else ("", "", lane)
        role, at = last.partition("#")[0], workload.number(task)
        if role.startswith("worker") and at >= 0:
            if turn < workload.tool_turns(self._load, at):
                tool, arguments = workload.arguments(self._load, at, turn)
                return _call(tool, arguments, turn)
            return {"role": "assistant", "content": workload.closing_answer(self._load, at)}
        if role == "qc" and at >= 0:
            return {"role": "assistant", "content": workload.verdict(self._load, at)}
        said = PREAMBLE if role == "agentinator" else "It went as planned."
        return {"role": "assistant", "content": said}


def _headers(head: str) -> dict[str, str]:
    rows = (row.partition(":") for row in head.split("\r\n")[1:] if row)
    return {name.strip().lower(): value.strip() for name, _, value in rows}


def _lane_of_brief(messages: Sequence[JsonObject]) -> str:
    """Return the conversation's name from the brief, for clients that cannot send the header."""
    asked = str(messages[1]["content"]) if len(messages) > 1 else ""
    return asked.removeprefix("Lane: ").split("\n", 1)[0]


def _call(tool: str, arguments: str, turn: int) -> JsonObject:
    function = {"name": tool, "arguments": arguments}
    row = {"id": f"call-{turn}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [row]}


def _bytes(message: JsonObject, *, own: bool = False) -> int:
    # The model's own messages were counted when they were answers.
    if message["role"] == "assistant" and not own:
        return 0
    content = message.get("content") or ""
    text = content if isinstance(content, str) else json.dumps(content)
    functions = [as_object(call["function"]) for call in as_objects(message.get("tool_calls"))]
    return len(text.encode()) + sum(len(str(one["arguments"]).encode()) for one in functions)


_USAGE = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}
_FRAME = {"id": "bench", "created": 0, "model": "bench"}


def _finish(message: JsonObject) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


def _format_answer(message: JsonObject) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": _finish(message)}
    return orjson.dumps(
        {**_FRAME, "object": "chat.completion", "choices": [choice], "usage": _USAGE}
    )


def _format_stream(message: JsonObject) -> bytes:
    calls = as_objects(message.get("tool_calls"))
    delta = {**message, "tool_calls": [{"index": n, **c} for n, c in enumerate(calls)]}
    if not calls:
        del delta["tool_calls"]
    frame = {**_FRAME, "object": "chat.completion.chunk"}
    end: JsonObject = {"index": 0, "delta": {}, "finish_reason": _finish(message)}
    rows: list[JsonObject] = [
        {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**frame, "choices": [end]},
        {**frame, "choices": [], "usage": _USAGE},
    ]
    return b"".join(b"data: %s\n\n" % orjson.dumps(row) for row in rows) + b"data: [DONE]\n\n"


async def main() -> None:
    """Serve until standard input ends, which means that the parent process ended."""
    server = await asyncio.start_server(ModelServer().serve, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    # The parent never writes: reading ends when it closes the pipe, even by a crash.
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
