"""The adapter on raw exchanges: recorded bytes of a server are read again without a socket, byte for byte."""

import socket
from pathlib import Path

import pytest

from mimir.domain.message import Answer
from mimir.errors import ModelError
from mimir.llm.config import EndpointConfig
from mimir.llm.openai.endpoint import OpenAIEndpoint
from tests.support.clock import FrozenClock
from tests.support.http_recording import HttpMissError, playing, recording
from tests.support.model_requests import READ_FILE, question
from tests.support.script_server import PlayServer

KEY = "sk-fixture-0123456789"
PLAY = """
default:
  - calls: [{tool: read_file, arguments: {path: notes.md}}]
  - fault: {name: rate_limited, seconds: 7}
    text: later
  - text: "It says α and \\U0001F600."
"""


async def talk(url: str) -> tuple[Answer, float | None]:
    """Ask twice; the second one is refused for a while."""
    config = EndpointConfig(base_url=url, api_key=KEY, model="m")
    endpoint = OpenAIEndpoint(config, FrozenClock())
    try:
        model = endpoint.for_lane("run-1/a/1/worker")
        first = await model.ask(question(tools=(READ_FILE,)))
        try:
            await model.ask(question(text="Once more."))
        except ModelError as error:
            return first, error.retry_after_seconds
        return first, None
    finally:
        await endpoint.aclose()


@pytest.fixture
async def tape(tmp_path: Path) -> tuple[Path, str, tuple[Answer, float | None]]:
    file = tmp_path / "exchanges.jsonl"
    with PlayServer(PLAY) as server, recording(file):
        return file, server.url, await talk(server.url)


async def test_exchanges_are_read_again_without_a_socket(
    tape: tuple[Path, str, tuple[Answer, float | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, url, before = tape

    def refuse(*_: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    with playing(file):
        assert await talk(url) == before


async def test_no_key_gets_into_a_fixture(
    tape: tuple[Path, str, tuple[Answer, float | None]],
) -> None:
    text = tape[0].read_text()
    assert KEY not in text
    assert "authorization" not in text.lower()


async def test_other_request_and_a_left_over_one_fail(
    tape: tuple[Path, str, tuple[Answer, float | None]],
) -> None:
    file, url, _ = tape
    with pytest.raises(HttpMissError, match="were not asked for"), playing(file):
        pass
    file.write_text(file.read_text().replace('"model": "m"', '"model": "other"'))
    with pytest.raises(HttpMissError, match=r"recorded .*'model': 'other'"), playing(file):
        await talk(url)
