import gc
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from mimir.errors import PlanError
from mimir.llm.config import EndpointConfig
from mimir.llm.openai.endpoint import OpenAIEndpoint
from tests.support.clock import FrozenClock
from tests.support.model_requests import READ_FILE, question, result
from tests.support.script_requests import caller
from tests.support.script_server import PlayServer

TWO = "default: [{calls: [{tool: read_file}]}, done]"


def ask(url: str, *messages: tuple[str, str], header: str = "", **more: object) -> dict:
    body = {"model": "m", "messages": [{"role": r, "content": c} for r, c in messages], **more}
    request = urllib.request.Request(
        f"{url}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", **({"X-Mimir-Lane": header} if header else {})},
    )
    with urllib.request.urlopen(request) as answered:
        return json.load(answered)


def is_refused(url: str) -> bool:
    try:
        ask(url, ("user", "x"))
    except urllib.error.URLError as error:
        return isinstance(error.reason, ConnectionRefusedError)
    except (http.client.HTTPException, ConnectionError):
        return False
    return False


async def test_the_log_has_a_line_for_each_request_before_it_is_answered(tmp_path: Path):
    log = tmp_path / "log"
    with PlayServer(TWO, log=log) as server:
        endpoint = OpenAIEndpoint(
            EndpointConfig(base_url=server.url, model="m", lane_header=True), FrozenClock()
        )
        model = endpoint.for_lane("run-1/task-1/2/worker")
        first = (await model.ask(question(tools=(READ_FILE,)))).message
        assert len(log.read_text().splitlines()) == 1
        await model.ask(question(first, result(first.calls[0], "r"), tools=(READ_FILE,)))
        await endpoint.aclose()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [
        (row["lane"], row["task"], row["attempt"], row["role"], row["turn"], row["messages"])
        for row in lines
    ] == [
        ("run-1/task-1/2/worker", "task-1", 2, "worker", 0, 2),
        ("run-1/task-1/2/worker", "task-1", 2, "worker", 1, 4),
    ]
    assert lines[0]["hash"] != lines[1]["hash"]


def test_a_request_that_is_never_answered_is_in_the_log(tmp_path: Path):
    log = tmp_path / "log"
    with (
        PlayServer("default: [{fault: refused}]", log=log) as server,
        pytest.raises(OSError, match=r"."),
    ):
        ask(server.url, ("user", "x"))
    assert json.loads(log.read_text())["fault"] == "refused"


@pytest.mark.parametrize(
    ("system", "user", "tools", "found"),
    [
        (
            "You work.",
            "# Your task\n**Task:** task-1.2\nThis is Attempt 2 of 3.",
            ["write_file"],
            ("worker", "task-1.2", 2),
        ),
        (
            "You judge.",
            "Task: a\nAttempt 1 of 1\n=== source answer ===\nx",
            ["read_file"],
            ("qc", "a", 1),
        ),
        ("You plan.", "Request: x", ["read_file", "memory_search_nodes"], ("pm", "plan", 1)),
        ("You are Ecko.", "Request: x", [], ("ecko", "plan", 1)),
        ("I am the boss here.", "Request", [], ("pm", "plan", 1)),
    ],
)
def test_without_a_header_the_caller_is_found_in_the_text(system, user, tools, found):
    body = {
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
        "tools": [{"function": {"name": name}} for name in tools],
    }
    name = caller({}, body, {"pm": ("the boss",)}).name
    assert (name.role, name.task, name.attempt) == found


def test_model_server_without_a_turn_answers_403():
    with (
        PlayServer("parts: [{role: qc, turns: [x]}]") as server,
        pytest.raises(urllib.error.HTTPError) as caught,
    ):
        ask(server.url, ("user", "x"), header="r/t/1/worker")
    assert caught.value.code == 403
    assert "has no turn" in caught.value.read().decode()
    caught.value.close()


def test_invalid_model_script_is_refused_at_the_start():
    with pytest.raises(PlanError):
        PlayServer("plays: []")


def test_it_runs_as_a_program(tmp_path: Path):
    play, port, log, down = (tmp_path / name for name in ("play.yaml", "port", "log", "down"))
    play.write_text("default: [{text: hello, repeat: forever}]")
    arguments = ["--port-file", port, "--log", log, "--down-file", down]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.script_server", play, *arguments],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    ) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        url = f"http://127.0.0.1:{port.read_text()}/v1"
        assert ask(url, ("user", "x"))["choices"][0]["message"]["content"] == "hello"
        down.touch()
        while not is_refused(url):  # until the server has seen the file
            pass
        process.send_signal(signal.SIGTERM)
    assert json.loads(log.read_text().splitlines()[0])["role"] == "ecko"


def test_new_connections_during_close_are_closed():
    for _ in range(5):
        with PlayServer("default: [{text: an answer, repeat: forever}]") as server:
            for _ in range(50):
                with socket.create_connection(("127.0.0.1", server.port)) as line:
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    gc.collect()  # a connection that was left open is reported here, and fails the test
