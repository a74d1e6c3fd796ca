"""Forms in which servers send one answer: each is read as the same answer, or refused as broken."""

import json
from collections.abc import Callable, Iterator

import pytest

from mimir.domain.message import Answer, Message, ToolCall
from mimir.llm.openai.capabilities import CapabilityChange
from mimir.llm.openai.payload import messages
from tests.support.model_requests import question
from tests.support.raw_endpoint import answer, asking, raw_server, refused

CALLS = (
    ToolCall(id="c1", name="read_file", arguments='{"path": "a{b}\\\\ \\"c\\""}'),
    ToolCall(id="c2", name="read_file", arguments='{"path": "d", "deep": {"e": []}}'),
    ToolCall(id="c3", name="run", arguments='{"command": "true"}'),
)
Row = dict[str, object]


def chunk(delta: Row, finish: str | None = None) -> Row:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def thirds(text: str) -> list[str]:
    size = len(text) // 3
    return [text[:size], text[size : 2 * size], text[2 * size :]]


def f(part: object, call: ToolCall, head: bool = True) -> Row:
    return {"function": {**({"name": call.name} if head else {}), "arguments": part}}


# (number of the call, place of the fragment, call, part of its arguments) -> fragment
FORMS: dict[str, Callable[[int, int, ToolCall, str], Row]] = {
    "no index, id repeated": lambda n, at, c, p: {"id": c.id, **f(p, c, at == 0)},
    "no index, id and name repeated": lambda n, at, c, p: {"id": c.id, **f(p, c)},
    "new id each": lambda n, at, c, p: {"index": n, "id": f"{c.id}-{at}", **f(p, c, at == 0)},
    "new id and the name each": lambda n, at, c, p: {"index": n, "id": f"{c.id}-{at}", **f(p, c)},
    "index counts the fragments": lambda n, at, c, p: {
        "index": at,
        "id": "" if at else c.id,
        **f(p, c, at == 0),
    },
    "heads at index 0": lambda n, at, c, p: {
        "index": n if at else 0,
        "id": None if at else c.id,
        **f(p, c, at == 0),
    },
    "index as text": lambda n, at, c, p: {"index": str(n), **f(p, c, at == 0)},
    "one id for all": lambda n, at, c, p: {
        "index": n,
        "id": "call_0" if at == 0 else None,
        **f(p, c, at == 0),
    },
    "other id in the tail, no index": lambda n, at, c, p: {
        "id": "other" if at else c.id,
        **f(p, c, at == 0),
    },
    "nothing but the name": lambda n, at, c, p: f(p, c),
    "flat": lambda n, at, c, p: {
        "index": n,
        "id": c.id,
        "name": c.name if at == 0 else None,
        "arguments": p,
    },
    "an empty object first": lambda n, at, c, p: {
        "index": n,
        **f("{}" + p if at == 0 else p, c, at == 0),
    },
    "arguments twice": lambda n, at, c, p: {"index": n, **f(c.arguments, c, at == 0)},
    "encoded twice": lambda n, at, c, p: {
        "index": n,
        **f("" if at else json.dumps(c.arguments), c, at == 0),
    },
    "whole objects": lambda n, at, c, p: {
        "id": c.id,
        **f(json.loads(c.arguments) if at == 0 else {}, c, at == 0),
    },
}


def rows_of(form: str) -> Iterator[Row]:
    for number, call in enumerate(CALLS):
        for place, part in enumerate(thirds(call.arguments)):
            yield chunk({"tool_calls": [FORMS[form](number, place, call, part)]})


def sse(*rows: object, done: bool = True) -> bytes:
    data = b"".join(f"data: {json.dumps(row)}\n\n".encode() for row in rows)
    return data + (b"data: [DONE]\n\n" if done else b"")


async def ask(body: bytes, kind: str = "text/event-stream") -> Answer:
    async with raw_server(answer(body, kind)) as url, asking(url) as model:
        return await model.ask(question())


@pytest.mark.parametrize("form", FORMS)
async def test_fragments_become_the_calls_that_the_model_made(form: str):
    answer = await ask(sse(*rows_of(form), chunk({}, "tool_calls")))
    read = [(call.name, json.loads(call.arguments)) for call in answer.message.calls]
    assert read == [(call.name, json.loads(call.arguments)) for call in CALLS]
    assert len({call.id for call in answer.message.calls}) == 3


TEXT = chunk({"content": "whole answer"})
END = chunk({}, "stop")
WHOLE = json.dumps(
    {"choices": [{"message": {"content": "whole answer"}, "finish_reason": None}]}
).encode()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (sse(TEXT), "text/event-stream"),
        (sse(TEXT, END, done=False), "text/plain"),
        (sse(TEXT, END), "application/json"),
        (sse(TEXT, END).replace(b"\n\n", b"\n"), "text/event-stream"),
        (sse(TEXT, END).replace(b"\n", b"\r\n"), "application/octet-stream"),
        (b": wait\n\n" + sse({"type": "ping"}, TEXT, END), "text/event-stream"),
        (b"\xef\xbb\xbf" + sse(TEXT, END), ""),
        (b"\xef\xbb\xbf" + WHOLE, "application/json"),
        (b"\n \n\n" + WHOLE, "text/event-stream"),
        (b"data: " + json.dumps(TEXT, indent=1).replace("\n", "\ndata: ").encode() + b"\n\n" + sse(END), ""),
    ],
)  # fmt: skip
async def test_ends_types_and_separators_of_a_stream_do_not_matter(body: bytes, kind: str):
    assert (await ask(body, kind)).message.text == "whole answer"


@pytest.mark.parametrize(
    "body",
    [
        sse(TEXT, done=False),
        sse(chunk({"content": ""})),
        sse(chunk({"tool_calls": [{"index": 0, "function": {"name": "run", "arguments": '{"a'}}]})),
        sse(TEXT, {"error": {"message": "upstream failed"}}),
        sse(TEXT, [{"error": {"message": "upstream failed"}}]),
        sse(TEXT, {"object": "error", "message": "upstream failed"}),
        sse(TEXT, {"choices": [{"error": {"message": "upstream failed"}}]}),
        sse(TEXT, done=False) + b'error: {"message": "upstream failed"}\n\n',
        sse(TEXT, done=False) + b'event: error\ndata: {"detail": "upstream failed"}\n\n',
    ],
)
async def test_cut_or_failed_stream_is_refused(body: bytes):
    async with raw_server(answer(body, "text/event-stream")) as url, asking(url) as model:
        error = await refused(model)
    assert "upstream failed" in str(error) or b"upstream" not in body


REASONING: Row = {
    "reasoning_content": "hmm ",
    "reasoning_details": [{"index": 0, "type": "reasoning.text", "text": "hm"}],
}


async def test_unknown_members_go_back_with_their_message_and_their_call():
    more = {"extra_content": {"google": {"thought_signature": "abc"}}}
    head = {"index": 0, "id": "c", "function": {"name": "run", "arguments": "{}"}, **more}
    stream = sse(
        chunk({"role": "assistant", "content": None, **REASONING}),
        chunk({**REASONING, "audio": None, "annotations": []}),
        chunk({"tool_calls": [head]}, "tool_calls"),
    )
    said = (await ask(stream)).message
    sent = await sent_back(said)
    assert sent["reasoning_content"] == "hmm hmm "
    assert sent["reasoning_details"] == [{"index": 0, "type": "reasoning.text", "text": "hmhm"}]
    assert sent["tool_calls"][0]["extra_content"] == more["extra_content"]
    assert sent.keys() == {"role", "content", "tool_calls", "reasoning_content", "reasoning_details"}  # fmt: skip


async def test_content_in_parts_is_returned_unchanged():
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Done."}]
    said = (await ask(sse(chunk({"content": parts}, "stop")))).message
    assert said.text == "Done."
    assert (await sent_back(said))["content"] == parts


async def sent_back(said: Message) -> Row:
    result = [Message(role="tool", text="ok", call_id=call.id) for call in said.calls]
    return messages(question(said, *result).messages)[2]


async def test_a_huge_unknown_member_is_refused_with_the_setting():
    stream = sse(chunk({"content": "x", "reasoning_content": "r" * 2_100_000}, "stop"))
    async with raw_server(answer(stream, "text/event-stream")) as url, asking(url) as model:
        assert "llm.max_answer_bytes" in str(await refused(model))


async def test_a_member_that_the_endpoint_refuses_is_not_sent_again():
    said = Message(role="assistant", text="x", opaque='{"reasoning_content": "hm"}')
    refusal = {"error": {"message": "property 'reasoning_content' is unsupported"}}
    body = json.dumps(refusal).encode()
    no = b"HTTP/1.1 400 No\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    learned: list[CapabilityChange] = []
    async with (
        raw_server(no, answer(WHOLE)) as url,
        asking(url, learned=learned) as model,
    ):
        await model.ask(question(said))
    assert [change.parameter for change in learned] == ["reasoning_content"]


async def test_a_server_that_counts_half_of_a_long_prompt_is_reported_once():
    usage = {"prompt_tokens": 1024, "completion_tokens": 1}
    body = answer(sse(TEXT, {**END, "usage": usage}), "", "Connection: close")
    learned: list[CapabilityChange] = []
    async with raw_server(body, body) as url, asking(url, learned=learned) as model:
        for _ in range(2):
            await model.ask(question(Message(role="user", text="long " * 2000)))
    (change,) = learned
    assert "does not count the whole 'prompt'" in change.notice
    assert "1024 of about" in change.notice
