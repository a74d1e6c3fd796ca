"""A recording as an endpoint: equal questions get recorded answers, any other is refused with its first difference."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from mimir.domain.call_outcome import CallOutcome
from mimir.recordings.format.recording import RecordedCall, RecordedRun, Recording
from mimir.recordings.server.recording_server import RecordingServer

SYSTEM, USER = {"role": "system", "text": "Be brief."}, {"role": "user", "text": "Say a word."}
ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say a word."}]


def call(lane: str, seq: int, text: str, *, tool: bool = False, kept: int = 0) -> RecordedCall:
    calls = [{"id": "c1", "name": "read_file", "arguments": '{"path": "a"}'}] if tool else []
    answer = {"role": "assistant", "text": text, **({"calls": calls} if tool else {})}
    added = (
        [SYSTEM, USER]
        if kept == 0
        else [answer_of_tool, {"role": "tool", "text": "alpha", "call_id": "c1"}]
    )
    return RecordedCall(
        lane=lane,
        seq=seq,
        kind="model",
        tool="",
        title="",
        request={"kept": kept, "messages": added, "settings": {"tools": []}},
        request_hash="",
        outcome=CallOutcome(value={"message": answer, "finish": "tool_calls" if tool else "stop"}),
        lane_hash="",
    )


answer_of_tool = {
    "role": "assistant",
    "text": "I look.",
    "calls": [{"id": "c1", "name": "read_file", "arguments": '{"path": "a"}'}],
}


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    run = RecordedRun(id="run-1")
    run.lanes["run-1/a/1/worker"] = {
        0: call("run-1/a/1/worker", 0, "I look.", tool=True),
        2: call("run-1/a/1/worker", 2, "It says alpha.", kept=2),
    }
    run.lanes["run-1/b/1/worker"] = {0: call("run-1/b/1/worker", 0, "Another word.")}
    with RecordingServer(Recording(runs={"run-1": run}), 0) as made:
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.shutdown()


def post(server: RecordingServer, body: object, **headers: str) -> dict:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{server.url}/chat/completions", data, dict(headers))
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def refused(server: RecordingServer, body: object, **headers: str) -> tuple[int, str]:
    with pytest.raises(urllib.error.HTTPError) as caught:
        post(server, body, **headers)
    with caught.value as error:
        return error.code, json.loads(error.read())["error"]["message"]


def answer_text(answer: dict) -> str:
    return answer["choices"][0]["message"]["content"]


def test_equal_requests_of_two_transcripts_are_answered_in_order_or_by_header(
    server: RecordingServer,
):
    body = {"model": "any", "messages": ASKED}
    assert [answer_text(post(server, body)) for _ in range(3)] == [
        "I look.",
        "Another word.",
        "I look.",
    ]
    assert (
        answer_text(post(server, body, **{"X-Mimir-Lane": "run-9/b/1/worker"})) == "Another word."
    )


def test_recording_server_continues_after_a_tool_result(server: RecordingServer):
    first = post(server, {"messages": ASKED})["choices"][0]
    assert first["finish_reason"] == "tool_calls"
    result = {"role": "tool", "tool_call_id": "c1", "content": "what the tool says now"}
    answer = post(server, {"messages": [*ASKED, first["message"], result]})
    assert answer_text(answer) == "It says alpha."
    assert server.index.left == ["b/1/worker, call 0"]


def test_answer_is_streamed_on_request(server: RecordingServer):
    body = {"messages": ASKED, "stream": True, "stream_options": {"include_usage": True}}
    request = urllib.request.Request(f"{server.url}/chat/completions", json.dumps(body).encode())
    with urllib.request.urlopen(request) as answer:
        events = answer.read().decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
    assert chunks[0]["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] == "read_file"
    assert chunks[1]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["usage"]["total_tokens"] == 0


def test_other_question_is_refused_with_its_first_difference(server: RecordingServer):
    other = [ASKED[0], {"role": "user", "content": "Say a number."}]
    code, why = refused(server, {"messages": other})
    assert code == 404
    assert "lane a/1/worker, call 0; first difference in message 2 (user), characters 7–12" in why


def test_unknown_transcript_is_refused(server: RecordingServer):
    code, why = refused(server, {"messages": ASKED}, **{"X-Mimir-Lane": "c/1/worker"})
    assert (code, why) == (404, "The recording has no transcript 'c/1/worker'.")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"messages": []}', b'{"messages": [1]}', b'{"messages": [{}]}']
)
def test_invalid_request_is_refused_with_400(server: RecordingServer, body: bytes):
    assert refused(server, body)[0] == 400


def test_endpoint_is_reached_on_this_machine_only(server: RecordingServer):
    assert server.server_address[0] == "127.0.0.1"
    with urllib.request.urlopen(f"{server.url}/models") as answer:
        assert json.loads(answer.read())["data"] == [{"id": "recorded", "object": "model"}]


def test_lost_client_is_no_error(
    server: RecordingServer, capsys: pytest.CaptureFixture[str]
) -> None:
    for error, is_told in ((ConnectionResetError(), False), (ZeroDivisionError(), True)):
        try:
            raise error
        except (ConnectionResetError, ZeroDivisionError):
            server.handle_error(None, ("127.0.0.1", 1))
        assert ("Traceback" in capsys.readouterr().err) == is_told
