import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.domain.message import Message
from mimir.errors import ModelError, PlanError
from mimir.llm.scripted.loader import from_value, load_script, parse
from mimir.llm.scripted.script import FOREVER, ScriptRequest, choose_turn, script_request
from tests.support.model_requests import assistant_message

PLAY = """
play: Two attempts
parts:
  - role: worker
    task: task-1.*
    attempt: 1
    turns:
      - calls: [{tool: write_file, arguments: {path: a.py, content: "x = 1"}}]
      - It is done.
  - role: worker
    task: task-1.*
    attempt: ">=2"
    when: {brief_has: required fix, brief_lacks: [never]}
    turns:
      - text: Mended.
        repeat: 2
      - choose:
          - when: {last_has: failed}
            text: It failed.
          - text: It went well.
    closing: {text: I stop here.}
  - role: qc
    lane: "*fresh"
    turns: [{verdict: fail}]
  - role: qc
    turns: [{verdict: pass}]
default:
  - text: I do not know.
"""


def at(
    role: str = "worker", task: str = "task-1.1", attempt: int = 1, turn: int = 0, **more: object
) -> ScriptRequest:
    known = {"lane": role, "brief": "", "last": ""} | more
    return ScriptRequest(role=role, task=task, attempt=attempt, turn=turn, **known)  # type: ignore[arg-type]


def test_a_part_is_found_by_role_task_and_attempt():
    play = parse(PLAY)
    assert choose_turn(play, at()).calls[0].tool == "write_file"
    assert choose_turn(play, at(turn=1)).text == "It is done."
    assert choose_turn(play, at("qc")).verdict == {"auto": "pass"}
    assert choose_turn(play, at("qc", lane="qc-fresh")).verdict == {"auto": "fail"}


def test_part_of_a_model_script_may_depend_on_the_brief():
    play = parse(PLAY)
    assert choose_turn(play, at(attempt=2, brief="one required fix")).text == "Mended."
    assert choose_turn(play, at(attempt=2)).text == "I do not know."
    assert choose_turn(play, at(attempt=2, brief="required fix; never")).text == "I do not know."


def test_a_turn_is_repeated_and_the_next_one_follows():
    play = parse(PLAY)
    brief = "required fix"
    assert [
        choose_turn(play, at(attempt=3, turn=n, brief=brief, last="")).text for n in (0, 1, 2)
    ] == [
        "Mended.",
        "Mended.",
        "It went well.",
    ]
    assert (
        choose_turn(play, at(attempt=3, turn=2, brief=brief, last="1 failed")).text == "It failed."
    )


def test_scripted_closing_answer_is_used_at_any_turn():
    closing = at(attempt=2, turn=99, brief="required fix", closing=True)
    assert choose_turn(parse(PLAY), closing).text == "I stop here."


def test_missing_scripted_turn_names_its_position():
    with pytest.raises(
        ModelError,
        match=r"'Two attempts'.*role 'worker', task 'task-1.1', attempt 1, turn 3.* has 2",
    ) as caught:
        choose_turn(parse(PLAY), at(turn=2))
    assert caught.value.scope == "run"
    with pytest.raises(ModelError, match="no part matches"):
        choose_turn(parse("parts: [{role: qc, turns: [x]}]"), at())


ASK = Message(role="user", text="ask")
RESULT = Message(role="tool", text="r", call_id="c")


@pytest.mark.parametrize(
    ("after", "closing", "turn"),
    [
        ((), False, 0),
        ((assistant_message("a"),), False, 1),
        ((assistant_message("a"), RESULT, RESULT), False, 1),
        ((assistant_message("a"), RESULT, assistant_message("b"), ASK), False, 2),
        ((ASK,), False, 1),
        ((assistant_message("a"), RESULT, ASK), False, 2),
        ((assistant_message("a"), RESULT, ASK), True, 1),
        ((assistant_message("a"), RESULT, ASK, ASK), True, 2),
    ],
    ids=[
        "first",
        "second",
        "after results",
        "asked again",
        "empty first",
        "empty after results",
        "closing",
        "closing empty",
    ],
)
def test_the_turn_follows_from_the_messages_alone(after, closing, turn):
    brief = (Message(role="system", text="s"), Message(role="user", text="b"))
    assert (
        script_request("worker", "t", 1, (*brief, *after), lane="worker", closing=closing).turn
        == turn
    )


def test_script_request_separates_brief_and_latest_message():
    messages = (
        Message(role="system", text="s"),
        Message(role="user", text="b"),
        assistant_message("a"),
        RESULT,
    )
    seen = script_request("worker", "t", 1, messages, lane="worker", closing=False)
    assert (seen.brief, seen.last) == ("s\nb", "r")


def test_scripted_arguments_are_json_or_verbatim_text():
    (turn,) = parse(
        "default: [{calls: [{tool: a, arguments: {n: 1}}, {tool: b, arguments: '{broken'}, {tool: c, times: 3}]}]"
    ).default
    assert [c.arguments for c in turn.calls] == ['{"n": 1}', "{broken", "{}"]
    assert turn.calls[2].times == 3


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("default: [{fault: server_error, text: x}]", 1),
        ("default: [{fault: {name: server_error, times: 3}, text: x}]", 3),
        ("default: [{fault: server_error}]", FOREVER),
        ("default: [{fault: empty}]", FOREVER),
    ],
)
def test_scripted_fault_occurs_once_before_an_answer_and_else_always(text: str, times: int):
    fault = parse(text).default[0].fault
    assert fault is not None
    assert fault.times == times


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("- a", "the document: a table"),
        ("plays: 1", "the document: unknown key 'plays'"),
        ("parts: {}", "parts: a list"),
        ("parts: [{role: qc}]", r"parts\[0\]: 'turns' is missing"),
        ("parts: [{role: 1, turns: []}]", r"parts\[0\].role: a text"),
        ("parts: [{attempt: '<2', turns: []}]", r"parts\[0\].attempt"),
        ("parts: [{attempt: -1, turns: []}]", r"parts\[0\].attempt"),
        ("parts: [{turns: [{txt: x}]}]", r"parts\[0\].turns\[0\]: unknown key 'txt'"),
        ("parts: [{turns: [{}]}]", r"turns\[0\]: a turn needs"),
        ("parts: [{turns: [{text: 5}]}]", r"turns\[0\].text: a text"),
        ("parts: [{turns: [{calls: [{arguments: {}}]}]}]", r"calls\[0\]: 'tool' is missing"),
        (
            "parts: [{turns: [{calls: [{tool: a, arguments: {1: 2}}]}]}]",
            r"calls\[0\].arguments: a text",
        ),
        (
            "parts: [{turns: [{text: a, verdict: pass}]}]",
            r"turns\[0\]: a verdict is the text",
        ),
        ("parts: [{turns: [{verdict: maybe}]}]", r"turns\[0\].verdict: auto"),
        ("parts: [{turns: [{verdict: [pass]}]}]", r"turns\[0\].verdict: a verdict is a table"),
        ("parts: [{turns: [{text: a, choose: [b]}]}]", r"turns\[0\]: a turn has either"),
        (
            "parts: [{turns: [{fault: gremlin}]}]",
            r"turns\[0\].fault: unknown fault 'gremlin'; known are rate_limited",
        ),
        ("parts: [{turns: [{fault: {name: server_error, times: 2}}]}]", r"fault: with times"),
        (
            "parts: [{turns: [{fault: unsupported_parameter, text: a}]}]",
            r"fault: unsupported_parameter needs",
        ),
        (
            "parts: [{turns: [{fault: {name: empty, parameter: x}, text: a}]}]",
            r"fault: unsupported_parameter needs",
        ),
        ("parts: [{turns: [{text: a, delay_seconds: -1}]}]", r"delay_seconds"),
        ("parts: [{turns: [{text: a, delay_seconds: .inf}]}]", r"delay_seconds"),
        ("parts: [{turns: [{text: a, finish: never}]}]", r"finish is one of"),
        ("parts: [{turns: [{text: a, usage: {input: 1}}]}]", r"usage: 'output' is missing"),
        ("parts: [{turns: [{text: a, repeat: 0}]}]", r"repeat starts at 1"),
        ("parts: [{turns: [{text: a, when: {has: x}}]}]", r"when: unknown key 'has'"),
        ("roles: [pm]", "roles: a table"),
    ],
)
def test_a_mistake_is_named_with_file_and_place(text: str, place: str):
    with pytest.raises(PlanError, match=rf"my\.yaml: .*{place}"):
        parse(text, "my.yaml")


@pytest.mark.parametrize(
    "text", ["a: [", "a: 1\na: 2", "!!python/object:os.system {}", "a: *x", "\t- x"]
)
def test_invalid_yaml_is_refused_with_its_line(text: str):
    with pytest.raises(PlanError) as caught:
        parse(text, "my.yaml")
    assert caught.value.at is not None
    assert str(caught.value.at).startswith("my.yaml:")


def test_a_date_is_text_not_an_object():
    (turn,) = parse("default: [{calls: [{tool: a, arguments: {day: 2030-01-02}}]}]").default
    assert turn.calls[0].arguments == '{"day": "2030-01-02"}'


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None):
    path = tmp_path / "my.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PlanError, match="cannot be read"):
        load_script(path)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "parts",
                        "turns",
                        "role",
                        "default",
                        "text",
                        "fault",
                        "calls",
                        "when",
                        "choose",
                        "x",
                    ]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=12,
    )
)
def test_no_document_breaks_the_reader(value: object):
    with contextlib.suppress(PlanError):
        from_value(value)
