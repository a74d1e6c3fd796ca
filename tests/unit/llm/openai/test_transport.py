"""The connections of an endpoint: used again, given up, never believed when they speak unasked."""

import asyncio
import itertools
import socket
from contextlib import suppress

import aiohttp

from mimir.scheduling.cpu_turns import CpuTurn, CpuTurns
from tests.support.model_requests import question
from tests.support.raw_endpoint import (
    FOREVER,
    GOOD,
    answer,
    asking,
    raw_server,
    refused,
    request_of,
    serving,
)
from tests.support.script_server import PlayServer


async def test_connections_are_used_again():
    with PlayServer(FOREVER) as server:
        async with asking(server.url) as model:
            for _ in range(5):
                await model.ask(question())
        assert {seen.connection for seen in server.requests} == {1}


async def test_many_ask_at_once():
    with PlayServer(FOREVER) as server:
        async with asking(server.url) as model:
            answers = await asyncio.gather(*(model.ask(question(text=str(n))) for n in range(40)))
    assert len(answers) == len(server.requests) == 40


async def test_closed_port_is_retried():
    with PlayServer(FOREVER) as server:
        async with asking(server.url) as model:
            await model.ask(question())
            server.refuse()
            error = await refused(model)
            assert error.scope == "call"
            server.accept()
            assert (await model.ask(question())).message.text == "a good answer"


async def test_answer_beyond_the_total_time_limit_is_cancelled():
    with PlayServer("default: [{text: a long answer, fault: stall_middle}]") as server:
        async with asking(server.url, stall_seconds=60, answer_seconds=0.3) as model:
            error = await refused(model)
    assert error.scope == "call"
    assert "llm.answer_seconds" in str(error)


async def test_silent_server_and_endless_handshake_have_different_errors():
    async with raw_server(b"") as url, asking(url, stall_seconds=0.2) as model:
        error = await refused(model)
    assert (error.scope, "llm.stall_seconds" in str(error)) == ("call", True)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"https://127.0.0.1:{mute.getsockname()[1]}/v1"
        async with asking(url, stall_seconds=60, connect_seconds=0.2) as model:
            error = await refused(model)
    assert (error.scope, "llm.connect_seconds" in str(error)) == ("call", True)


async def test_a_connection_that_its_server_closes_after_the_answer_is_not_used_again():
    served = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        served += 1
        await request_of(reader)
        writer.write(answer(GOOD))
        writer.close()

    async with serving(serve) as url, asking(url) as model:
        for _ in range(5):
            assert (await model.ask(question())).message.text == "hi"
    assert served == 5


async def test_unrequested_data_is_not_the_next_answer():
    sent, numbers = asyncio.Event(), itertools.count(1)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await request_of(reader)
                writer.write(answer(GOOD.replace(b"hi", b"answer %d" % next(numbers))))
                await writer.drain()
                await asked.wait()
                writer.write(answer(GOOD.replace(b"hi", b"nobody asked")))
                await writer.drain()
                sent.set()
        writer.close()

    async with serving(serve) as url, asking(url) as model:
        for number in (1, 2, 3):
            asked = asyncio.Event()
            assert (await model.ask(question())).message.text == f"answer {number}"
            sent.clear()
            asked.set()
            await sent.wait()


async def test_request_is_sent_before_the_next_cpu_turn(monkeypatch):
    order, turns = list[str](), CpuTurns()
    mine, other = CpuTurn(turns), CpuTurn(turns)

    async def write_bytes(request, *given) -> None:
        await written(request, *given)
        order.append("the question has left")

    written = aiohttp.ClientRequest.write_bytes
    monkeypatch.setattr(aiohttp.ClientRequest, "write_bytes", write_bytes)

    async def think() -> None:
        await other.acquire()
        order.append("the next one thinks")
        other.yield_turn()

    with PlayServer(FOREVER) as server:
        async with asking(server.url) as model:
            await model.ask(question())  # the connection is there
            order.clear()
            await mine.acquire()
            thinking = asyncio.ensure_future(think())
            await asyncio.sleep(0)
            await mine.away(model.ask(question()))
            await thinking
    mine.yield_turn()
    assert order == ["the question has left", "the next one thinks"]


async def test_a_proxy_gets_the_request_and_an_error_names_it_without_its_login():
    async with raw_server(answer(GOOD)) as url:
        proxy = url.removesuffix("/v1").replace("//", "//user:hidden@")
        async with asking("http://model.internal.example/v1", proxy=proxy) as model:
            assert (await model.ask(question())).message.text == "hi"
    async with asking("http://model.internal.example/v1", proxy=proxy) as model:
        error = await refused(model)
    assert f"through the proxy {url.removesuffix('/v1')}" in str(error)
    assert "hidden" not in str(error)


async def test_stopped_server_is_called_twice():
    async with raw_server() as url:
        pass
    async with asking(url) as model:
        error = await refused(model)
    assert error.most_tries == 2
    assert "Is the server running?" in (error.next_step or "")


async def test_unknown_host_is_called_twice():
    async with asking("http://no-such-host.invalid/v1") as model:
        error = await refused(model)
    assert error.most_tries == 2
    assert "its host is not known" in str(error)
