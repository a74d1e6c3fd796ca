"""Answers in unusual places: a tool call as text, an answer in the reasoning."""

from dataclasses import replace

import pytest

from mimir.agents.agent_loop import LoopServices, ModelSettings, converse
from mimir.agents.circuit_breaker import CircuitBreaker
from mimir.errors import AnswerError
from tests.support.conversation import BRIEF, CONTEXT, FakeModel, FakeTools, call, reply


def services(model: FakeModel) -> LoopServices:
    return LoopServices(
        model=model,
        tools=FakeTools(),
        context=CONTEXT,
        breaker=CircuitBreaker(limit=6),
        settings=ModelSettings(answer_tokens=400, working_tokens=1600),
        elapsed=lambda: 0.0,
    )


async def test_a_tool_call_as_text_is_answered_with_how_to_call_a_tool():
    text = '<tool_call>{"name": "run", "arguments": {}}</tool_call>'
    model = FakeModel(
        [
            reply(text),
            reply("", call("run"), finish="tool_calls"),
            reply("done"),
        ]
    )
    talk = await converse(BRIEF, services(model))
    assert talk.answer.text == "done"
    assert "function-calling interface" in model.asked[1].messages[-1].text
    with pytest.raises(AnswerError, match="wrote a tool call as text"):
        await converse(BRIEF, services(FakeModel([reply(text), reply(text)])))


async def test_an_answer_in_the_reasoning_is_taken_when_the_text_is_empty_again():
    empty = reply("")
    opaque = '{"reasoning_content": "all is done"}'
    empty = replace(empty, message=replace(empty.message, opaque=opaque))
    talk = await converse(BRIEF, services(FakeModel([empty, empty])))
    assert talk.answer.text == "all is done"
