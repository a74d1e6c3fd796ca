"""A recording as an OpenAI-compatible endpoint on the loopback interface, for programs in other languages.

A request is answered by the recorded call with the same question: in the lane that `X-Mimir-Lane` names, else in any, in the order in
which they were recorded. One that was answered may be asked again. What is not recorded is refused, with the first part that differs.
"""

import json
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast
from urllib.parse import unquote

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
    """One recorded call, as a program outside asks for it."""

    lane: str
    call: RecordedCall
    question: RecordedRequest
    served: int = 0


@dataclass(slots=True)
class AnswerIndex:
    """All recorded calls, found by their questions. Used by several threads."""

    calls: list[RecordedAnswer] = field(default_factory=list[RecordedAnswer])
    _by_key: dict[str, list[RecordedAnswer]] = field(
        default_factory=dict[str, list[RecordedAnswer]]
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, tape: Recording) -> "AnswerIndex":
        """Put a recording's model calls on it."""
        shelf = cls()
        for run in tape.runs.values():
            for lane in run.lanes:
                for call, question in iterate_requests(run.model_calls(run.own(lane))):
                    one = RecordedAnswer(
                        run.own(lane), call, chat_protocol.format_request(question)
                    )
                    shelf.calls.append(one)
                    shelf._by_key.setdefault(chat_protocol.key(one.question), []).append(one)
        return shelf

    def find(self, question: RecordedRequest, lane: str) -> RecordedAnswer | None:
        """Return the call with this question that was served least; of this lane, if one is named."""
        with self._lock:
            found = [
                one
                for one in self._by_key.get(chat_protocol.key(question), [])
                if _is_of(one.lane, lane)
            ]
            if not found:
                return None
            best = min(found, key=lambda one: one.served)
            best.served += 1
            return best

    def why_not(self, question: RecordedRequest, lane: str) -> str:
        """Say where a question first differs from the one that is most like it."""
        near = [one for one in self.calls if _is_of(one.lane, lane)]
        if not near:
            return f"The recording has no lane {lane!r}." if lane else "The recording is empty."
        best = max(near, key=lambda one: _alike(one.question, question))
        found = difference(best.question, question, exactly=False)
        what = str(found) if found else "other arguments of a tool call"
        return f"No such question is recorded. Nearest: lane {best.lane}, call {best.call.seq}; first difference in {what}"

    @property
    def left(self) -> Sequence[str]:
        """`lane, call` of each that nobody asked for."""
        return [f"{one.lane}, call {one.call.seq}" for one in self.calls if not one.served]


def _is_of(own: str, lane: str) -> bool:
    return not lane or lane == own or lane.endswith(f"/{own}")


def _alike(one: RecordedRequest, other: RecordedRequest) -> int:
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
    """The endpoint."""

    daemon_threads = True

    def __init__(self, tape: Recording, port: int) -> None:
        """Bind to 127.0.0.1.

        Args:
            tape: What answers.
            port: 0: a free one.

        Raises:
            OSError: The port is taken.
        """
        self.shelf = AnswerIndex.of(tape)
        super().__init__(("127.0.0.1", port), _RequestHandler)

    @property
    def url(self) -> str:
        """What a client takes as its base URL."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a client that went away in the middle; all else is a fault of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # pyright: ignore[reportArgumentType]


class _RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "mimir", ""

    def do_GET(self) -> None:
        """List the one model there is."""
        if self.path.rstrip("/") not in ("/v1/models", "/models"):
            self._refuse(404, f"There is nothing at {self.path[:100]!r}.", "not_found")
            return
        self._whole(200, {"object": "list", "data": [{"id": "recorded", "object": "model"}]})

    def do_POST(self) -> None:
        """Answer one question."""
        body = self._body()
        if body is None:
            return
        try:
            question = chat_protocol.parse_request(body)
        except ValueError as error:
            self._refuse(400, f"This is no chat completion: {error}.", "invalid_request_error")
            return
        lane = unquote(self.headers.get(LANE_HEADER, ""))
        shelf = cast("RecordingServer", self.server).shelf
        found = shelf.find(question, lane)
        if found is None:
            self._refuse(404, shelf.why_not(question, lane), MISS)
            return
        self._answer(found, cast("dict[str, object]", body))

    def _answer(self, found: RecordedAnswer, body: dict[str, object]) -> None:
        answer = codec.read_answer(found.call.outcome.value)
        model = answer.model or str(body.get("model") or "recorded")
        if body.get("stream") is not True:
            self._whole(200, chat_protocol.format_answer(answer, model))
            return
        options = body.get("stream_options")
        wanted = isinstance(options, dict) and bool(
            cast("dict[str, object]", options).get("include_usage")
        )
        chunks = chat_protocol.format_stream(answer, model, usage=wanted)
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self._send(200, "text/event-stream", text.encode())

    def _body(self) -> object | None:
        if self.path.split("?")[0] not in PATHS:
            self._refuse(404, f"There is nothing at {self.path[:100]!r}.", "not_found")
            return None
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            self._refuse(411, "A body with its length is wanted.", "invalid_request_error")
            return None
        try:
            return cast("object", json.loads(self.rfile.read(int(length))))
        except (ValueError, RecursionError):
            self._refuse(400, "The body is no JSON.", "invalid_request_error")
            return None

    def _refuse(self, status: int, what: str, kind: str) -> None:
        self._whole(status, {"error": {"message": what, "type": kind, "code": kind}})

    def _whole(self, status: int, value: object) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
