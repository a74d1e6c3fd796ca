"""The contract of every `ChatModel`: a model script, a server that streams, one that does not, LangChain."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from mimir.domain.message import Message
from mimir.errors import ModelError
from mimir.llm.config import EndpointConfig
from mimir.llm.langchain import LangChainEndpoint
from mimir.llm.openai.endpoint import OpenAIEndpoint
from mimir.llm.protocol import ChatModel, Endpoint
from mimir.llm.scripted.faults import FAULTS
from mimir.llm.scripted.loader import parse
from mimir.llm.scripted.scripted_model import ScriptedEndpoint
from tests.support.clock import FrozenClock
from tests.support.model_requests import READ_FILE, assistant_message, question, result
from tests.support.script_server import PlayServer

if TYPE_CHECKING:
    from openai import DefaultAsyncHttpxClient

LANE = "run-1/task-1/1/worker"
Open = Callable[[str], ChatModel]


def config(server: PlayServer) -> EndpointConfig:
    return EndpointConfig(
        base_url=server.url,
        api_key="sk-contract-0123",
        model="m",
        lane_header=True,
        stall_seconds=2.0,
    )


def langchain(server: PlayServer, client: "DefaultAsyncHttpxClient") -> Endpoint:
    from langchain_openai import ChatOpenAI  # seconds of each worker, for the tests of one file

    def make(name: str, max_tokens: int, temperature: float | None, /) -> ChatOpenAI:
        return ChatOpenAI(
            model=name,
            base_url=server.url,
            api_key=SecretStr("sk-contract-0123"),
            max_retries=0,
            max_completion_tokens=max_tokens,
            temperature=temperature,
            stream_usage=True,
            default_headers={"x-mimir-lane": LANE},
            http_async_client=client,
        )

    return LangChainEndpoint(make, "m", config(server), FrozenClock())


def own_client() -> "DefaultAsyncHttpxClient":
    """LangChain keeps its own by address: another test's server may have had this port, on a loop that is closed."""
    from openai import DefaultAsyncHttpxClient

    return DefaultAsyncHttpxClient()


@pytest.fixture(params=["scripted", "streamed", "whole", "langchain"])
async def open_play(request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    opened: list[Endpoint] = []
    async with AsyncExitStack() as stack:
        client = None
        if request.param == "langchain":
            client = await stack.enter_async_context(own_client())

        def over(play: str) -> ChatModel:
            if request.param == "scripted":
                endpoint: Endpoint = ScriptedEndpoint(parse(play))
            else:
                server = stack.enter_context(PlayServer(play, streams=request.param != "whole"))
                if client is not None:
                    endpoint = langchain(server, client)
                else:
                    endpoint = OpenAIEndpoint(config(server), FrozenClock())
            opened.append(endpoint)
            return endpoint.for_lane(LANE)

        yield over
        for endpoint in opened:
            await endpoint.aclose()


async def test_a_conversation_with_a_tool_call(open_play: Open):
    model = open_play(
        "parts: [{role: worker, task: task-1, attempt: 1, turns: ["
        "{text: I look., calls: [{tool: read_file, id: c1, arguments: {path: ä.py}}, {tool: read_file, id: c2, arguments: {path: b}}]},"
        "Zeile 1 🙂]}]"
    )
    first = await model.ask(question(tools=(READ_FILE,)))
    assert first.message.text == "I look."
    assert first.finish == "tool_calls"
    assert [(c.id, c.name, c.arguments) for c in first.message.calls] == [
        ("c1", "read_file", '{"path": "ä.py"}'),
        ("c2", "read_file", '{"path": "b"}'),
    ]
    results = [result(call, "text") for call in first.message.calls]
    second = await model.ask(question(first.message, *results, tools=(READ_FILE,)))
    assert (second.message, second.finish) == (assistant_message("Zeile 1 🙂"), "stop")


async def test_answer_has_its_token_usage(open_play: Open):
    answer = await open_play("default: [{text: x, usage: {input: 11, output: 5}}]").ask(question())
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (11, 5)


async def test_a_missing_usage_is_unknown_not_zero(open_play: Open):
    answer = await open_play("default: [{text: some text, fault: usage_missing}]").ask(question())
    assert (answer.message.text, answer.usage) == ("some text", None)


async def test_an_empty_answer_is_an_answer(open_play: Open):
    answer = await open_play("default: [{fault: empty}]").ask(question())
    assert (answer.message, answer.finish) == (assistant_message(""), "stop")


async def test_answer_cut_by_length_has_finish_length(open_play: Open):
    answer = await open_play("default: [{text: one two three four, fault: finish_length}]").ask(
        question()
    )
    assert (answer.message.text, answer.finish) == ("one two t", "length")


async def test_nothing_of_a_filtered_answer_is_given(open_play: Open):
    answer = await open_play("default: [{text: PASS PASS PASS, fault: content_filter}]").ask(
        question()
    )
    assert (answer.message, answer.finish) == (assistant_message(""), "content_filter")


async def test_unusual_characters_of_an_answer_are_encodable(open_play: Open):
    answer = await open_play("default: [{fault: odd_characters}]").ask(question())
    assert answer.message.text == "odd: \ufffd lone, \ufffd nul, \ufffd replacement"


async def test_a_hundred_calls_arrive_in_order(open_play: Open):
    answer = await open_play("default: [{fault: hundred_calls}]").ask(question(tools=(READ_FILE,)))
    assert [c.arguments for c in answer.message.calls] == [
        f'{{"glob": "*{n}"}}' for n in range(100)
    ]


@pytest.mark.parametrize("fault", ["unknown_tool", "wrong_arguments", "invalid_arguments"])
async def test_wrong_calls_arrive_as_the_model_wrote_them(open_play: Open, fault: str):
    answer = await open_play(f"default: [{{fault: {fault}}}]").ask(question(tools=(READ_FILE,)))
    (call,) = answer.message.calls
    wanted = {
        "unknown_tool": ("teleport", '{"to": "/"}'),
        "wrong_arguments": ("read_file", '{"path": 7, "pace": "fast"}'),
        "invalid_arguments": ("read_file", '{"path": "a'),
    }
    assert (call.name, call.arguments) == wanted[fault]


async def test_unreadable_calls_can_be_sent_again(open_play: Open):
    model = open_play("default: [{fault: invalid_arguments}, done]")
    bad = (await model.ask(question(tools=(READ_FILE,)))).message
    again = question(bad, result(bad.calls[0], "no JSON"), tools=(READ_FILE,))
    assert (await model.ask(again)).message.text == "done"


async def test_closing_call_lists_the_tools(open_play: Open):
    model = open_play(
        "parts: [{turns: [{calls: [{tool: read_file}], repeat: forever}], closing: {text: closed}}]"
    )
    first = (await model.ask(question(tools=(READ_FILE,)))).message
    asked = Message(role="user", text="Close.", closing=True)
    request = question(
        first, result(first.calls[0], "r"), asked, tools=(READ_FILE,), tool_choice="none"
    )
    if isinstance(model, LangChainEndpoint):
        return  # other providers get no notice; the loop ignores calls in a closing answer
    assert (await model.ask(request)).message.text == "closed"


SCOPES = {
    name: "attempt"
    if name in ("context_length", "filtered", "bad_request")
    else "run"
    if fault.status in (302, 401, 402, 403, 404) or name == "no_credit"
    else "call"
    for name, fault in FAULTS.items()
    if fault.kind != "answer" and name != "unsupported_parameter"
}
SEEN_THROUGH_LANGCHAIN = {
    "bad_gateway",
    "context_length",
    "huge",
    "rate_limited",
    "refused",
    "server_error",
    "stall_middle",
    "unauthorized",
    "unknown_model",
}
"""Providers' own clients take a stream that ends early for an answer, read any content type, and follow redirects."""


@pytest.mark.parametrize(("fault", "scope"), SCOPES.items())
async def test_model_error_has_its_scope(
    open_play: Open, fault: str, scope: str, request: pytest.FixtureRequest
):
    if "langchain" in request.node.callspec.id and fault not in SEEN_THROUGH_LANGCHAIN:
        return
    with pytest.raises(ModelError) as caught:
        await open_play(f"default: [{{text: half of an answer and more, fault: {fault}}}]").ask(
            question()
        )
    assert caught.value.scope == scope
    assert "sk-contract-0123" not in f"{caught.value!r} {caught.value.next_step}"
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        ("{name: rate_limited, seconds: 7}", 7),
        ("{name: rate_limited_date, seconds: 7}", 7),
        ("{name: rate_limited_absurd}", 120),
        ("{name: rate_limited_negative}", 0),
        ("{name: rate_limited_garbled}", None),
        ("{name: rate_limited_bare}", None),
    ],
)
async def test_model_error_has_the_requested_wait(
    open_play: Open, fault: str, seconds: float | None
):
    with pytest.raises(ModelError) as caught:
        await open_play(f"default: [{{fault: {fault}}}]").ask(question())
    assert caught.value.retry_after_seconds == (
        seconds if seconds is None else pytest.approx(seconds, abs=0.7)
    )


async def test_missing_scripted_turn_stops_the_run(open_play: Open):
    with pytest.raises(ModelError, match="has no turn") as caught:
        await open_play("parts: [{role: qc, turns: [x]}]").ask(question())
    assert caught.value.scope == "run"
