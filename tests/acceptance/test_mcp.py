"""The server of `mimir mcp`: a real client over standard input and output, with a restart between each two steps."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest
import yaml
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestFormParams, ElicitResult, Tool

from mimir.domain.usage import estimate
from mimir.planning.renderer import render
from tests.support.mcp_client import Caller, connected_client
from tests.support.mcp_tasks import TaskClient, ask_task
from tests.support.projects import make_project
from tests.support.whole_run import REST, calls, plan, step, worker, writes, wrote

REQUEST = "Write the file a.txt, and c.txt for the region."
MADE = plan(step("a"), step("c", tools=("read_file", "write_file", "ask_user")))
ASKS = calls("ask_user", title="Which region?", text="Where?", options=["eu-west", "us-east"])
SCRIPT = {
    "parts": [
        {"role": "pm", "turns": [render(MADE)]},
        wrote("a"),
        worker(
            "c",
            {"calls": [ASKS]},
            {"choose": [{"when": {"last_has": "us-east"}, **writes("c.txt", "c\nus-east\n")}]},
            "Done.",
        ),
        *REST,
    ]
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = make_project(tmp_path / "project", {"README.md": "# A project\n"})
    (tmp_path / "script.yaml").write_text(yaml.safe_dump(SCRIPT), encoding="utf-8")
    return project


async def approve(_: object, asked: ElicitRequestFormParams) -> ElicitResult:
    """Approve in the form of a question, as the user does."""
    assert set(asked.requested_schema["properties"]) == {"answer", "reason"}
    return ElicitResult(action="accept", content={"answer": "approve", "reason": ""})


def connected(
    project: Path, *, forms: bool = False, tasks: bool = False, **variables: str
) -> AbstractAsyncContextManager[Caller]:
    client = partial(
        Client,
        elicitation_callback=approve if forms else None,  # type: ignore[arg-type]
        extensions=[TaskClient()] if tasks else None,
    )
    return connected_client(project, client=client, **variables)


BAD: Sequence[tuple[str, Mapping[str, object], str]] = (
    ("plan", {"request": "  "}, "The request is empty"),
    ("execute", {}, "either a plan or a request"),
    ("execute", {"plan": "../secret.md"}, "There is no plan '../secret.md'"),
    ("execute", {"plan": "/etc/passwd"}, "There is no plan '/etc/passwd'"),
    ("execute", {"plan": "README.md", "apply": "now"}, "must be one of"),
    ("execute", {"plan": "README.md"}, "README.md:1:1: error"),
    ("status", {"run": "run-none"}, "There is no"),
    ("report", {"offset": -1}, "at least 0"),
    ("answer", {"answers": {"q-none": "x"}}, "There is no"),
    ("memory_search", {"text": "x", "limit": 51}, "at most 50"),
)
LOOSE = (
    "validate_output",
    {"sub_agent_response": "agent-1", "memory": {"accept": [], "supersedes": {"m-1": "m-0"}}},
    "supersedes names 'm-1'",
)
"""A member without the one that it belongs to."""
WRONG = {
    "string": 5,
    "integer": "five",
    "number": "five",
    "boolean": "yes",
    "array": "one",
    "object": "one",
}
RIGHT: Mapping[str, object] = {
    "string": "x",
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "object": {},
}
"""Type → a value of another one, and a value of it."""


def list_ill_typed(tools: Sequence[Tool]) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield tool, words of the refusal, and arguments with one fault, for each argument of each tool."""
    for tool in tools:
        # A type that is missing permits several.
        types = {name: one.get("type", "") for name, one in tool.input_schema["properties"].items()}
        required: list[str] = tool.input_schema.get("required", [])
        needed = {name: RIGHT.get(types[name], "x") for name in required}
        yield tool.name, "may not hold 'aply'", {**needed, "aply": "auto"}
        for name, kind in types.items():
            words = f"{name!r} in the arguments of" if kind else ""
            yield tool.name, words, {**needed, name: WRONG.get(kind, 5)}
            yield tool.name, words, {**needed, name: None}
        for name in needed:
            kept = {one: value for one, value in needed.items() if one != name}
            yield tool.name, f"must hold {name}", kept


async def test_mcp_tool_list_is_short_and_bad_input_has_a_clear_error(project: Path):
    async with connected_client(project, ("--tools", "core")) as caller:
        first, second = [await caller.list_as_text() for _ in range(2)]
        answers = [(case, await caller.call(case[0], **case[1])) for case in BAD]
    every = ("--tools", "core,delegation,todo,aliases")
    async with connected_client(project, every) as caller:
        tools = (await caller.client.list_tools()).tools
        for tool, words, given in list_ill_typed(tools):
            answers.append(((tool, given, words), await caller.call(tool, **given)))
        tool, given, words = LOOSE
        answers.append(((tool, given, words), await caller.call(tool, **given)))

    assert len(tools) > 8
    assert not (project / "chains").exists()
    assert first == second
    assert estimate(first) <= 2_000
    for (tool, given, words), answer in answers:
        text = json.dumps(answer)
        assert answer["is_error"], (tool, given, answer)
        assert words in text, (tool, given, answer)
        assert str(project) not in text
        assert "pydantic" not in text
        assert "Traceback" not in text


async def test_a_task_survives_restarts_between_all_steps(project: Path):
    async with connected(project, tasks=True, forms=True) as first:
        task = (await first.call("execute", request=REQUEST))["taskId"]
    async with connected(project, tasks=True, forms=True) as second:
        while (asked := await ask_task(second.client, "get", task))["status"] == "working":
            assert asked["pollIntervalMs"] == 1000
        with pytest.raises(MCPError, match="There is no task"):
            await ask_task(second.client, "get", "run-none")
    ((id, form),) = asked["inputRequests"].items()
    assert asked["status"] == "input_required"
    assert "Which region?" in form["params"]["message"]
    async with connected(project, tasks=True, forms=True) as third:
        given = {id: {"action": "accept", "content": {"answer": "us-east"}}}
        await ask_task(third.client, "update", task, inputResponses=given)
    async with connected(project, tasks=True, forms=True) as fourth:
        while (ended := await ask_task(fourth.client, "get", task))["status"] == "working":
            assert "result" not in ended
    result = ended["result"]["structuredContent"]
    assert (ended["status"], result["status"]) == ("completed", "completed")
    assert result["tasks"] == {"completed": 2}


OPTIONS = ["eu-west", "us-east"]
ASKS_WITH_DEFAULT = calls(
    "ask_user", title="Which region?", text="?", options=OPTIONS, default="eu-west"
)
DECLINES = {
    "parts": [
        worker(
            "c",
            {"calls": [ASKS_WITH_DEFAULT]},
            {"choose": [{"when": {"last_has": "declined"}, **writes("c.txt", "c\n")}]},
            "Done.",
        ),
        *REST,
    ]
}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_closed_form_leaves_its_question_open_and_a_declined_one_has_the_default(
    project: Path, mode: str
):
    # Given a run that waits for an answer
    (project.parent / "script.yaml").write_text(yaml.safe_dump(DECLINES), encoding="utf-8")
    made = plan(step("c", tools=("read_file", "write_file", "ask_user")))
    (project / "plan.md").write_text(render(made), encoding="utf-8")
    actions = ["cancel", "decline"]

    async def respond(_: object, asked: ElicitRequestFormParams) -> ElicitResult:
        assert "Which region?" in asked.message
        return ElicitResult(action=actions.pop(0))  # type: ignore[arg-type]

    client = partial(Client, elicitation_callback=respond, mode=mode)  # type: ignore[arg-type]
    async with connected_client(project, client=client) as caller:
        paused = await caller.call("execute", plan="plan.md")
        (question,) = paused["questions"]

        # When the user closes the form, and declines the next one
        closed = await caller.call("answer")
        declined = await caller.call("answer")
        ended = await caller.call("status", run=paused["run"], wait_seconds=50)
    assert closed["left_open"] == [question["id"]]
    assert (declined["continued"], declined["is_error"]) == ([paused["run"]], False)

    # Then the default holds, and the question is rejected
    assert ended["status"] == "completed", ended
    (found,) = ended["questions"]
    assert (found["state"], found["answer"]) == ("rejected", {"answer": "eu-west"})
    assert found["transport"] == "form"


async def test_a_call_with_a_progress_token_reports_until_its_work_ends(project: Path):
    # Given a model that answers when the client has heard of progress
    heard = asyncio.Event()
    messages: list[str] = []

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await heard.wait()
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        messages.append(message or "")
        heard.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    endpoint = {
        "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
        "MIMIR_MODEL": "any",
        "MIMIR_MCP__WAIT_SECONDS": "0",
    }
    async with server, connected_client(project, **endpoint) as caller:
        # Then it waits longer than the call of another client
        ended = await caller.client.call_tool(
            "plan", {"request": REQUEST}, progress_callback=report
        )
    assert ended.structured_content["status"] == "paused"
    assert messages[0].endswith("is working")


async def test_no_argument_approves_but_the_form_of_the_user_does(project: Path):
    # Given a request whose summary the user approves before it is planned
    parts = [
        {"role": "interviewer", "turns": ["## Goal\nTwo files."]},
        {"role": "pm", "turns": [render(MADE)]},
        *REST,
    ]
    script = project.parent / "script.yaml"
    script.write_text(yaml.safe_dump({"parts": parts}), encoding="utf-8")
    client = partial(Client, elicitation_callback=approve)  # type: ignore[arg-type]
    async with connected_client(project, client=client, MIMIR_MCP__WAIT_SECONDS="50") as caller:
        paused = await caller.call("plan", request=REQUEST, pattern="ask")
        (question,) = paused["questions"]

        # When the model tries to approve, nothing is closed
        tried = await caller.call("answer", answers={question["id"]: "yes"})
        hidden = await caller.call("answer", answers={question["id"]: {"decision": "approve"}})

        # Then the user decides in the form
        approved = await caller.call("answer")
        made = await caller.call("status", run=paused["run"], wait_seconds=50)
    assert (paused["status"], paused["is_error"], question["kind"]) == ("paused", False, "approval")
    assert [one["is_error"] for one in (tried, hidden)] == [True, True]
    assert "no argument decides it" in tried["refused"][0]["problem"]
    assert approved["continued"] == [paused["run"]], approved
    assert made["status"] == "completed", made
