"""The sets `todo` and `aliases` over a real client; commands show a todo list and never work on it."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp.client.client import Client

from tests.support.agent_corpus import answer, claude
from tests.support.cli_runner import Desk
from tests.support.mcp_client import connected_client
from tests.support.mcp_tasks import TaskClient
from tests.support.projects import make_project
from tests.support.whole_run import REST, calls, worker

READS = {"calls": [calls("read_file", path="README.md")]}
SETS = ("--tools", "core,delegation,todo,aliases")


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Desk:
    files = {
        ".claude/agents/reviewer.md": claude("reviewer", "tools: Read"),
        ".agents/skills/sums/agents/adder/SKILL.md": claude("adder", "tools: Read"),
        "README.md": "# A project\n",
    }
    script = {"parts": [worker("task-1", READS, answer("It adds.")), *REST]}
    (tmp_path / "script.yaml").write_text(yaml.safe_dump(script), encoding="utf-8")
    desk = Desk(make_project(tmp_path / "project", files), monkeypatch, capsys)
    desk.environ(MIMIR_MODEL="play:../script.yaml")
    return desk


def test_clients_share_a_todo_list_that_no_command_works_on(desk: Desk):
    async def drive() -> dict[str, Any]:
        # Given two servers of one project, the first of which creates its store
        async with (
            connected_client(desk.project, SETS) as one,
            connected_client(desk.project, SETS) as other,
        ):
            empty = await one.call("list_todos")
            made = [await one.call("create_todo", title=f"Part {n}") for n in (1, 2, 3)]

            # When both want the same todo, one has it, and completes it under its fence
            locked = await asyncio.gather(
                *(server.call("lock_todo", todo="todo-1") for server in (one, other))
            )
            (won,) = [answer for answer in locked if not answer["is_error"]]
            (lost,) = [answer for answer in locked if answer["is_error"]]
            stale = await other.call("complete_todo", todo="todo-1", fence=won["fence"] + 1)
            done = await other.call(
                "complete_todo", todo="todo-1", fence=won["fence"], note="Did it."
            )
            second = await other.call("lock_todo", minutes=5)
            longer = await other.call("lock_todo", todo="todo-2", fence=second["fence"])
            freed = await other.call("release_todo", todo="todo-2", fence=second["fence"])
            await one.call("lock_todo", todo="todo-3")
            listed = await one.call("list_todos", all=True)
            status = await one.call("status", run=made[0]["run"], wait_seconds=50)
            none = await one.call("lock_todo", list="other")
        return {
            name: value
            for name, value in locals().items()
            if isinstance(value, dict | list) and name not in ("locked",)
        }

    got = asyncio.run(drive())
    assert got["empty"]["is_error"]
    assert [one["todo"] for one in got["made"]] == ["todo-1", "todo-2", "todo-3"]
    assert "todo-1 is locked by stdio:" in got["lost"]["problem"]
    assert "is no fence of todo-1" in got["stale"]["problem"]
    assert (got["done"]["status"], got["done"]["assurance"]) == ("done", "none")
    assert got["longer"]["locked_until"] > got["second"]["locked_until"]
    assert got["freed"]["status"] == "open"
    states = [(one["todo"], one["status"]) for one in got["listed"]["todos"]]
    assert states == [("todo-1", "done"), ("todo-2", "open"), ("todo-3", "locked")]
    assert got["status"]["todo_list"] is True
    assert "no todo list 'other'" in got["none"]["problem"]

    # Then the commands show it, nothing calls it completed, and no agent works on it
    run = got["made"][0]["run"]
    shown = desk.type("show", run)
    assert (shown.code, "completed" in shown.out) == (0, False)
    for words in ("answered", "waiting", "working", "Part 2", "not proven"):
        assert words in shown.out, shown.out
    assert "Did it." in desk.type("show", f"{run}/todo-1").out
    (entry,) = desk.type("runs", "--json").json["runs"]
    assert (entry["status"], entry["plan"]) == ("running", "todo:main")
    for command in (("resume", run), ("worker", "--run", run), ("pause", run), ("verify", run)):
        refused = desk.type(*command)
        assert refused.code == 2, (command, refused)
        assert "is a todo list" in refused.err
    assert "has no run" in desk.type("resume").err
    assert desk.type("status").code == 2
    report = desk.type("report", run)
    assert (report.code, "completed" in report.out.lower()) == (0, False), report.out
    assert desk.type("log", run).code == 0
    assert "→ completed (not proven)" in desk.type("ledger", "--run", run).out
    assert desk.type("cancel", run).code == 0
    (entry,) = desk.type("runs", "--json").json["runs"]
    assert entry["status"] == "cancelled"


def test_aliases_call_the_tools_whose_names_they_replace(desk: Desk):
    async def drive() -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
        async with connected_client(desk.project, SETS) as server:
            asked = await server.call(
                "invoke_agent", agent="project:reviewer", prompt="Does it add?", mode="foreground"
            )
            read = partial(server.call, "get_agent_output", run=asked["run"], wait_seconds=50)
            pages = [await read(), *[await read(part="transcript", offset=at) for at in (0, 10)]]
            names = ("ledger_get_learnings", "memory-lane_find", "memory_search")
            return asked, pages, [await server.call(name, text="reviewer") for name in names]

    asked, (response, whole, later), found = asyncio.run(drive())
    assert asked["run"].startswith("agent-")
    assert response["status"] == "answered", response
    # Text of agents and tools is quoted, in pages.
    assert whole["text"].startswith("```text\n[attempt 1, call 0] model")
    for words in ("calls read_file", "# A project", "It adds."):
        assert words in whole["text"]
    assert whole["characters"] == later["characters"]
    assert whole["text"][8:][10:60] == later["text"][8:][:50]
    assert found[0]["memories"]
    assert found[0] == found[1] == found[2]


def test_an_agent_without_a_waiting_caller_is_acknowledged_and_is_no_task(desk: Desk):
    async def drive() -> list[dict[str, Any]]:
        tasks = partial(Client, extensions=[TaskClient()])
        async with connected_client(desk.project, SETS, client=tasks) as server:
            skilled = await server.call(
                "skill_agent",
                skill_name="project:sums",
                agent_name="adder",
                prompt="Look at the sums.",
                run_in_background=True,
            )
            trusted = await server.call(
                "spawn_agent",
                chatmode="project:reviewer",
                task="Read every file of the project, one after another.",
                mode="trust",
                max_tool_calls=1,
            )
            status = await server.call("get_agent_status", run=trusted["run"])
            ended = await server.call("terminate_agent", session_id=trusted["session"])
        return [skilled, trusted, status, ended]

    skilled, trusted, status, ended = asyncio.run(drive())
    assert [(one["mode"], "taskId" in one) for one in (skilled, trusted)] == [
        ("ping", False),
        ("trust", False),
    ]
    assert {one["status"] for one in (skilled, trusted)} <= {"working", "queued"}
    assert status["tool_call_limit"] == 1
    assert not ended["is_error"]
