"""The tool set `delegation` over a real client: spawn, restart, output, limits of the session."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import yaml

from mimir.domain.usage import estimate
from tests.support.agent_corpus import answer, claude
from tests.support.mcp_client import Caller, connected_client
from tests.support.projects import make_project
from tests.support.whole_run import REST, calls, worker

MONEY = "def total(items):\n    return sum(items) / len(items)\n"
FOUND = answer(
    'It divides: [file:src/money.py] "return sum(items) / len(items)". It also says '
    '[file:src/money.py] "raise ValueError here".'
)
READS = {"calls": [calls("read_file", path="src/money.py")]}
TASK = "Is the function total in src/money.py right for every list of numbers?"


def connected(project: Path, **variables: str) -> AbstractAsyncContextManager[Caller]:
    words = ("--tools", "core,delegation")
    return connected_client(project, words, MIMIR_SESSION="s-test", **variables)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        ".claude/agents/reviewer.md": claude("reviewer", "tools: Read"),
        "src/money.py": MONEY,
        "AGENTS.md": "# How to work here\n\n```\nmake\n```\n",
    }
    script = {"parts": [worker("task-1", READS, FOUND), *REST]}
    (tmp_path / "script.yaml").write_text(yaml.safe_dump(script), encoding="utf-8")
    return make_project(tmp_path / "project", files)


async def test_an_agent_is_spawned_and_its_checked_answer_outlives_the_server(project: Path):
    # Given a server without time to wait
    async with connected(project, MIMIR_MCP__WAIT_SECONDS="0") as first:
        listed = await first.list_as_text()
        agents = await first.call("list_available_chatmodes", query="reviewer")
        spawned = await first.call("spawn_agent", chatmode="project:reviewer", task=TASK)
    assert estimate(listed) <= 4_500
    assert agents["chatmodes"][0]["address"] == "project:reviewer"
    # A quick agent may have answered when its run is seen first.
    assert spawned["status"] in ("working", "answered")
    assert spawned["calls_left"] == 19

    # Then another server has the answer, and knows that one citation is invented
    async with connected(project) as second:
        run = spawned["run"]
        answered = await second.wait_for("get_agent_output", run=run)
        again = await second.call("spawn_agent", chatmode="project:reviewer", task=f"{TASK} ")
        unknown = await second.call("spawn_agent", chatmode="project:none", task="Do it.")
        session = await second.call("get_agent_status")
        ended = await second.call("terminate_agent", session_id=run)
        opened = await second.call("open_session", name="Another purpose")
        other = await second.call("get_agent_status", session_id=opened["session"])
        foreign = await second.call(
            "spawn_agent", chatmode="project:reviewer", task="Look.", session="s-unknown"
        )
        refined = await second.call(
            "spawn_agent", chatmode="project:reviewer", task=TASK, refines=run
        )
    assert answered["status"] == "answered"
    assert answered["session"] == "s-test"
    assert [one for one in answered["assurance"]["citations"]["unverified"] if "ValueError" in one]
    assert (again["refused"], again["is_error"]) == ("similar", True)
    assert run in again["next"]
    assert "project:none" in unknown["problem"]
    assert (session["total_calls"], session["calls_left"]) == (1, 19)
    assert (ended["status"], ended["is_error"]) == ("answered", False)
    assert (opened["limits"]["calls"], other["calls_left"], other["runs"]) == (20, 20, [])
    assert (foreign["refused"], foreign["is_error"]) == ("session", True)
    assert (refined["status"], refined["calls_left"]) == ("answered", 18)
    assert not list((project / ".mimir/log").glob("*.txt")), "no text of a call is left in a file"


async def test_a_response_is_validated_by_its_stored_run_alone(project: Path):
    async with connected(project) as client:
        spawned = await client.call("spawn_agent", chatmode="project:reviewer", task=TASK)
        run = spawned["run"]
        # Given a response that claims more than the store holds
        claimed = {"run": run, "assurance": {"level": "executed"}}
        found = await client.call("validate_output", sub_agent_response=claimed)
        failed = await client.call(
            "validate_output", sub_agent_response=run, checks=["grep -q raise src/money.py"]
        )
        unknown = await client.call("validate_output", sub_agent_response="agent-none")
        listed = await client.call("get_available_instructions")
        shown = await client.call("get_available_instructions", name="AGENTS.md")
        absent = await client.call("get_available_instructions", name="../script.yaml")
        nothing = await client.call("validate_output", sub_agent_response={"status": "answered"})
    assert found["decision_recommendation"] == "refine"
    assert found["assurance"]["citations"]["verified"] == 1
    assert "ValueError" in found["identified_issues"][0]["description"]
    assert failed["identified_issues"][0]["severity"] == "critical"
    assert failed["checks"] == [
        {
            "check": "given-1",
            "command": "grep -q raise src/money.py",
            "green": False,
            "end": "exit 1",
        }
    ]
    assert (unknown["is_error"], nothing["is_error"]) == (True, True)
    names = {one["name"]: one["description"] for one in listed["instructions"]}
    assert names["AGENTS.md"] == "How to work here"
    assert "skill:sdd" in names
    assert shown["text"] == "````text\n# How to work here\n\n```\nmake\n```\n````"
    assert absent["is_error"]


async def test_an_agent_waits_in_the_queue_until_another_one_ends(project: Path, tmp_path: Path):
    # Given an agent that does not end, and one place in the session
    slow = worker("task-1", {"text": "late", "delay_seconds": 600}, when={"brief_has": "slow"})
    script = {"parts": [slow, worker("task-1", READS, FOUND), *REST]}
    (tmp_path / "script.yaml").write_text(yaml.safe_dump(script), encoding="utf-8")
    one = {"MIMIR_AGENTS__SESSION_CONCURRENT": "1", "MIMIR_MCP__WAIT_SECONDS": "0"}
    agent = "project:reviewer"

    # When two others are spawned and it is ended
    async with connected(project, **one) as server:
        first = await server.call("spawn_agent", chatmode=agent, task="A slow task.")
        second = await server.call("spawn_agent", chatmode=agent, task=TASK)
        third = await server.call("spawn_agent", chatmode=agent, task="Another slow one, please.")
        state = await server.call("get_agent_status", session_id=third["run"])
        await server.call("terminate_agent", session_id=first["run"])
        answered = await server.wait_for("get_agent_output", run=second["run"])
        ended = await server.call("terminate_agent", session_id="s-test")
        again = await server.call("terminate_agent", session_id="s-test")
        last = await server.call("get_agent_status", session_id=third["run"])

    # Then the second one was started by itself, and the session ends the third
    assert first["status"] == "working"
    assert (second["status"], second["queue_position"]) == ("queued", 1)
    assert (state["status"], state["queue_position"]) == ("queued", 2)
    assert answered["status"] == "answered"
    assert ended["cancelled"] == [third["run"]]
    assert (again["cancelled"], again["is_error"]) == ([], False)
    assert last["status"] == "cancelled"
