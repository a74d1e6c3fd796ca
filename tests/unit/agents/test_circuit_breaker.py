from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.agents import tool_log
from mimir.agents.circuit_breaker import CircuitBreaker, count_loop_messages, warn_repeated
from mimir.domain.message import Message, ToolCall
from mimir.domain.usage import TokenUsage
from tests.support.conversation import BRIEF, call

NOTHING = TokenUsage()


def calling_message(*calls: ToolCall) -> Message:
    return Message(role="assistant", text="", calls=calls)


def result(text: str = "ok", tree: str = "t0", *, ran: bool = True) -> Message:
    return Message(role="tool", text=text, tree=tree, ran=ran)


def steps(*pairs: tuple[ToolCall, Message]) -> tuple[Message, ...]:
    """Each call in a message of its own, with its result."""
    return BRIEF + tuple(m for wish, said in pairs for m in (calling_message(wish), said))


def distinct(n: int) -> tuple[Message, ...]:
    return steps(*((call(arguments=f'{{"n": {i}}}'), result(str(i))) for i in range(n)))


@pytest.mark.parametrize(
    ("estimate", "limit"),
    [(None, 50), (4, 6), (1, 2), (3, 5), (0, 1), (-7, 1), (10, 15), (33, 50), (7, 11)],
)
def test_limit_is_one_and_a_half_times_the_estimate_rounded_up(estimate: int | None, limit: int):
    breaker = CircuitBreaker.for_estimate(estimate)
    assert breaker.limit == limit
    assert breaker.max_messages == 3 * limit


@given(st.integers(min_value=1, max_value=10**18))
def test_limit_is_exact_for_large_estimates(estimate: int):
    limit = CircuitBreaker.for_estimate(estimate).limit
    assert 2 * limit - 3 * estimate in (0, 1)


def test_first_calls_run_in_order_and_the_rest_is_refused():
    breaker = CircuitBreaker(limit=6)
    wishes = tuple(call(id=str(i)) for i in range(10))
    allowed, refused = breaker.admit((*BRIEF, calling_message(*wishes)), wishes)
    assert allowed == wishes[:6]
    assert refused == wishes[6:]


def test_denied_calls_count_and_those_not_run_do_not():
    breaker = CircuitBreaker(limit=2)
    wishes = (call(), call(), call())
    messages = (
        *BRIEF,
        calling_message(*wishes),
        result("denied: no such tool"),
        result("not run", ran=False),
    )
    assert len(breaker.admit(messages, wishes).allowed) == 1


@pytest.mark.parametrize(
    ("breaker", "messages", "elapsed", "usage", "kind"),
    [
        (CircuitBreaker(limit=3), distinct(2), 0.0, NOTHING, None),
        (CircuitBreaker(limit=3), distinct(3), 0.0, NOTHING, "tool_calls"),
        (CircuitBreaker(limit=3), (*BRIEF, *[calling_message()] * 9), 0.0, NOTHING, "messages"),
        (CircuitBreaker(limit=3), (*BRIEF, *[calling_message()] * 8), 0.0, NOTHING, None),
        (CircuitBreaker(limit=3, seconds=60), distinct(1), 59.9, NOTHING, None),
        (CircuitBreaker(limit=3, seconds=60), distinct(1), 60.0, NOTHING, "wall_clock"),
        (CircuitBreaker(limit=3), distinct(1), 1e9, NOTHING, None),
        (
            CircuitBreaker(limit=3, max_tokens=10),
            distinct(1),
            0.0,
            TokenUsage(input_tokens=9),
            None,
        ),
        (
            CircuitBreaker(limit=3, max_tokens=10),
            distinct(1),
            0.0,
            TokenUsage(input_tokens=5, output_tokens=5),
            "tokens",
        ),
    ],
)
def test_each_limit_trips_when_it_is_reached_and_not_before(
    breaker: CircuitBreaker,
    messages: Sequence[Message],
    elapsed: float,
    usage: TokenUsage,
    kind: str | None,
):
    trip = breaker.find_trip(messages, elapsed, usage)
    assert (trip.kind if trip else None) == kind


def test_trip_has_the_remaining_limits():
    breaker = CircuitBreaker(limit=4, seconds=60, max_tokens=100)
    trip = breaker.find_trip(distinct(2), 60.0, TokenUsage(output_tokens=30))
    assert trip is not None
    assert trip.as_json() == {
        "kind": "wall_clock",
        "detail": "60 of 60 seconds used",
        "at": 6,
        "toolCalls": 2,
        "toolCallsLeft": 2,
        "messagesLeft": 8,
        "secondsLeft": 0.0,
        "tokensLeft": 70,
    }


def test_messages_after_the_closing_request_are_not_counted():
    closing = Message(role="assistant", text="done", closing=True)
    assert count_loop_messages((*distinct(2), closing)) == 4


TEST = call("run", '{"argv": ["pytest"]}')
EDIT = call("edit_file", '{"path": "a.py"}')


def kind_after(messages: Sequence[Message]) -> str | None:
    trip = CircuitBreaker(limit=50).find_trip(messages, 0.0, NOTHING)
    return trip.kind if trip else None


def test_same_command_on_the_same_tree_three_times_trips():
    assert kind_after(steps((TEST, result()), (TEST, result()))) is None
    assert kind_after(steps((TEST, result()), (TEST, result()), (TEST, result()))) == "repetition"


def test_other_calls_in_between_do_not_hide_a_repetition():
    look = [(call("read_file", f'{{"path": "{n}"}}'), result(str(n))) for n in range(2)]
    messages = steps((TEST, result()), look[0], (TEST, result()), look[1], (TEST, result()))
    assert kind_after(messages) == "repetition"


def test_edit_and_test_in_turns_do_not_trip():
    rounds = [
        pair
        for n in range(6)
        for pair in ((EDIT, result("edited", f"t{n}")), (TEST, result("1 failed", f"t{n}")))
    ]
    assert kind_after(steps(*rounds)) is None


def test_read_after_an_edit_is_another_call_although_reads_name_no_tree():
    read = call("read_file", '{"path": "other.py"}')
    rounds = [
        pair
        for n in range(4)
        for pair in ((EDIT, result("edited", f"t{n}")), (read, result("x", "")))
    ]
    assert kind_after(steps(*rounds)) is None


def test_cycle_of_two_calls_is_warned_in_its_second_round_and_trips_in_its_third():
    other = call("read_file")
    cycle = ((TEST, result("red")), (other, result("text")))
    assert kind_after(steps(*cycle, *cycle)) is None
    assert kind_after(steps(*cycle, *cycle, cycle[0])) == "repetition"
    asked = (*steps(*cycle), calling_message(TEST))
    (warned,) = warn_repeated(asked, (result("red"),))
    assert warned.text == "red" + tool_log.REPEATED


def test_equal_calls_in_one_message_count_once():
    batch = (calling_message(TEST, TEST, TEST), result(), result(), result())
    assert kind_after((*BRIEF, *batch, *batch)) is None
    assert kind_after((*BRIEF, *batch, *batch, calling_message(TEST), result())) == "repetition"


def test_duration_in_an_output_does_not_make_it_another_result():
    runs = [(TEST, result(f"3 passed in 0.{n}2s at 0x7f{n}a0")) for n in range(3)]
    assert kind_after(steps(*runs)) == "repetition"


def test_other_numbers_in_an_output_make_it_another_result():
    runs = [(TEST, result(f"{n} passed in 0.02s")) for n in range(3)]
    assert kind_after(steps(*runs)) is None


def test_order_and_spacing_of_arguments_do_not_make_another_call():
    a = call("run", '{"a": 1, "b": [2]}')
    b = call("run", '{ "b":[2],"a":1 }')
    assert kind_after(steps((a, result()), (b, result()), (a, result()))) == "repetition"


@pytest.mark.parametrize("arguments", ["{not json", "[" * 100_000, "9" * 5000, "\ud800"])
def test_arguments_that_are_no_json_are_compared_as_they_are(arguments: str):
    odd = call("run", arguments)
    assert kind_after(steps((odd, result()), (odd, result()), (odd, result()))) == "repetition"


def test_second_time_adds_a_warning_and_numbers_do_not_hide_it():
    first = result(tool_log.number_result("call", 1, "red"))
    asked = (*steps((TEST, first)), calling_message(TEST))
    second = result(tool_log.number_result("call", 2, "red"))
    (warned,) = warn_repeated(asked, (second,))
    assert warned.text == "[call:2]\nred" + tool_log.REPEATED
    assert tool_log.result_text(warned) == "red"
    assert (
        kind_after((*asked, warned, calling_message(TEST), result("[call:3]\nred"))) == "repetition"
    )


def test_first_time_and_changed_tree_add_no_warning():
    assert warn_repeated((*BRIEF, calling_message(TEST)), (result(),)) == (result(),)
    asked = (*steps((TEST, result())), calling_message(TEST))
    changed = result(tree="t1")
    assert warn_repeated(asked, (changed,)) == (changed,)


wishes = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["run", "read_file", "nope"]), st.integers(0, 3)),
        max_size=12,
    ),
    max_size=30,
)


@given(st.integers(1, 12), wishes)
def test_circuit_breaker_never_admits_more_than_its_limit(
    limit: int, conversation: list[list[tuple[str, int]]]
):
    """The loop's rule on any sequence of messages, trips ignored: even then no call and no message too many."""
    breaker = CircuitBreaker(limit=limit)
    messages: tuple[Message, ...] = BRIEF
    asked = 0
    for batch in conversation:
        if breaker.find_trip(messages, 0.0, NOTHING):
            break
        calls = tuple(call(name, f'{{"n": {n}}}') for name, n in batch)
        asked += len(calls)
        messages = (*messages, calling_message(*calls))
        allowed, refused = breaker.admit(messages, calls)
        assert (*allowed, *refused) == calls
        messages += tuple(result(str(len(messages))) for _ in allowed)
        messages += tuple(result("not run", ran=False) for _ in refused)
        if refused:
            assert breaker.find_trip(messages, 0.0, NOTHING) is not None
    assert tool_log.count_admitted_calls(messages) <= min(limit, asked)
    assert count_loop_messages(messages) <= breaker.max_messages


def test_tool_log_pairs_calls_with_results_by_position():
    wishes = (call("run", "1", id="x"), call("run", "2", id="x"))
    messages = (
        *BRIEF,
        calling_message(*wishes),
        result("[call:1]\none", ""),
        result("[call:2]\ntwo", "t1"),
    )
    entries = tool_log.entries(messages)
    assert [(e.number, e.arguments, e.text, e.tree) for e in entries.values()] == [
        (1, "1", "one", ""),
        (2, "2", "two", "t1"),
    ]


def test_tool_log_numbers_executed_calls_only():
    messages = (
        *BRIEF,
        calling_message(call(), call(), call()),
        result("[call:1]\na"),
        result("not run: cut", ran=False),
        calling_message(call()),
        result("[call:2]\nb"),
    )
    assert {n: e.text for n, e in tool_log.entries(messages).items()} == {1: "a", 2: "b"}
