"""Recording as an OpenAI-compatible endpoint on loopback, for programs in any language.

The recorded call with the same request answers: in the transcript that `X-Mimir-Lane` names, otherwise in any, in recorded order. A
request may be repeated. A request that is not recorded is refused with the first differing part.
"""

import json
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast
from urllib.parse import unquote

from mimir.domain.json_value import JsonObject, as_object
from mimir.llm import codec
from mimir.recordings.format.recording import RecordedCall, Recording
from mimir.recordings.format.request_match import RecordedRequest, difference, iterate_requests
from mimir.recordings.server import chat_protocol

LANE_HEADER = "X-Mimir-Lane"
MAX_BODY_BYTES = 64_000_000
PATHS = ("/v1/chat/completions", "/chat/completions")
MISS = "recording_miss"


@dataclass(slots=True)
class RecordedAnswer:
    """One recorded call, as an external program requests it."""

    lane: str
    call: RecordedCall
    question: RecordedRequest
    served: int = 0


@dataclass(slots=True)
class AnswerIndex:
    """Recorded calls by their requests, for several threads."""

    calls: list[RecordedAnswer] = field(default_factory=list[RecordedAnswer])
    _by_key: dict[str, list[RecordedAnswer]] = field(
        default_factory=dict[str, list[RecordedAnswer]]
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, recording: Recording) -> "AnswerIndex":
        """Index the model calls of a recording."""
        index = cls()
        for run in recording.runs.values():
            for lane in run.lanes:
                for call, question in iterate_requests(run.model_calls(run.own(lane))):
                    one = RecordedAnswer(
                        run.own(lane), call, chat_protocol.format_request(question)
                    )
                    index.calls.append(one)
                    index._by_key.setdefault(chat_protocol.key(one.question), []).append(one)
        return index

    def find(self, question: RecordedRequest, lane: str) -> RecordedAnswer | None:
        """Return the least used call with this request; of one transcript if it is named."""
        with self._lock:
            found = [
                one
                for one in self._by_key.get(chat_protocol.key(question), [])
                if _is_of(one.lane, lane)
            ]
            if not found:
                return None
            # The least used first: equal requests get their answers in recorded order.
            best = min(found, key=lambda one: one.served)
            best.served += 1
            return best

    def why_not(self, question: RecordedRequest, lane: str) -> str:
        """Describe the first difference from the most similar recorded request."""
        near = [one for one in self.calls if _is_of(one.lane, lane)]
        if not near:
            return (
                f"The recording has no transcript {lane!r}." if lane else "The recording is empty."
            )
        best = max(near, key=lambda one: _alike(one.question, question))
        found = difference(best.question, question, exactly=False)
        part = str(found) if found else "other arguments of a tool call"
        return f"This request is not recorded. Nearest: lane {best.lane}, call {best.call.seq}; first difference in {part}"

    @property
    def left(self) -> Sequence[str]:
        """`lane, call` of each unused one."""
        return [f"{one.lane}, call {one.call.seq}" for one in self.calls if not one.served]


def _is_of(own: str, lane: str) -> bool:
    # Clients may name a transcript with its run.
    return not lane or lane == own or lane.endswith(f"/{own}")


def _alike(one: RecordedRequest, other: RecordedRequest) -> int:
    # Equal messages outweigh every equal beginning of a text.
    same = 0
    for a, b in zip(one.messages, other.messages, strict=False):
        if a != b:
            common = next(
                (n for n, (x, y) in enumerate(zip(a.text, b.text, strict=False)) if x != y), 0
            )
            return same * 1_000_000 + (common if a.role == b.role else 0)
        same += 1
    return same * 1_000_000


class RecordingServer(ThreadingHTTPServer):
    """HTTP server of the endpoint."""

    # A client that keeps its connection open must not delay the end of the command.
    daemon_threads = True

    def __init__(self, recording: Recording, port: int) -> None:
        """Bind to 127.0.0.1; port 0: a free one.

        Raises:
            OSError: The port is in use.
        """
        self.index = AnswerIndex.of(recording)
        super().__init__(("127.0.0.1", port), _RequestHandler)

    @property
    def url(self) -> str:
        """Base URL for clients."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that closed the connection; report any other error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # pyright: ignore[reportArgumentType]


class _RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # The default header names the version of Python.
    server_version, sys_version = "mimir", ""

    def do_GET(self) -> None:
        """Return the list of the one model."""
        if self.path.rstrip("/") not in ("/v1/models", "/models"):
            self._refuse(404, f"The path {self.path[:100]!r} does not exist.", "not_found")
            return
        self._whole(200, {"object": "list", "data": [{"id": "recorded", "object": "model"}]})

    def do_POST(self) -> None:
        """Answer one request."""
        body = self._body()
        if body is None:
            return
        try:
            question = chat_protocol.parse_request(body)
        except ValueError as error:
            self._refuse(400, f"This is not a chat completion: {error}.", "invalid_request_error")
            return
        lane = unquote(self.headers.get(LANE_HEADER, ""))
        index = cast("RecordingServer", self.server).index
        found = index.find(question, lane)
        if found is None:
            self._refuse(404, index.why_not(question, lane), MISS)
            return
        self._answer(found, as_object(body))

    def _answer(self, found: RecordedAnswer, body: JsonObject) -> None:
        answer = codec.read_answer(found.call.outcome.value)
        model = answer.model or str(body.get("model") or "recorded")
        if body.get("stream") is not True:
            self._whole(200, chat_protocol.format_answer(answer, model))
            return
        has_usage = bool(as_object(body.get("stream_options")).get("include_usage"))
        chunks = chat_protocol.format_stream(answer, model, usage=has_usage)
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self._send(200, "text/event-stream", text.encode())

    def _body(self) -> object | None:
        if self.path.split("?")[0] not in PATHS:
            self._refuse(404, f"The path {self.path[:100]!r} does not exist.", "not_found")
            return None
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            # The body was not read: the connection cannot be used again.
            self.close_connection = True
            self._refuse(411, "A body with its length is required.", "invalid_request_error")
            return None
        try:
            body: object = json.loads(self.rfile.read(int(length)))
            return body
        except (ValueError, RecursionError):
            self._refuse(400, "The body is not JSON.", "invalid_request_error")
            return None

    def _refuse(self, status: int, message: str, kind: str) -> None:
        self._whole(status, {"error": {"message": message, "type": kind, "code": kind}})

    def _whole(self, status: int, value: object) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
