"""The real client against a real server: requests, learned capabilities, limits."""

import asyncio
import tracemalloc

import pytest

from mimir.errors import ConfigurationError
from mimir.llm.config import EndpointConfig
from mimir.llm.langchain import open_model
from mimir.llm.openai.capabilities import CapabilityChange
from mimir.llm.openai.endpoint import OpenAIEndpoint
from tests.support.clock import FrozenClock
from tests.support.model_requests import READ_FILE, question
from tests.support.raw_endpoint import FOREVER, GOOD, KEY, answer, asking, raw_server, refused
from tests.support.script_server import PlayServer

# Requests.


async def test_only_our_own_headers_are_sent(monkeypatch: pytest.MonkeyPatch):
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "LANGSMITH_API_KEY"):
        monkeypatch.setenv(name, "from-the-environment")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-custom: from-the-environment")
    with PlayServer(FOREVER) as server:
        async with asking(server.url, headers={"X-Gate": "gate-value"}) as model:
            await model.ask(question())
        headers = server.requests[0].headers
    assert set(headers) == {
        "host",
        "content-length",
        "content-type",
        "accept",
        "accept-encoding",
        "user-agent",
        "authorization",
        "x-gate",
    }
    assert headers["authorization"] == f"Bearer {KEY}"
    assert "from-the-environment" not in str(headers)


async def test_without_a_key_none_is_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-this-endpoint")
    with PlayServer(FOREVER) as server:
        async with asking(server.url, api_key="") as model:
            await model.ask(question())
    assert "authorization" not in server.requests[0].headers


async def test_addresses_and_proxies_of_the_environment_are_not_followed(
    monkeypatch: pytest.MonkeyPatch,
):
    for name in (
        "OPENAI_BASE_URL",
        "OPENAI_API_BASE",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "LANGSMITH_GATEWAY",
    ):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    with PlayServer(FOREVER) as server:
        async with asking(server.url) as model:
            assert (await model.ask(question())).message.text == "a good answer"


@pytest.mark.parametrize(("on", "told"), [(True, "run-1/ta%C3%A4sk/1/worker"), (False, None)])
async def test_lane_header_is_sent_only_if_it_is_set(on: bool, told: str | None):
    with PlayServer(FOREVER) as server:
        config = EndpointConfig(base_url=server.url, model="m", lane_header=on)
        endpoint = OpenAIEndpoint(config, FrozenClock())
        await endpoint.for_lane("run-1/taäsk/1/worker").ask(question())
        await endpoint.aclose()
        assert server.requests[0].headers.get("x-mimir-lane") == told
        if on:
            assert server.requests[0].caller.name.task == "taäsk"


# Learned capabilities.


@pytest.mark.parametrize(
    ("parameter", "change"),
    [
        ("temperature", "dropped"),
        ("stream_options", "dropped"),
        ("stream", "dropped"),
        ("tool_choice", "dropped"),
        ("response_format", "dropped"),
        ("max_tokens", "renamed to max_completion_tokens"),
    ],
)
async def test_an_unknown_parameter_is_learned_once_per_model(parameter: str, change: str):
    play = f"default: [{{text: a good answer, fault: {{name: unsupported_parameter, parameter: {parameter}}}, repeat: forever}}]"
    learned: list[CapabilityChange] = []
    asked = question(
        tools=(READ_FILE,), tool_choice="none", schema={"type": "object"}, schema_name="x"
    )
    with PlayServer(play) as server:
        async with asking(server.url, learned=learned) as model:
            for _ in range(3):
                assert (await model.ask(asked)).message.text == "a good answer"
        refusals = [seen for seen in server.requests if seen.fault]
        assert (len(server.requests), len(refusals)) == (4, 1)
        assert all(parameter not in seen.body for seen in server.requests[1:])
    assert learned == [
        CapabilityChange(endpoint=server.url, model="m", parameter=parameter, change=change)
    ]


async def test_each_model_of_an_endpoint_learns_by_itself():
    play = "default: [{text: x, fault: {name: unsupported_parameter, parameter: temperature}, repeat: forever}]"
    learned: list[CapabilityChange] = []
    with PlayServer(play) as server:
        async with asking(server.url, learned=learned) as model:
            for name in ("m", "n", "m", "n"):
                await model.ask(question(model=name))
    assert [a.model for a in learned] == ["m", "n"]


async def test_calls_that_learn_together_learn_once():
    play = "default: [{text: x, fault: {name: unsupported_parameter, parameter: temperature}, repeat: forever}]"
    learned: list[CapabilityChange] = []
    with PlayServer(play) as server:
        async with asking(server.url, learned=learned) as model:
            await asyncio.gather(*(model.ask(question()) for _ in range(8)))
    assert len(learned) == 1


async def test_extra_parameter_of_the_user_is_not_dropped():
    play = "default: [{fault: {name: unsupported_parameter, parameter: top_k}}]"
    with PlayServer(play) as server:
        async with asking(server.url, extra_body={"top_k": 1}) as model:
            error = await refused(model)
    assert (error.scope, len(server.requests)) == ("attempt", 1)
    assert "top_k" in str(error)


async def test_extra_number_of_the_user_may_have_any_size():
    with PlayServer(FOREVER) as server:
        async with asking(server.url, extra_body={"seed": 2**70}) as model:
            await model.ask(question())
    assert server.requests[0].body["seed"] == 2**70


# Error messages.


async def test_a_key_that_the_endpoint_echoes_is_not_shown():
    with PlayServer(FOREVER, key="sk-another") as server:
        async with asking(server.url) as model:
            error = await refused(model)
    assert KEY not in f"{error!r} {error} {error.next_step}"
    assert "[secret]" in str(error)
    assert "llm.api_key" in (error.next_step or "")
    assert server.url in str(error)


@pytest.mark.parametrize(
    "fault",
    [
        "unauthorized",
        "payment_required",
        "forbidden",
        "unknown_model",
        "wrong_address",
        "server_error",
    ],
)
async def test_http_client_never_retries(fault: str):
    with PlayServer(f"default: [{{fault: {fault}}}]") as server:
        async with asking(server.url) as model:
            await refused(model)
    assert len(server.requests) == 1


async def test_a_fatal_error_whose_text_never_ends_is_still_fatal():
    head = b"HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n"
    async with raw_server(head + b'{"error": ') as url, asking(url, stall_seconds=60) as model:
        error = await refused(model)
    assert (error.scope, error.status) == ("run", 401)


async def test_local_server_without_a_named_model_gets_the_default_model():
    with PlayServer(FOREVER) as server:
        async with asking(server.url, model="") as model:
            await model.ask(question())
    assert [seen.body["model"] for seen in server.requests] == ["default"]


def test_endpoint_without_a_model_has_no_default_model():
    assert EndpointConfig().default_model == ""
    assert EndpointConfig(model="small").default_model == "small"


# Accepted answers.


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "application/vnd.x+json", "text/html", ""]
)
async def test_a_json_answer_of_any_content_type_is_read(kind: str):
    async with raw_server(answer(GOOD, kind)) as url, asking(url) as model:
        assert (await model.ask(question())).message.text == "hi"


@pytest.mark.parametrize(
    "sent",
    [
        answer(GOOD, "application/json", "Content-Encoding: gzip"),
        answer(b""),
        answer(b"null"),
        answer(b"[]"),
        answer(b"{}"),
        answer(b'{"choices": "none"}'),
        answer(b'{"choices": [{"message": 7, "finish_reason": "stop", "index": 3}]}'),
        answer(b"[" * 90_000),
        answer(GOOD)[:-10],
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 14\r\n\r\ndata: [DONE]\n\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n",
        b"not http at all\r\n\r\n",
    ],
)
async def test_invalid_answer_is_refused(sent: bytes):
    async with raw_server(sent) as url, asking(url) as model:
        assert (await refused(model)).scope == "call"


@pytest.mark.parametrize("streams", [True, False])
async def test_ten_megabytes_are_refused(streams: bool):
    with PlayServer("default: [{text: x, fault: huge}]", streams=streams) as server:
        async with asking(server.url) as model:
            error = await refused(model)
    assert (error.scope, error.most_tries) == ("call", 2)
    assert "llm.max_answer_bytes" in str(error)
    assert "Raise llm.max_answer_bytes" in (error.next_step or "")


async def test_ten_megabytes_cost_little_memory():
    with PlayServer("default: [{text: x, fault: huge}]") as server:
        async with asking(server.url) as model:
            tracemalloc.start()
            await refused(model)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    assert peak < 20_000_000


async def test_cancelled_call_ends_at_once():
    asked = asyncio.Event()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 999\r\n\r\n"
    async with raw_server(head, asked=asked) as url, asking(url, stall_seconds=60) as model:
        task = asyncio.create_task(model.ask(question()))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


# Opening.


def test_openais_own_endpoint_needs_a_key():
    with pytest.raises(ConfigurationError, match=r"llm\.api_key") as caught:
        OpenAIEndpoint(EndpointConfig(model="m"), FrozenClock())
    assert "mimir demo" in (caught.value.next_step or "")


def test_a_provider_whose_package_is_missing_names_it():
    with pytest.raises(ConfigurationError, match="langchain-anthropic") as caught:
        open_model(EndpointConfig(model="anthropic:claude-x", api_key=KEY), clock=FrozenClock())
    assert "pip install langchain-anthropic" in (caught.value.next_step or "")
    assert KEY not in str(caught.value)


def test_another_provider_never_gets_this_endpoints_key(monkeypatch: pytest.MonkeyPatch):
    given: dict[str, object] = {}
    monkeypatch.setattr(
        "langchain.chat_models.init_chat_model",
        lambda name, **options: given.update(options, name=name),
    )
    config = EndpointConfig(
        base_url="http://x/v1", model="groq:llama-x", api_key=KEY, headers={"x-gate": KEY}
    )
    open_model(config, clock=FrozenClock())
    assert given == {
        "name": "llama-x",
        "model_provider": "groq",
        "max_retries": 0,
        "max_tokens": 4000,
        "temperature": 0.0,
    }


def test_provider_error_names_the_model_without_the_key():
    config = EndpointConfig(model="azure_openai:gpt-x", api_key=KEY)
    with pytest.raises(ConfigurationError, match=r"llm\.model 'azure_openai:gpt-x'") as caught:
        open_model(config, clock=FrozenClock())
    assert KEY not in str(caught.value)
    assert caught.value.__context__ is None
