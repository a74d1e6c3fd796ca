import json

import pytest

from mimir.domain.message import Message, ToolCall
from mimir.llm.config import EndpointConfig
from mimir.llm.openai.capabilities import Capabilities
from mimir.llm.openai.payload import body, is_strict, messages
from mimir.llm.storable_text import clean
from tests.support.model_requests import READ_FILE, assistant_message, question, result

CONFIG = EndpointConfig(base_url="http://x/v1", model="m")
CALL = ToolCall(id="c1", name="read_file", arguments='{"path": "a"}')
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


def test_request_body_has_exactly_the_expected_members():
    row = body(
        question(assistant_message("x", CALL), result(CALL, "text"), tools=(READ_FILE,)),
        CONFIG,
        Capabilities(),
    )
    assert row == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "You work."},
            {"role": "user", "content": "Task: task-1\nAttempt 1 of 3"},
            {
                "role": "assistant",
                "content": "x",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "read_file", "arguments": '{"path": "a"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "text"},
        ],
        "max_tokens": 4000,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.0,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read_file",
                    "description": "Read a file.",
                    "parameters": dict(READ_FILE.input_schema),
                },
            }
        ],
    }


def test_equal_requests_are_equal_bytes():
    request = question(tools=(READ_FILE,))
    assert json.dumps(body(request, CONFIG, Capabilities())) == json.dumps(
        body(request, CONFIG, Capabilities())
    )


def test_no_temperature_and_another_model_are_respected():
    row = body(question(temperature=None, model="other"), CONFIG, Capabilities())
    assert "temperature" not in row
    assert row["model"] == "other"


def test_a_dialect_drops_renames_and_caps():
    dialect = Capabilities(
        tokens="max_completion_tokens", token_cap=100, dropped=frozenset({"temperature", "stream"})
    )
    row = body(question(), CONFIG, dialect)
    assert row["max_completion_tokens"] == 100
    assert not {"max_tokens", "temperature", "stream", "stream_options"} & set(row)


def test_tool_choice_none_is_sent_with_the_tools():
    row = body(question(tools=(READ_FILE,), tool_choice="none"), CONFIG, Capabilities())
    assert row["tool_choice"] == "none"
    assert row["tools"]


@pytest.mark.parametrize(
    ("structured", "tools", "choice", "sent"),
    [
        ("auto", (), "auto", True),
        ("auto", (READ_FILE,), "auto", False),
        ("auto", (READ_FILE,), "none", True),
        ("json_schema", (READ_FILE,), "auto", True),
        ("text", (), "auto", False),
    ],
)
def test_schema_is_sent_only_without_tools(structured, tools, choice, sent):
    config = EndpointConfig(base_url="http://x/v1", model="m", structured=structured)
    row = body(
        question(schema=SCHEMA, schema_name="ver dict", tools=tools, tool_choice=choice),
        config,
        Capabilities(),
    )
    assert ("response_format" in row) is sent
    if sent:
        assert row["response_format"] == {
            "type": "json_schema",
            "json_schema": {"name": "ver_dict", "schema": SCHEMA, "strict": True},
        }


def test_a_schema_is_strict_only_if_it_keeps_the_rules_of_strict_mode():
    assert is_strict(SCHEMA)
    assert is_strict({"anyOf": [SCHEMA, {"type": "null"}]})
    assert not is_strict(SCHEMA | {"additionalProperties": True})
    assert not is_strict(SCHEMA | {"required": []})
    assert not is_strict({"type": "array", "items": {"type": "object", "properties": {"a": {}}}})


def test_extra_body_wins():
    config = EndpointConfig(
        base_url="http://x/v1", model="m", extra_body={"temperature": 1, "top_k": 5}
    )
    row = body(question(), config, Capabilities())
    assert (row["temperature"], row["top_k"]) == (1, 5)


def test_calls_without_a_result_are_left_out():
    other = ToolCall(id="c2", name="run", arguments="{}")
    history = question(
        assistant_message("", CALL, other), result(CALL, "ok"), Message(role="user", text="Answer.")
    ).messages
    row = messages(history)[2]
    assert [c["id"] for c in row["tool_calls"]] == ["c1"]
    bare = messages(
        question(assistant_message("", other), Message(role="user", text="Answer.")).messages
    )[2]
    assert bare == {"role": "assistant", "content": "(no answer)"}


def test_invalid_tool_names_and_arguments_are_repaired_in_the_body():
    odd = ToolCall(id="c", name="read file\n!" + "x" * 100, arguments='{"path": "a')
    call = messages(question(assistant_message("", odd), result(odd, "no")).messages)[2][
        "tool_calls"
    ][0]["function"]
    assert call["name"].startswith("read_file__x")
    assert len(call["name"]) == 64
    assert json.loads(call["arguments"]) == {"unreadable": '{"path": "a'}


def test_all_text_is_encodable():
    history = question(Message(role="user", text="a\ud800b\0c")).messages
    assert messages(history)[3]["content"] == "a\ufffdb\ufffdc"
    assert clean("plain ü \ufffd") == "plain ü \ufffd"


def test_max_tokens_is_bounded_by_context_and_answer_limits():
    config = EndpointConfig(base_url="http://x/v1", model="m", context_tokens={"m": 1000})
    row = body(question(assistant_message("x" * 1400)), config, Capabilities())
    assert 500 < row["max_tokens"] < 600
    small = EndpointConfig(base_url="http://x/v1", model="m", max_output_tokens=50)
    assert body(question(), small, Capabilities())["max_tokens"] == 50
