import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.agents import replies, tool_log
from mimir.agents.agent_loop import Conversation, LoopServices, ModelSettings, converse
from mimir.agents.circuit_breaker import CircuitBreaker, Trip
from mimir.agents.stopwatch import WorkTimer
from mimir.domain.message import Answer, Message, ModelRequest, ToolCall, ToolResult
from mimir.domain.usage import TokenUsage
from mimir.errors import AnswerError, LeaseLost, ModelError, Paused
from tests.support.clock import FrozenClock
from tests.support.conversation import BRIEF, CONTEXT, FakeModel, FakeTools, call, reply

COUNTER = itertools.count()


def another() -> ToolCall:
    """A call that was never made before."""
    n = next(COUNTER)
    return call("run", f'{{"n": {n}}}', id=f"c{n}")


def services(
    model: FakeModel,
    tools: FakeTools | None = None,
    breaker: CircuitBreaker | None = None,
    **more: object,
) -> LoopServices:
    base = LoopServices(
        model=model,
        tools=tools or FakeTools(),
        context=CONTEXT,
        breaker=breaker or CircuitBreaker(limit=6),
        settings=ModelSettings(answer_tokens=400, working_tokens=1600),
        elapsed=lambda: 0.0,
    )
    return replace(base, **more)  # type: ignore[arg-type]


def greedy(per_message: int) -> Callable[[ModelRequest], Answer]:
    """A model that asks for tools as long as it may."""

    def answer(request: ModelRequest) -> Answer:
        if request.tool_choice == "none" or not request.tools:
            return reply("closing answer")
        return reply("", *(another() for _ in range(per_message)), finish="tool_calls")

    return answer


def assert_protocol_valid(messages: Sequence[Message]) -> None:
    """Each call of an assistant message is answered at once, in order."""
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        for wish in message.calls:
            assert messages[at].role == "tool"
            assert messages[at].call_id == wish.id
            at += 1
        assert at == len(messages) or messages[at].role != "tool"


async def test_conversation_goes_through_tools_to_an_answer():
    model = FakeModel([reply("", call("read_file"), finish="tool_calls"), reply("done")])
    tools = FakeTools(lambda _c, _n: ToolResult(text="content", tree="t1"))
    talk = await converse(BRIEF, services(model, tools))
    assert talk.answer.text == "done"
    assert (talk.tool_calls, talk.message_count, talk.trip) == (1, 3, None)
    assert talk.messages[:2] == BRIEF
    assert talk.messages[3].text == "[call:1]\ncontent"
    assert talk.messages[3].tree == "t1"
    assert model.asked[1].messages == talk.messages[:-1]
    assert talk.ledger[1].text == "content"


async def test_qc_has_its_calls_under_its_own_label():
    model = FakeModel([reply("", call(), finish="tool_calls"), reply("done")])
    turn = ModelSettings(label="qc", answer_tokens=10, working_tokens=20)
    talk = await converse(BRIEF, services(model, settings=turn))
    assert talk.messages[3].text == "[qc:1]\nresult 1"


async def test_turns_with_tools_have_a_larger_token_limit_than_answers():
    model = FakeModel(greedy(1))
    await converse(BRIEF, services(model, breaker=CircuitBreaker(limit=2)))
    assert [r.max_tokens for r in model.asked] == [1600, 1600, 400]


async def test_agent_without_tools_has_the_answer_token_limit_and_no_tool_choice():
    model = FakeModel([reply("done")])
    await converse(BRIEF, services(model, FakeTools(specs=())))
    assert (model.asked[0].max_tokens, model.asked[0].tool_choice) == (400, "auto")


@pytest.mark.parametrize("per_message", [1, 2, 4, 6, 7, 10, 100])
@pytest.mark.parametrize("limit", [1, 2, 6, 50])
async def test_exactly_the_limit_of_calls_is_executed(limit: int, per_message: int):
    model, tools = FakeModel(greedy(per_message)), FakeTools()
    talk = await converse(BRIEF, services(model, tools, CircuitBreaker(limit=limit)))
    assert len(tools.ran) == talk.tool_calls == limit
    assert talk.trip is not None
    assert talk.trip.kind == "tool_calls"
    assert talk.answer.text == "closing answer"
    assert talk.message_count <= 3 * limit
    assert_protocol_valid(talk.messages)


async def test_message_with_too_many_calls_is_kept_and_its_first_calls_run():
    wishes = tuple(another() for _ in range(10))
    model = FakeModel([reply("now", *wishes, finish="tool_calls"), reply("closing")])
    tools = FakeTools()
    talk = await converse(BRIEF, services(model, tools))
    asked = talk.messages[2]
    assert asked == Message(role="assistant", text="now", calls=wishes)
    assert tools.ran == list(wishes[:6])
    left = talk.messages[9:13]
    assert [(m.text, m.ran, m.call_id) for m in left] == [
        ("not run: tool budget used up", False, w.id) for w in wishes[6:]
    ]


async def test_few_calls_that_are_left_are_noted_and_the_note_is_no_part_of_the_tool_log():
    turns = [reply("", *(another() for _ in range(n)), finish="tool_calls") for n in (5, 2)]
    model = FakeModel([*turns, reply("done")])
    talk = await converse(BRIEF, services(model, breaker=CircuitBreaker(limit=8)))
    noted = [m.text for m in talk.messages if "[engine]" in m.text]
    assert noted == ["[call:7]\nresult 7\n\n[engine] 1 of 8 tool calls left."]
    assert talk.ledger[7].text == "result 7"


async def test_closing_call_lists_the_tools_with_tool_choice_none():
    model = FakeModel(greedy(1))
    talk = await converse(BRIEF, services(model, breaker=CircuitBreaker(limit=1)))
    closing = model.asked[-1]
    assert closing.tools == model.asked[0].tools
    assert closing.tool_choice == "none"
    assert closing.messages[-1].role == "user"
    assert closing.messages[-1].closing
    assert "closing answer" in closing.messages[-1].text
    assert talk.messages[-1].closing


async def test_calls_in_the_closing_answer_are_ignored():
    wish = another()
    model = FakeModel([reply("", another()), reply("done so far", wish, finish="tool_calls")])
    tools = FakeTools()
    talk = await converse(BRIEF, services(model, tools, CircuitBreaker(limit=1)))
    assert talk.answer.text == "done so far"
    assert wish not in tools.ran
    assert_protocol_valid(talk.messages)


async def test_closing_answer_of_calls_alone_is_requested_once_more():
    model = FakeModel([reply("", another()), reply("", another()), reply("words")])
    talk = await converse(BRIEF, services(model, breaker=CircuitBreaker(limit=1)))
    assert talk.answer.text == "words"
    assert_protocol_valid(talk.messages)
    assert talk.tool_calls == 1
    assert talk.message_count == 2

    stubborn = FakeModel([reply("", another())] * 3)
    with pytest.raises(AnswerError, match="empty"):
        await converse(BRIEF, services(stubborn, breaker=CircuitBreaker(limit=1)))
    assert len(stubborn.asked) == 3


async def test_trip_is_reported_once_before_the_closing_call():
    told: list[tuple[Trip, int]] = []
    model = FakeModel(greedy(1))

    async def on_trip(trip: Trip) -> None:
        told.append((trip, len(model.asked)))

    talk = await converse(BRIEF, services(model, breaker=CircuitBreaker(limit=2), on_trip=on_trip))
    assert told == [(talk.trip, 2)]
    assert talk.trip is not None
    assert talk.trip.at == 6


async def test_repeated_command_is_warned_and_then_ends_the_use_of_tools():
    same = call("run", '{"argv": ["pytest"]}')

    def stuck(request: ModelRequest) -> Answer:
        return reply("gave up") if request.tool_choice == "none" else reply("", same)

    model, tools = FakeModel(stuck), FakeTools(lambda _c, n: ToolResult(text="red", tree="t"))
    talk = await converse(BRIEF, services(model, tools, CircuitBreaker(limit=50)))
    assert len(tools.ran) == 3
    assert talk.trip is not None
    assert talk.trip.kind == "repetition"
    results = [m.text for m in talk.messages if m.role == "tool"]
    assert [tool_log.REPEATED in text for text in results] == [False, True, False]
    assert {e.text for e in talk.ledger.values()} == {"red"}


async def test_edit_between_equal_commands_does_not_trip():
    script: list[Answer] = []
    for n in range(4):
        script += [
            reply("", call("edit_file", f'{{"n": {n}}}')),
            reply("", call("run", "{}")),
        ]

    def result(wish: ToolCall, n: int) -> ToolResult:
        return ToolResult(text="1 failed", tree=f"t{(n + 1) // 2}")

    talk = await converse(
        BRIEF,
        services(FakeModel([*script, reply("done")]), FakeTools(result), CircuitBreaker(limit=50)),
    )
    assert (talk.trip, talk.tool_calls) == (None, 8)


async def test_time_limit_leads_to_the_closing_call(frozen_clock: FrozenClock):
    watch = WorkTimer(frozen_clock)
    watch.start()

    def slow(_call: ToolCall, _n: int) -> ToolResult:
        frozen_clock.advance(40)
        return ToolResult(text=str(_n))

    model = FakeModel(greedy(1))
    talk = await converse(
        BRIEF, services(model, FakeTools(slow), CircuitBreaker(limit=50, seconds=60), elapsed=watch)
    )
    assert talk.trip is not None
    assert (talk.trip.kind, talk.tool_calls) == ("wall_clock", 2)
    assert "80" not in talk.messages[-2].text


async def test_token_limit_counts_earlier_use():
    model = FakeModel(lambda r: replace(greedy(1)(r), usage=TokenUsage(output_tokens=10)))
    breaker = CircuitBreaker(limit=50, max_tokens=100)
    talk = await converse(
        BRIEF, services(model, breaker=breaker), spent=TokenUsage(input_tokens=75)
    )
    assert talk.trip is not None
    assert (talk.trip.kind, talk.tool_calls) == ("tokens", 3)
    assert talk.usage.total == 115


async def test_unknown_usage_is_estimated():
    talk = await converse(BRIEF, services(FakeModel([reply("four words of answer")])))
    assert talk.usage.input_tokens > 0
    assert talk.usage.output_tokens > 0


async def test_recorded_trip_recurs_at_the_same_message():
    """A resumed lane replays in no time: the clock alone would go past the place where it tripped."""
    calls = [another() for _ in range(5)]
    script = [reply("", wish) for wish in calls]

    def worker(request: ModelRequest) -> Answer:
        rounds = sum(m.role == "tool" for m in request.messages)
        return reply("closing") if request.tool_choice == "none" else script[rounds]

    seconds = iter([0.0, 0.0, 61.0])
    first = FakeModel(worker)
    breaker = CircuitBreaker(limit=50, seconds=60)
    before = await converse(BRIEF, services(first, breaker=breaker, elapsed=lambda: next(seconds)))
    assert before.trip is not None

    async def on_trip(trip: Trip) -> None:
        raise AssertionError(f"told again of {trip}")

    second = FakeModel(worker)
    after = await converse(
        BRIEF, services(second, breaker=breaker, recorded=before.trip, on_trip=on_trip)
    )
    assert second.asked == first.asked
    assert after == before


async def test_calls_cut_by_length_are_not_run_and_get_advice():
    wish = another()
    model = FakeModel([reply("", wish, finish="length"), reply("", another()), reply("done")])
    tools = FakeTools()
    talk = await converse(BRIEF, services(model, tools))
    assert wish not in tools.ran
    told = model.asked[1].messages[-1]
    assert (told.role, told.ran, told.call_id) == ("tool", False, wish.id)
    assert "Write in parts" in told.text
    assert talk.tool_calls == 1


async def test_model_that_cuts_off_every_call_ends_with_an_error():
    model = FakeModel(lambda _r: reply("", another(), finish="length"))
    with pytest.raises(AnswerError, match="cut off"):
        await converse(BRIEF, services(model, breaker=CircuitBreaker(limit=50)))
    assert len(model.asked) == replies.CUT_CALLS_ALLOWED + 1


async def test_cut_text_is_requested_again_shorter_and_never_accepted():
    model = FakeModel([reply("a long ans", finish="length"), reply("short")])
    talk = await converse(BRIEF, services(model))
    assert (talk.answer.text, talk.finish) == ("short", "stop")
    assert "shorter" in model.asked[1].messages[-1].text

    with pytest.raises(AnswerError, match="cut off"):
        await converse(BRIEF, services(FakeModel([reply("a long ans", finish="length")] * 2)))


async def test_cut_closing_answer_is_requested_again_without_a_count():
    model = FakeModel([reply("", another()), reply("cut", finish="length"), reply("whole")])
    talk = await converse(BRIEF, services(model, breaker=CircuitBreaker(limit=1)))
    assert talk.answer.text == "whole"
    assert talk.message_count == 2
    assert all(m.closing for m in talk.messages[4:])


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_empty_answer_is_requested_once_more(text: str):
    talk = await converse(BRIEF, services(FakeModel([reply(text), reply("done")])))
    assert talk.answer.text == "done"
    assert all(m.text.strip() for m in talk.messages)
    with pytest.raises(AnswerError, match="empty"):
        await converse(BRIEF, services(FakeModel([reply(text)] * 2)))


async def test_valid_answer_between_two_empty_ones_resets_their_count():
    script = [reply(""), reply("", another()), reply(""), reply("done")]
    talk = await converse(BRIEF, services(FakeModel(script)))
    assert talk.answer.text == "done"


async def test_reply_far_beyond_its_limit_is_neither_taken_nor_kept():
    huge = reply("x" * 100_000)
    talk = await converse(BRIEF, services(FakeModel([huge, reply("short")])))
    assert talk.answer.text == "short"
    assert sum(len(m.text) for m in talk.messages) < 2000
    with pytest.raises(AnswerError, match="longer"):
        await converse(BRIEF, services(FakeModel([huge, huge])))


async def test_content_filter_ends_the_attempt():
    model = FakeModel([reply("", finish="content_filter")])
    with pytest.raises(ModelError) as caught:
        await converse(BRIEF, services(model))
    assert caught.value.scope == "attempt"


@pytest.mark.parametrize(
    "error",
    [
        Paused("provider", reason="provider"),
        LeaseLost("taken over"),
        ModelError("too long", scope="attempt"),
    ],
)
async def test_errors_of_the_model_pass_unchanged(error: Exception):
    with pytest.raises(type(error)) as caught:
        await converse(BRIEF, services(FakeModel([error])))
    assert caught.value is error


async def test_errors_of_the_tools_pass_unchanged():
    error = Paused("sandbox gone", reason="sandbox")

    def raise_error(_call: ToolCall, _n: int) -> ToolResult:
        raise error

    with pytest.raises(Paused) as caught:
        await converse(BRIEF, services(FakeModel([reply("", another())]), FakeTools(raise_error)))
    assert caught.value is error


async def continued(talk: Conversation, model: FakeModel, **more: object) -> Conversation:
    again = (*talk.messages, Message(role="user", text="Your answer cannot be read: again."))
    return await converse(again, services(model, **more), spent=talk.usage)


async def test_continued_conversation_keeps_its_limits_and_numbers():
    breaker = CircuitBreaker(limit=2)
    first = await converse(
        BRIEF,
        services(FakeModel([reply("", another()), reply("one")]), breaker=breaker),
    )
    model = FakeModel(greedy(2))
    second = await continued(first, model, breaker=breaker)
    assert second.tool_calls == 2
    assert list(second.ledger) == [1, 2]
    assert second.trip is not None


async def test_conversation_that_was_closed_stays_without_tools():
    first = await converse(BRIEF, services(FakeModel(greedy(1)), breaker=CircuitBreaker(limit=1)))
    model, tools = FakeModel([reply("better")]), FakeTools()
    second = await continued(first, model, tools=tools, breaker=CircuitBreaker(limit=1))
    assert model.asked[0].tool_choice == "none"
    assert not tools.ran
    assert second.answer.text == "better"
    assert second.message_count == first.message_count


replies_of_a_model = st.lists(
    st.one_of(
        st.integers(0, 9).map(lambda n: ("stop", n, "")),
        st.integers(0, 3).map(lambda n: ("length", n, "cut")),
        st.integers(1, 4).map(lambda n: ("tool_calls", n, "text")),
    ),
    min_size=1,
    max_size=20,
)


@given(st.integers(1, 7), replies_of_a_model)
def test_no_model_gets_more_calls_or_messages_than_it_is_granted(
    limit: int, script: list[tuple[str, int, str]]
):
    turns = itertools.cycle(script)

    def answer(_request: ModelRequest) -> Answer:
        finish, n, text = next(turns)
        return reply(text, *(another() for _ in range(n)), finish=finish)  # type: ignore[arg-type]

    tools, model = FakeTools(), FakeModel(answer)
    try:
        talk = asyncio.run(converse(BRIEF, services(model, tools, CircuitBreaker(limit=limit))))
    except AnswerError:
        pass
    else:
        assert talk.message_count <= 3 * limit
        assert_protocol_valid(talk.messages)
    assert len(tools.ran) <= limit
    for request in model.asked:
        assert_protocol_valid(request.messages)
