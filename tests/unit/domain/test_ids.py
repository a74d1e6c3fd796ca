"""Names: unlike things never share one, and text order is the order of making."""

from hypothesis import given
from hypothesis import strategies as st

from mimir.domain import ids

NAMES = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,11}", fullmatch=True)
NUMBERS = st.integers(min_value=0, max_value=99_999)


def test_ids_contain_run_task_attempt_and_role():
    lane = ids.lane_id("r1", "task-1.1", 2, "worker")
    assert ids.task_id("r1", "task-1.1") == "r1/task-1.1"
    assert ids.attempt_id("r1", "task-1.1", 2) == "r1/task-1.1/2"
    assert lane == "r1/task-1.1/2/worker"
    assert ids.call_id(lane, 7) == "r1/task-1.1/2/worker#00007"
    assert ids.event_id("r1", 12) == "r1#00000012"
    assert ids.branch("r1") == "mimir/r1"


@given(st.tuples(NAMES, NAMES, NUMBERS), st.tuples(NAMES, NAMES, NUMBERS))
def test_two_attempts_never_share_a_name(one: tuple[str, str, int], other: tuple[str, str, int]):
    assert (ids.attempt_id(*one) == ids.attempt_id(*other)) == (one == other)


@given(NUMBERS, NUMBERS)
def test_text_order_of_calls_and_events_is_their_order(one: int, other: int):
    assert (ids.call_id("l", one) < ids.call_id("l", other)) == (one < other)
    assert (ids.event_id("r", one) < ids.event_id("r", other)) == (one < other)
