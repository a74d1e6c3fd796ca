import pytest

from mimir.agents.text_calls import ends_with_call

TOOLS = ("read_file", "run")


@pytest.mark.parametrize(
    "text",
    [
        'I look.\n<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>',
        '[TOOL_CALLS][{"name": "run", "arguments": {"command": "true"}}]',
        '```json\n{"tool": "run", "parameters": {"command": "true"}}\n```',
        '{"type": "function", "function": {"name": "run", "arguments": "{}"}}',
        "<function=run><parameter=command>true</parameter></function>",
        '<function_calls><invoke name="run"><parameter name="command">x</parameter></invoke></function_calls>',
        "<read_file>\n<path>a</path>\n</read_file>",
        '```tool_code\nprint(default_api.run(command="true"))\n```',
        '<|tool_call|>{"name": "run", "arguments": {}}<|end|>',
        '<｜tool▁call▁begin｜>function<｜tool▁sep｜>run\n```json\n{"command": "ls"}\n```<｜tool▁call▁end｜>',
        '<|channel|>commentary to=functions.run <|constrain|>json<|message|>{"command": "ls"}<|call|>',
        'functions.run:0<|tool_call_argument_begin|>{"command": "ls"}<|tool_call_end|>',
        '[TOOL_CALLS]run[ARGS]{"command": "ls"}',
        '[run(command="ls")]',
        'Thought: look\nAction: run\nAction Input: {"command": "ls"}',
        "<tool_call>run\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
        '{"tool_calls": [{"type": "function", "function": {"name": "run", "arguments": "{}"}}]}',
        '{"recipient_name": "functions.run", "parameters": {"command": "ls"}}',
        "{“name”: “run”, “arguments”: {“command”: “ls”}}",
        '<tool_call>\n{"name": "run", "arguments": {"command": "l',
    ],
)
def test_a_call_at_the_end_of_a_text_is_recognised(text: str):
    assert ends_with_call(text, TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        'It wrote {"name": "run"} before. All is done.',
        '{"tasks": [{"id": "task-1", "tool": "run"}]}',
        '{"verdict": "PASS", "name": "reviewer"}',
        "I called run(x) and read_file.",
        'I checked with run:\n```json\n{"verdict": "PASS"}\n```',
        "Action: run the tests after each change.",
        "Done: the tests pass <br>",
        "",
        "{" * 5000,
        "</a>" * 2000,
    ],
)
def test_any_other_text_is_an_answer(text: str):
    assert not ends_with_call(text, TOOLS)
