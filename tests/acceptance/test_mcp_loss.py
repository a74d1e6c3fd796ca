"""Losses around `mimir mcp`: a client that leaves in mid-call, and a store that is away."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from mimir.bootstrap import local_store
from mimir.bootstrap.stored_project import ProjectPlace
from mimir.domain.json_value import NO_MEMBERS
from mimir.store.protocol import ReadOps
from mimir.store.run_reading import load_run_overviews
from tests.support.agent_corpus import claude
from tests.support.mcp_client import Caller, connected_client
from tests.support.mcp_tasks import TaskClient, ask_task
from tests.support.projects import make_project
from tests.support.small_runs import stored_project

AGENT = "project:reviewer"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {".claude/agents/reviewer.md": claude("reviewer", "tools: Read"), "plan.md": "# Plan\n"}
    return make_project(tmp_path / "project", files)


class HeldModel:
    """An endpoint that refuses every request after a switch."""

    def __init__(self) -> None:
        self.asked = asyncio.Queue[None]()
        self.released = asyncio.Event()

    async def answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hold a request."""
        self.asked.put_nowait(None)
        await self.released.wait()
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[Mapping[str, str]]:
        """Listen; yield the variables of a server that asks here."""
        server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            yield {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "MIMIR_MODEL": "any"}


async def test_run_of_a_lost_mcp_client_continues_for_the_next_client(project: Path):
    model = HeldModel()
    async with model.served() as variables:
        # Given two calls whose models have not answered
        async with connected_client(project, **variables) as leaving:
            calls = [
                leaving.client.call_tool("plan", {"request": "Write a.txt."}),
                leaving.client.call_tool("spawn_agent", {"chatmode": AGENT, "task": "Look."}),
            ]
            waiting = [asyncio.ensure_future(call) for call in calls]
            for _ in waiting:
                await model.asked.get()
            # When the client leaves
            for call in waiting:
                call.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

        # Then both work on, and another server knows how they end
        async with connected_client(project, **variables) as other:
            runs = local_store.look(project, "", find_runs, say=print)
            working = [await other.call("status", run=run) for run in runs]
            model.released.set()
            ended = [await other.wait_for("status", run=run) for run in runs]
    assert [one["status"] for one in working] == ["running", "running"]
    assert [(one["status"], one["reason"]) for one in ended] == [("paused", "configuration")] * 2


def find_runs(reads: ReadOps, place: ProjectPlace) -> list[str]:
    """Return the runs of the project."""
    return [one.id for one in load_run_overviews(reads, place.id)]


ARGUMENTS: Mapping[str, Mapping[str, object]] = {
    "validate_output": {"sub_agent_response": "run-1"},
    "get_agent_status": {"session_id": "run-1"},
    "get_agent_output": {"session_id": "run-1"},
    "terminate_agent": {"session_id": "run-1"},
    "open_session": {"name": "Another purpose"},
    "answer": {"answers": {"q-1": "yes"}},
    "create_todo": {"title": "Look"},
    "complete_todo": {"todo": "todo-1", "fence": 1},
    "release_todo": {"todo": "todo-1", "fence": 1},
    "memory_search": {"text": "limiter"},
    "memory_add": {"text": "Prefer tabs."},
}
SETS = ("--tools", "core,delegation,todo")
STARTING = ("plan", "execute", "spawn_agent")
"""Tools that start a command, which names the store itself."""
WITHOUT_STORE = ("list_available_chatmodes", "get_available_instructions")
"""Tools that read files of the project alone."""


async def test_each_tool_names_a_store_that_is_damaged_and_reads_it_again_later(project: Path):
    await asyncio.to_thread(stored_project, project)
    database = project / ".mimir/mimir.db"
    whole = database.read_bytes()
    client = partial(Client, extensions=[TaskClient()])
    async with connected_client(project, SETS, client=client) as used:
        database.write_bytes(b"garbage " * 1000)
        answers = await call_all(used, {"plan": {"request": "Write a.txt."}})
        with pytest.raises(MCPError, match="is not a store of mimir"):
            await ask_task(used.client, "get", "run-1")
        left = database.read_bytes()
        database.write_bytes(whole)
        again = await used.call("status")
    require_own_words(answers, "mimir.db is not a store of mimir", project)
    assert left == b"garbage " * 1000
    assert again["run"] == "run-1"


async def test_each_tool_names_a_server_that_refuses_connections(project: Path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    (project / ".mimir").mkdir()
    variables = {
        "MIMIR_STORE": f"bolt://127.0.0.1:{port}",
        "MIMIR_NEO4J__PASSWORD": "secret-of-the-server",
    }
    async with connected_client(project, SETS, **variables) as used:
        answers = await call_all(used)
    require_own_words(answers, "cannot be reached", project)
    assert "secret-of-the-server" not in json.dumps(answers)


async def call_all(
    server: Caller, starting: Mapping[str, Mapping[str, object]] = NO_MEMBERS
) -> dict[str, dict[str, Any]]:
    """Call each tool that uses the store; of those that start a command only the given ones."""
    tools = {one.name for one in (await server.client.list_tools()).tools}
    called = {**{name: {} for name in tools - {*STARTING, *WITHOUT_STORE}}, **ARGUMENTS, **starting}
    assert called.keys() <= tools
    return {name: await server.call(name, **given) for name, given in called.items()}


def require_own_words(answers: Mapping[str, Mapping[str, Any]], words: str, project: Path) -> None:
    """Require that each answer is an error with these words, a next step and no path."""
    for tool, answer in answers.items():
        assert answer["is_error"], (tool, answer)
        assert words in answer["problem"], (tool, answer)
        assert answer["next"], (tool, answer)
        assert str(project) not in json.dumps(answer)
