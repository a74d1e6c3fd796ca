import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.message import Answer, Message, ToolCall
from mimir.domain.usage import TokenUsage
from mimir.llm.codec import answer_json, encode_message, message_json, read_answer, read_message

texts = st.text(max_size=40)
calls = st.builds(ToolCall, id=texts, name=texts, arguments=texts)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    text=texts,
    calls=st.lists(calls, max_size=3).map(tuple),
    call_id=texts,
    tool=texts,
    ran=st.booleans(),
    tree=texts,
    closing=st.booleans(),
    opaque=texts,
)
counts = st.integers(0, 10**6)
answers = st.builds(
    Answer,
    message=messages,
    finish=st.sampled_from(["stop", "tool_calls", "length", "content_filter"]),
    usage=st.none() | st.builds(TokenUsage, input_tokens=counts, output_tokens=counts),
    model=texts,
)


@given(answers)
def test_an_answer_survives_the_journal(answer: Answer):
    assert read_answer(json.loads(json.dumps(answer_json(answer)))) == answer


@given(messages)
def test_a_message_survives_the_journal(message: Message):
    assert read_message(json.loads(json.dumps(message_json(message)))) == message


def test_the_tree_of_a_result_is_kept_but_not_shown_to_a_model():
    message = Message(role="tool", text="ok", call_id="c", tool="run", tree="abc", ran=False)
    assert message_json(message)["tree"] == "abc"
    assert encode_message(message) == {"role": "tool", "text": "ok", "call_id": "c", "tool": "run"}


@pytest.mark.parametrize(
    "row",
    [
        None,
        [],
        {},
        {"message": {"role": "assistant", "text": "x"}},
        {"message": {"role": "robot", "text": "x"}, "finish": "stop"},
        {"message": {"role": "assistant"}, "finish": "stop"},
        {"message": {"role": "assistant", "text": 7}, "finish": "stop"},
        {"message": {"role": "assistant", "text": "x", "calls": {}}, "finish": "stop"},
        {"message": {"role": "assistant", "text": "x", "calls": [{"id": "1"}]}, "finish": "stop"},
        {"message": {"role": "assistant", "text": "x", "ran": 1}, "finish": "stop"},
        {"message": {"role": "assistant", "text": "x"}, "finish": "gone"},
        {"message": {"role": "assistant", "text": "x"}, "finish": "stop", "mood": "good"},
        {
            "message": {"role": "assistant", "text": "x"},
            "finish": "stop",
            "usage": {"input": -1, "output": 0},
        },
        {
            "message": {"role": "assistant", "text": "x"},
            "finish": "stop",
            "usage": {"input": True, "output": 0},
        },
    ],
)
def test_a_damaged_record_is_refused(row: object):
    with pytest.raises(ValueError, match=r"."):
        read_answer(row)
