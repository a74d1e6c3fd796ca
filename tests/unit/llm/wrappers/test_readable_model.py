import json
from dataclasses import dataclass

import pytest

from mimir.domain.message import Answer, Message, ModelRequest, ToolCall
from mimir.llm.openai.payload import messages
from mimir.llm.wrappers.readable_model import ReadableModel
from tests.support.model_requests import READ_FILE, question


@dataclass
class Saying:
    message: Message

    async def ask(self, request: ModelRequest) -> Answer:
        return Answer(message=self.message)


async def test_thinking_is_no_part_of_the_text_and_goes_back_with_it():
    raw = '<think>\nmaybe {"verdict": "FAIL"}\n</think>\n\n{"verdict": "PASS"}'
    answer = await ReadableModel(Saying(Message(role="assistant", text=raw))).ask(question())

    assert json.loads(answer.message.text) == {"verdict": "PASS"}
    assert messages(question(answer.message).messages)[2]["content"] == raw


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("functions.read_file", "read_file"),
        ("ReadFile", "read_file"),
        ("default_api:read_file", "read_file"),
        ("read_file<|channel|>commentary", "read_file"),
        ("read_file", "read_file"),
        ("other.file", "other.file"),
    ],
)
async def test_only_the_packaging_of_an_offered_name_is_removed(name: str, read: str):
    said = Message(role="assistant", text="", calls=(ToolCall(id="c", name=name, arguments="{}"),))
    answer = await ReadableModel(Saying(said)).ask(question(tools=(READ_FILE,)))
    assert answer.message.calls[0].name == read
