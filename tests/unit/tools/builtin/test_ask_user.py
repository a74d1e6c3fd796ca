"""The `ask_user` tool: valid questions, and refused ones with a reason for the model."""

import pytest

from mimir.domain.question import QuestionLimits
from mimir.errors import ToolError
from mimir.tools.builtin.ask_user import AskUserTool
from mimir.tools.calls.arguments import ToolArguments

TOOL = AskUserTool(QuestionLimits(), redact=lambda text: text.replace("hunter2", "[redacted]"))
GIVEN = {"title": "Which region?", "text": "Where is it deployed?", "options": ["eu", "us"]}


def read(**more: object):
    return TOOL.read_question(ToolArguments({**GIVEN, **more}))


def test_a_question_is_read_with_its_form_and_its_default():
    question = read(default="us", text="Not hunter2?", blocking=False)

    assert question.form.fields[0].options == ("eu", "us")
    assert question.default == {"answer": "us"}
    assert not question.is_blocking
    assert question.text == "Not [redacted]?"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"text": "What is the password of the database?"}, "asks for a secret"),
        ({"title": "two\nlines"}, r"control character U\+000A"),
        ({"text": "a\x1b[0m"}, r"control character U\+001B"),
        ({"title": " "}, "the title is empty"),
        ({"text": "x" * 4001}, "4,001 characters"),
        ({"schema": {"properties": {"x": {"type": "string"}}}}, "exclude each other"),
        ({"options": ["one"]}, "2 to 50 texts"),
        ({"default": "mars"}, "one of eu, us"),
        ({"blocking": False}, "needs a default"),
    ],
)
def test_invalid_question_is_refused(more: dict[str, object], why: str):
    with pytest.raises(ToolError, match=why):
        read(**more)
