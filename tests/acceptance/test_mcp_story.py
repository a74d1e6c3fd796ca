"""The whole story of a client over `mimir mcp`: each step has a server of its own, so all state is in the store."""

from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest
import yaml
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestFormParams, ElicitResult

from mimir.planning.renderer import render
from tests.support.agent_corpus import answer, claude
from tests.support.mcp_client import Caller, connected_client
from tests.support.projects import make_project
from tests.support.whole_run import REST, calls, plan, step, worker, writes, wrote

OWNER = calls("ask_user", title="Which owner?", text="Whose?", options=["ana", "ben"])
REGION = calls("ask_user", title="Which region?", text="Where?", options=["eu-west", "us-east"])
TOOLS = ("read_file", "write_file", "ask_user")
MADE = plan(step("a"), step("c", tools=TOOLS))
READS = {"calls": [calls("read_file", path="src/money.py")]}
PROPOSED = {
    "operation": "add_observations",
    "data": {"entity": "total", "text": "total divides by the number of items"},
    "sources": ["call:1"],
}
SAID = answer("It divides.", memory_operations=[PROPOSED, {**PROPOSED, "sources": []}])
AGENT = {
    "chatmode": "project:reviewer",
    "task": "Is the function total in src/money.py right for every list of numbers?",
}


PARTS = [
    {"role": "pm", "turns": [render(MADE)]},
    wrote("a"),
    worker(
        "c",
        {"calls": [OWNER]},
        {"choose": [{"when": {"last_has": "ben"}, "calls": [REGION]}]},
        {"choose": [{"when": {"last_has": "us-east"}, **writes("c.txt", "c\nus-east\n")}]},
        "Done.",
    ),
    worker("task-1", READS, answer("I know."), when={"brief_has": "Twice is enough"}),
    worker("task-1", READS, SAID),
    *REST,
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "script.yaml").write_text(yaml.safe_dump({"parts": PARTS}), encoding="utf-8")
    files = {
        ".claude/agents/reviewer.md": claude("reviewer", "tools: Read"),
        "src/money.py": "def total(items):\n    return sum(items) / len(items)\n",
    }
    return make_project(tmp_path / "project", files)


async def choose(_: object, asked: ElicitRequestFormParams) -> ElicitResult:
    """Fill in the form of a question, as the user does."""
    assert "Which region?" in asked.message
    return ElicitResult(action="accept", content={"answer": "us-east"})


def connected(project: Path, **variables: str) -> AbstractAsyncContextManager[Caller]:
    client = partial(Client, elicitation_callback=choose)  # type: ignore[arg-type]
    return connected_client(project, client=client, MIMIR_SESSION="s-test", **variables)


@pytest.mark.timeout(400)  # seven commands of mimir, one after another
async def test_mcp_client_completes_a_run_across_restarts(project: Path):
    path = await plan_request(project)
    run, owner = await execute_until_question(project, path)
    await answer_questions(project, run, owner)
    await read_the_proof(project, run)
    agent = await spawn(project)
    await decide_memories(project, agent)


async def plan_request(project: Path) -> str:
    """Return the path of the plan that a server makes."""
    async with connected(project) as server:
        planned = await server.call("plan", request="Write the files a.txt and c.txt.")
    assert planned["status"] == "completed", planned
    assert [one["id"] for one in planned["tasks"]] == ["a", "c"]
    return planned["path"]


async def execute_until_question(project: Path, path: str) -> tuple[str, str]:
    """Return the run and its open question; the server that starts it has no time to wait."""
    async with connected(project, MIMIR_MCP__WAIT_SECONDS="0") as server:
        working = await server.call("execute", plan=path, max_calls=40)
    assert (working["status"], working["is_error"]) == ("working", False)
    run = working["run"]
    async with connected(project) as server:
        paused = await server.wait_for("status", run=run)
        ledger = await server.read("mimir://ledger")
    assert (paused["status"], paused["reason"], paused["max_calls"]) == ("paused", "input", 40)
    (question,) = paused["questions"]
    assert question["id"] in ledger
    return run, question["id"]


async def answer_questions(project: Path, run: str, owner: str) -> None:
    """Answer the first question by an argument, and the next one in the form of the client."""
    async with connected(project) as server:
        by_argument = await server.call("answer", answers={owner: "ben"})
    async with connected(project) as server:
        paused = await server.wait_for("status", run=run)
    assert by_argument["continued"] == [run]
    assert (paused["status"], paused["reason"]) == ("paused", "input")
    async with connected(project) as server:
        by_form = await server.call("answer")
        again = await server.call("answer", answers={owner: "ana"})
    assert by_form["continued"] == [run]
    assert by_form["answered"][0]["answer"] == "us-east"
    assert again["is_error"]
    assert "answered at" in again["refused"][0]["problem"]


async def read_the_proof(project: Path, run: str) -> None:
    """Wait for the end of the run, and read its result."""
    async with connected(project) as server:
        ended = await server.wait_for("status", run=run)
        report = await server.call("report", run=run, section="Outcome")
        texts = {name: await server.read(f"mimir://runs/{run}/{name}") for name in ("plan", "diff")}
        prompt = await server.client.get_prompt("delegate", {"task": "Write {it}"})
        with pytest.raises(MCPError, match="There is no resource"):
            await server.read("mimir://runs/none/secret")
    assert ended["status"] == "completed", ended
    assert "us-east" in report["text"]
    assert "Write c.txt" in texts["plan"]
    assert "+us-east" in texts["diff"]
    assert "Write {it}" in prompt.messages[0].content.text  # type: ignore[union-attr]
    assert not (project / "c.txt").exists(), "nothing is applied unless it is asked for"


async def spawn(project: Path) -> str:
    """Return the run of an agent."""
    async with connected(project, MIMIR_MCP__WAIT_SECONDS="0") as server:
        return (await server.call("spawn_agent", **AGENT))["run"]


async def decide_memories(project: Path, run: str) -> None:
    """Decide about the memories that an agent proposes; the next one with its task reads that."""
    # Given two proposals, which no search finds before they are accepted
    async with connected(project) as server:
        output = await server.wait_for("get_agent_output", run=run)
        one, other = (entry["id"] for entry in output["memory_operations"])
        waiting = await server.call("inbox")
        note = await server.call("memory_add", text="Prefer tabs.")
        before = await server.call("memory_search", text="items divides")

    # When the client decides about them, and about a note that is the user's to decide
    reason = {"id": other, "reason": "Twice is enough"}
    decisions = {"accept": [one, note["id"]], "reject": [reason]}
    async with connected(project) as server:
        found = await server.call("validate_output", sub_agent_response=run, memory=decisions)

    # Then the next agent with this task is given the decisions
    async with connected(project) as server:
        after = await server.call("memory_search", text="items divides")
        output = await server.call("get_agent_output", session_id=run)
        again = await server.call("spawn_agent", **AGENT, force=True)
        again = await server.wait_for("get_agent_output", run=again["run"])
    assert {entry["id"] for entry in waiting["proposals"]} == {one, other}
    states = {entry["id"]: entry.get("state") for entry in found["memory"]}
    assert states == {one: "accepted", other: "rejected", note["id"]: None}
    assert "the user decides" in found["memory"][-1]["problem"]
    assert (before["memories"], [hit["id"] for hit in after["memories"]]) == ([], [one])
    feedback = [entry["feedback"] for entry in output["memory_operations"]]
    assert feedback == ["accepted", "rejected: Twice is enough"]
    assert again["deliverables"]["analysis"] == "I know."
