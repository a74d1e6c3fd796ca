"""Limits of the invocations of a session."""

import pytest

from mimir.orchestrator.delegation.rules import SessionCall, find_refusal, measure_similarity

WORDS = "Review the parser of the plan format for quadratic time and name each line that is slow"


def called(number: int, **changed: object) -> SessionCall:
    given = {"run": f"agent-{number}", "agent": "a", "task": f"Task {number} about {number * 'x '}"}
    return SessionCall(**{**given, **changed})  # type: ignore[arg-type]


def refused(*earlier: SessionCall, is_forced: bool = False, **changed: object) -> str:
    new = called(99, task=WORDS, **changed)
    found = find_refusal(earlier, new, is_forced=is_forced)
    return found.rule if found else ""


def test_the_twenty_first_call_and_the_sixth_active_agent_are_refused():
    assert refused(*(called(n) for n in range(19))) == ""
    assert refused(*(called(n) for n in range(20)), is_forced=True) == "calls"
    assert refused(*(called(n, is_active=True) for n in range(4))) == ""
    assert refused(*(called(n, is_active=True) for n in range(5))) == "active"
    assert refused(*(called(n) for n in range(20)), refines="agent-0") == "calls"


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
