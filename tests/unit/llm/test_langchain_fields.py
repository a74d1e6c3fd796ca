"""Fields of a LangChain message that mimir does not know return with the message."""

from collections.abc import AsyncIterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import Field

from mimir.llm.config import EndpointConfig
from mimir.llm.langchain import LangChainEndpoint
from tests.support.clock import FrozenClock
from tests.support.model_requests import question, result

THOUGHT = {"type": "thinking", "thinking": "Look first.", "signature": "c2ln", "index": 0}
CALL = {"name": "read_file", "args": '{"path": "a"}', "id": "c1", "index": 1}
MORE = {"thought_signatures": {"c1": "AAEC"}}


class ThinkingModel(BaseChatModel):
    """Model whose answers hold a signed thought; it keeps the messages that it received."""

    seen: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "thinking"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise AssertionError("only streams are read")

    async def _astream(
        self, messages: list[BaseMessage], *_: Any, **__: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        self.seen.append(messages)
        blocks: list[dict[str, Any]] = [
            THOUGHT,
            {"type": "text", "text": "I read it.", "index": 2},
            {"type": "tool_use", "id": "c1", "name": "read_file", "input": {}, "index": 1},
        ]
        for block in blocks:
            yield ChatGenerationChunk(message=AIMessageChunk(content=[block]))
        last = AIMessageChunk(content=[], additional_kwargs=MORE, tool_call_chunks=[CALL])
        yield ChatGenerationChunk(message=last)


async def test_signed_thoughts_and_further_fields_return_with_their_message():
    model = ThinkingModel()
    config = EndpointConfig(base_url="", api_key="", model="m")
    endpoint = LangChainEndpoint(lambda *_: model, "m", config, FrozenClock())

    answer = await endpoint.ask(question())
    assert answer.message.text == "I read it."
    (call,) = answer.message.calls
    assert call.name == "read_file"

    await endpoint.ask(question(answer.message, result(call, "text")))
    (sent,) = (one for one in model.seen[-1] if isinstance(one, AIMessage))
    assert sent.content == [THOUGHT, {"type": "text", "text": "I read it.", "index": 2}]
    assert sent.additional_kwargs == MORE
    assert [call["id"] for call in sent.tool_calls] == ["c1"]
