"""Limits of the invocations of a session."""

import pytest

from mimir.domain.invocation import DelegationLimits
from mimir.orchestrator.delegation.rules import (
    SessionCall,
    choose_starts,
    count_working,
    find_chain_refusal,
    find_refusal,
    find_session_refusal,
    is_slot_free,
    measure_similarity,
)

LIMITS = DelegationLimits()
WORDS = "Review the parser of the plan format for quadratic time and name each line that is slow"


def called(number: int, **changed: object) -> SessionCall:
    given = {"run": f"agent-{number}", "agent": "a", "task": f"Task {number} about {number * 'x '}"}
    return SessionCall(**{**given, **changed})  # type: ignore[arg-type]


def refused(*earlier: SessionCall, is_forced: bool = False, **changed: object) -> str:
    new = called(99, task=WORDS, **changed)
    found = find_refusal(earlier, new, LIMITS, is_forced=is_forced)
    return found.rule if found else ""


def test_the_twenty_first_call_is_refused():
    assert refused(*(called(n) for n in range(19))) == ""
    assert refused(*(called(n) for n in range(20)), is_forced=True) == "calls"
    assert refused(*(called(n) for n in range(20)), refines="agent-0") == "calls"
    found = find_refusal([], called(1), LIMITS, today=200, is_forced=True)
    assert found is not None
    assert found.rule == "day"


def test_the_sixth_agent_waits_and_a_full_queue_refuses():
    new, many = called(99), DelegationLimits(calls=100)
    four, five = ([called(n, is_active=True) for n in range(count)] for count in (4, 5))
    queue = [called(n, is_queued=True) for n in range(10, 30)]

    assert is_slot_free(four, new, LIMITS)
    assert not is_slot_free(five, new, LIMITS)
    # First come, first served: a free place belongs to one that waits.
    assert not is_slot_free([*four, queue[0]], new, LIMITS)
    assert [one.run for one in choose_starts([*four, *queue], LIMITS)] == ["agent-10"]
    assert choose_starts([*five, *queue], LIMITS) == []
    full = find_refusal([*five, *queue], new, many, is_forced=True)
    assert full is not None
    assert full.rule == "queue"


def test_a_spawned_agent_has_the_place_of_the_one_that_waits_for_it():
    five = [called(n, is_active=True) for n in range(5)]
    child = called(9, is_active=True, parent="agent-3")

    assert is_slot_free([*five, called(8, is_queued=True)], child, LIMITS)
    assert count_working([*five, child]) == 5
    # A second one of the same agent needs a place of its own.
    assert not is_slot_free([*five, child], called(10, parent="agent-3"), LIMITS)


@pytest.mark.parametrize(
    ("chain", "rule"),
    [((), ""), (("b",), ""), (("a",), "chain"), (("b", "c"), "depth"), (("a", "b"), "depth")],
)
def test_a_chain_has_two_different_agents_at_most(chain: tuple[str, ...], rule: str):
    found = find_chain_refusal(chain, "a", LIMITS)

    assert (found.rule if found else "") == rule
    assert found is None or " -> ".join((*chain, "a")) in found.problem


def test_a_principal_has_ten_open_sessions_and_thirty_a_day():
    assert find_session_refusal(open_now=9, today=29) is None
    assert find_session_refusal(open_now=10, today=10) is not None
    assert find_session_refusal(open_now=0, today=30) is not None


def test_a_task_is_refined_twice_also_along_a_chain():
    first = called(0)
    chain = [first, called(1, refines="agent-0"), called(2, refines="agent-1")]

    assert refused(first, refines="agent-0") == ""
    assert refused(*chain[:2], refines="agent-1") == ""
    assert refused(*chain, refines="agent-2") == "refinements"
    assert refused(*chain, refines="agent-0") == "refinements"
    assert refused(*chain, called(3), refines="agent-3") == ""
    assert refused(first, refines="agent-7") == "refinements"


@pytest.mark.parametrize(
    ("task", "is_similar"),
    [
        (WORDS, True),
        (WORDS.upper() + "!", True),
        (f"{WORDS} down", True),
        ("Look for slow lines in the plan parser", False),
        ("", False),
    ],
)
def test_a_repeated_task_of_the_same_agent_is_refused(task: str, is_similar: bool):
    assert (measure_similarity(task, WORDS) >= 0.85) is is_similar
    assert refused(called(1, task=task)) == ("similar" if is_similar else "")
    assert refused(called(1, task=task, agent="b")) == ""
    assert refused(called(1, task=task), is_forced=True) == ""
