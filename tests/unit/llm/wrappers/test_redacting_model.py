"""A model that repeats a secret: the engine gets its answer without it."""

import json

from mimir.domain.message import Answer, Message, ModelRequest, ToolCall
from mimir.llm.wrappers.redacting_model import RedactingModel
from mimir.tools.secrets import Redactor
from tests.support.model_requests import question

KEY = "sk-known-0123456789"


class Echoing:
    """Answers with a text, and a call that writes it."""

    async def ask(self, request: ModelRequest) -> Answer:
        wish = json.dumps({"path": "a.txt", "content": f"{KEY}\nAPI_KEY=changeme-12345678"})
        opaque = json.dumps({"reasoning_details": [{"text": f"Use {KEY}"}]})
        call = ToolCall(id="c1", name="write_file", arguments=wish, opaque=opaque)
        said = Message(role="assistant", text=f"The key is {KEY}.", calls=(call,), opaque=opaque)
        return Answer(message=said, finish="tool_calls", model=f"m-{KEY}")


async def test_known_secrets_are_redacted_from_answers_and_arguments():
    answer = await RedactingModel(Echoing(), Redactor([KEY]).values).ask(question())

    assert KEY not in repr(answer)
    assert answer.message.text == "The key is [redacted:secret]."
    assert json.loads(answer.message.calls[0].arguments)["path"] == "a.txt"


async def test_text_that_resembles_a_key_may_be_written():
    answer = await RedactingModel(Echoing(), Redactor([KEY]).values).ask(question())

    content = json.loads(answer.message.calls[0].arguments)["content"]
    assert content == "[redacted:secret]\nAPI_KEY=changeme-12345678"
