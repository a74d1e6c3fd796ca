"""Two requests are equal if they differ only in the results of tools and checks."""

from dataclasses import replace

import pytest

from mimir.domain.message import Message, ModelRequest, ToolCall
from mimir.recordings.format.request_match import (
    RecordedRequest,
    describe_drift,
    difference,
    request_of,
)

BRIEF = """Task: a

=== source check:unit ===
```text
command: pytest
after the work: exit code 0
state: passed
end of its output after the work:
{output}
```

Judge it."""


def asked(*messages: Message, **settings: object) -> RecordedRequest:
    return request_of(ModelRequest(messages=messages, **settings))  # type: ignore[arg-type]


def tool(text: str) -> Message:
    return Message(role="tool", text=text, tool="run", call_id="c")


def user(text: str) -> Message:
    return Message(role="user", text=text)


def test_equal_questions_do_not_differ():
    one = asked(user("Do it."), tool("[call:1]\nexit code 0\nfine"))
    assert difference(one, one, exactly=True) is None
    assert describe_drift(one, one) is None


def test_changed_text_of_a_tool_is_drift_and_no_difference():
    one, other = (
        asked(tool("[call:1]\nexit code 0\n3 passed")),
        asked(tool("[call:1]\nexit code 0\n4 passed")),
    )
    assert difference(one, other, exactly=False) is None
    found = describe_drift(one, other)
    assert found is not None
    assert (found.part, found.recorded, found.asked) == ("message 1 (run)", "3", "4")


def test_exit_code_of_a_tool_counts():
    one, other = asked(tool("[call:1]\nexit code 0\nx")), asked(tool("[call:1]\nexit code 1\nx"))
    found = difference(one, other, exactly=False)
    assert found is not None
    assert str(found) == "message 1 (tool), characters 11–11: recorded '0', now '1'"


def test_error_of_a_tool_is_not_its_success():
    one, other = (
        asked(tool("[call:1]\nalpha")),
        asked(tool("[call:1]\nError: there is no such file")),
    )
    assert difference(one, other, exactly=False) is not None


def test_output_of_a_check_in_a_brief_is_drift_and_its_state_counts():
    one = asked(user(BRIEF.format(output="5 passed in 0.11s")))
    other = asked(user(BRIEF.format(output="6 passed in 0.34s")))
    assert difference(one, other, exactly=False) is None
    assert describe_drift(one, other) is not None
    failed = asked(user(BRIEF.format(output="").replace("state: passed", "state: failed")))
    assert difference(one, failed, exactly=False) is not None


@pytest.mark.parametrize("after", ["", "\n\n## Form\n\nAnswer so."])
def test_memory_section_is_drift_and_other_text_is_a_difference(after: str):
    told = "\n\n## From the memory\n\nrun 1: It failed.\n```text\nBecause.\n```"
    one, other = asked(user(f"Do it.{after}")), asked(user(f"Do it.{told}{after}"))
    assert difference(one, other, exactly=False) is None
    assert difference(other, one, exactly=False) is None
    assert difference(one, other, exactly=True) is not None
    assert describe_drift(one, other) is not None
    changed = asked(user(f"Do that.{told}{after}"))
    assert difference(one, changed, exactly=False) is not None
    assert difference(one, asked(user(f"Do it.{told}\n\n## More")), exactly=False) is not None


def test_durations_are_no_difference():
    one, other = asked(user("It took 0.31s.")), asked(user("It took 12.5 seconds."))
    assert difference(one, other, exactly=False) is None
    assert difference(one, other, exactly=True) is not None


def test_first_differing_characters_are_named():
    one, other = asked(user("Write a file.")), asked(user("Write the file."))
    found = difference(one, other, exactly=False)
    assert str(found) == "message 1 (user), characters 7–9: recorded 'a', now 'the'"


def test_arguments_of_a_call_count():
    def assistant(path: str) -> Message:
        call = ToolCall(id="c", name="read_file", arguments=f'{{"path": "{path}"}}')
        return Message(role="assistant", text="", calls=(call,))

    found = difference(asked(assistant("a")), asked(assistant("b")), exactly=False)
    assert found is not None
    assert found.part == "message 1 (assistant), tool call 1"


def test_message_that_is_missing_or_new_is_named():
    one, other = asked(user("A"), user("B")), asked(user("A"))
    missing, new = difference(one, other, exactly=False), difference(other, one, exactly=False)
    assert missing is not None
    assert new is not None
    assert (missing.part, missing.recorded, missing.asked) == ("message 2 (user)", "B", "")
    assert (new.part, new.recorded, new.asked) == ("message 2 (user)", "", "B")


@pytest.mark.parametrize(
    ("settings", "part"),
    [({"temperature": 1.0}, "setting 'temperature'"), ({"max_tokens": 9}, "setting 'max_tokens'")],
)
def test_settings_count(settings: dict[str, object], part: str):
    found = difference(asked(user("A")), asked(user("A"), **settings), exactly=False)
    assert found is not None
    assert found.part == part


def test_name_of_the_model_counts_only_where_everything_does():
    one, other = asked(user("A"), model="x"), asked(user("A"), model="y")
    assert difference(one, other, exactly=False) is None
    assert difference(one, other, exactly=True) is not None


def test_role_counts():
    one = user("A")
    found = difference(asked(one), asked(replace(one, role="system")), exactly=False)
    assert found is not None
    assert (found.recorded, found.asked) == ("user", "system")
