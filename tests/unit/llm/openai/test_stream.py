import contextlib
import itertools
import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.message import Answer, Message, ToolCall
from mimir.domain.usage import TokenUsage
from mimir.llm import codec
from mimir.llm.openai.stream import (
    AnswerAssembler,
    AnswerTooLarge,
    EventStream,
    StreamError,
    UnreadableStream,
)
from tests.support import script_responses

MOST = 10_000


def assemble(chunks: Iterable[bytes], most: int = MOST) -> Answer:
    events, assembly = EventStream(most), AnswerAssembler(most)
    for chunk in chunks:
        for data in events.feed(chunk):
            if data != "[DONE]":
                assembly.add(data)
    for data in events.feed(b"", last=True):
        assembly.add(data)
    return assembly.answer()


def chunk(delta: object = None, finish: str | None = None, **more: object) -> bytes:
    row = {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}
    return script_responses.event(row)


def call(index: object, id: str = "", name: str = "", arguments: str = "") -> dict[str, object]:
    row: dict[str, object] = {"function": {"name": name, "arguments": arguments}}
    return row | ({"id": id} if id else {}) | ({} if index is None else {"index": index})


WHOLE = Answer(
    message=Message(
        role="assistant",
        text="Zeile\u2028eins\r\nü 🙂 data: x",
        calls=(
            ToolCall(id="a", name="read_file", arguments='{"path": "ä b"}'),
            ToolCall(id="b", name="run", arguments="{}"),
        ),
    ),
    finish="tool_calls",
    usage=TokenUsage(input_tokens=7, output_tokens=3),
    model="play",
)
STREAM = (
    b": hello\r\n\r\n"
    + b"".join(script_responses.events(WHOLE, usage=True))
    + script_responses.DONE
)


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_cut_of_the_bytes_gives_the_same_answer(cuts: list[int]):
    places = [0, *sorted(cuts), len(STREAM)]
    assert assemble(STREAM[a:b] for a, b in itertools.pairwise(places)) == WHOLE


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_ending_of_the_standard_is_read(end: bytes):
    stream = STREAM.replace(b"\r\n", b"\n").replace(b"\n", end)
    assert assemble(bytes([b]) for b in stream) == WHOLE


@given(st.integers(0, len(STREAM) - 1), st.binary(max_size=3))
def test_damaged_bytes_are_refused_or_read_never_a_crash(at: int, junk: bytes):
    with contextlib.suppress(UnreadableStream, StreamError):
        assemble([STREAM[:at] + junk + STREAM[at + len(junk) :]])


@given(st.integers(0, len(STREAM)))
def test_a_stream_cut_before_its_finish_is_no_answer(at: int):
    until_finish = STREAM.index(b'"finish_reason": "tool_calls"')
    if at < until_finish:
        with pytest.raises(UnreadableStream):
            assemble([STREAM[:at]])


def test_cut_stream_is_reported_as_cut_off():
    with pytest.raises(UnreadableStream, match="cut off"):
        assemble([chunk({"content": "half of the"}), script_responses.DONE])


@pytest.mark.parametrize(
    "rows",
    [
        [call(0, "x", "run", '{"a"'), call(0, "", "", ": 1}"), call(1, "y", "run", "{}")],
        [call(0, "x", "run", '{"a": 1}'), call(0, "y", "run", "{}")],
        [call(None, "x", "run", '{"a"'), call(None, "", "", ": 1}"), call(None, "y", "run", "{}")],
        [call(0, "x", "run", '{"a"'), call(0, "x", "run", ": 1}"), call(1, "y", "run", "{}")],
    ],
    ids=["by index", "index always 0", "no index", "name and id repeated"],
)
def test_calls_are_put_together_however_servers_number_them(rows: list[dict[str, object]]):
    answer = assemble([*(chunk({"tool_calls": [row]}) for row in rows), chunk(finish="stop")])
    assert answer.message.calls == (
        ToolCall(id="x", name="run", arguments='{"a": 1}'),
        ToolCall(id="y", name="run", arguments="{}"),
    )
    assert answer.finish == "tool_calls"


def test_ids_that_are_missing_or_double_become_unique():
    rows = [call(0, "", "run"), call(1, "x", "run"), call(2, "x", "run")]
    answer = assemble([chunk({"tool_calls": rows}, "tool_calls")])
    ids = [c.id for c in answer.message.calls]
    assert len(set(ids)) == 3
    assert all(ids)


def test_arguments_given_as_an_object_become_text():
    row = {"index": 0, "id": "x", "function": {"name": "run", "arguments": {"a": 1}}}
    (made,) = assemble([chunk({"tool_calls": [row]}, "tool_calls")]).message.calls
    assert json.loads(made.arguments) == {"a": 1}


def test_a_hundred_calls_are_read_and_more_than_the_bound_refused():
    rows = [call(n, f"c{n}", "run", "{}") for n in range(129)]
    assert len(assemble([chunk({"tool_calls": rows[:128]}, "tool_calls")]).message.calls) == 128
    with pytest.raises(AnswerTooLarge, match="128 tool calls"):
        assemble([chunk({"tool_calls": rows}, "tool_calls")])


@pytest.mark.parametrize(
    "pieces",
    [
        [chunk({"content": "x" * 6000}), chunk({"content": "x" * 6000})],
        [chunk({"tool_calls": [call(0, "a", "run", "x" * 11_000)]})],
        [b"data: " + b"x" * 90_000],
        [b"data: x\n" * 20_000],
    ],
    ids=["text", "arguments", "one line", "one event"],
)
def test_answer_above_the_size_limit_is_refused_while_reading(pieces: list[bytes]):
    with pytest.raises(AnswerTooLarge):
        assemble([*pieces, chunk(finish="stop")])


@pytest.mark.parametrize("piece", [b": still thinking\n\n", b"\n", b"event: ping\n\n", b"id: 1\n"])
def test_comments_without_end_are_refused_long_before_the_bound_of_a_stream(piece: bytes):
    events = EventStream(10_000)
    with pytest.raises(AnswerTooLarge, match="comments"):
        list(itertools.chain.from_iterable(events.feed(piece * 1000) for _ in range(200)))


def test_envelopes_do_not_count_as_text():
    stream = [chunk({"content": "x"}, envelope="e" * 300) for _ in range(MOST // 2)]
    assert len(assemble([*stream, chunk(finish="stop")]).message.text) == MOST // 2


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("end_turn", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "content_filter"),
    ],
)
def test_reasons_of_many_servers_are_known(reason: str, finish: str):
    assert assemble([chunk({"content": "x"}, reason)]).finish == finish


def test_an_unknown_reason_is_no_complete_answer():
    with pytest.raises(UnreadableStream, match="'abort'"):
        assemble([chunk({"content": "x"}, "abort")])


def test_nothing_of_a_filtered_answer_is_kept():
    answer = assemble([chunk({"content": "PASS"}, "content_filter")])
    assert (answer.finish, answer.message.text) == ("content_filter", "")


def test_invalid_unicode_in_an_answer_is_replaced():
    answer = assemble(
        [
            b'data: {"choices":[{"index":0,"delta":{"content":"a\\ud800b\\u0000c\\ufffd"},"finish_reason":"stop"}]}\n\n'
        ]
    )
    assert answer.message.text == "a\ufffdb\ufffdc\ufffd"
    answer.message.text.encode()


def test_contents_in_parts_and_refusals_are_read_as_text():
    parts = [
        {"type": "text", "text": "a"},
        {"type": "thinking", "text": "secret"},
        {"type": "text", "text": "b"},
    ]
    assert assemble([chunk({"content": parts}, "stop")]).message.text == "ab"
    assert assemble([chunk({"content": None, "refusal": "No."}, "stop")]).message.text == "No."


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [],
        {"prompt_tokens": -1, "completion_tokens": 1},
        {"prompt_tokens": True, "completion_tokens": 1},
        {"prompt_tokens": 1.5, "completion_tokens": 1},
        {"prompt_tokens": 10**12, "completion_tokens": 1},
        {"prompt_tokens": 1},
    ],
)
def test_a_usage_that_cannot_be_is_unknown(usage: object):
    assert assemble([chunk({"content": "x"}, "stop", usage=usage)]).usage is None


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"message": "m", "code": 429}, 429),
        ({"message": "m", "code": "context_length_exceeded"}, 400),
        ({"message": "m", "type": "invalid_api_key"}, 401),
        ("just text", 500),
        ({"code": 10**400}, 500),
    ],
)
def test_an_error_in_the_stream_keeps_its_meaning(error: object, status: int):
    with pytest.raises(StreamError) as caught:
        assemble([chunk({"content": "half"}), script_responses.event({"error": error})])
    assert caught.value.refusal.status == status


def test_deeply_nested_json_is_refused():
    with pytest.raises(UnreadableStream):
        assemble([b"data: " + b"[" * 60_000 + b"\n\n"])


def test_an_answer_that_was_not_streamed_is_read_by_the_same_rules():
    assembly = AnswerAssembler(MOST)
    assembly.whole(script_responses.body(WHOLE).decode())
    assert assembly.answer() == WHOLE


@pytest.mark.parametrize(
    ("more", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 60}}, 60),
        ({"prompt_cache_hit_tokens": 60}, 60),
        ({"prompt_tokens_details": {"cached_tokens": 999}}, 100),
        ({"prompt_tokens_details": None}, 0),
    ],
)
def test_cached_tokens_are_a_part_of_the_prompt(more: dict[str, object], cached: int):
    usage = {"prompt_tokens": 100, "completion_tokens": 5, **more}
    answer = assemble([chunk({"content": "x"}, "stop", usage=usage)])
    assert answer.usage == TokenUsage(input_tokens=100, output_tokens=5)
    assert answer.cached_tokens == cached
    assert codec.read_answer(codec.answer_json(answer)) == answer
