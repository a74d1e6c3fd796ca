"""Limits of a session: calls, active agents, refinements, repetition. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

MAX_CALLS = 20
MAX_ACTIVE = 5
MAX_REFINEMENTS = 2
SIMILAR = 0.85
"""Jaccard similarity from which two tasks count as one."""
SHINGLE_WORDS = 3

Rule = Literal["calls", "active", "refinements", "similar"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCall:
    """One invocation of a session."""

    run: str
    agent: str
    task: str
    refines: str = ""
    """Run whose result it improves. Empty: none."""
    is_active: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRefusal:
    """A limit that an invocation exceeds."""

    rule: Rule
    problem: str
    next_step: str


def find_refusal(
    earlier: Sequence[SessionCall], new: SessionCall, *, is_forced: bool
) -> SessionRefusal | None:
    """Return the limit that a new invocation exceeds; None: it may start.

    `is_forced`: a similar task is no reason.
    """
    if len(earlier) >= MAX_CALLS:
        counts = Counter(one.agent for one in earlier)
        used = ", ".join(f"{agent} {count}" for agent, count in sorted(counts.items()))
        return SessionRefusal(
            rule="calls",
            problem=f"The session has used its {MAX_CALLS} calls: {used}.",
            next_step="Report to the user what is done and what is missing.",
        )
    active = [one.run for one in earlier if one.is_active]
    if len(active) >= MAX_ACTIVE:
        return SessionRefusal(
            rule="active",
            problem=f"{len(active)} agents of the session are at work: {', '.join(active)}.",
            next_step=f"Wait for one: get_agent_output {active[0]}",
        )
    if new.refines:
        return _check_refinement(earlier, new)
    similar = None if is_forced else _find_similar(earlier, new)
    if similar is None:
        return None
    return SessionRefusal(
        rule="similar",
        problem=f"{similar.run} had nearly the same task for {similar.agent}.",
        next_step=f"Read its answer: get_agent_output {similar.run}  Improve it: refines {similar.run}",
    )


def measure_similarity(one: str, other: str) -> float:
    """Return the Jaccard similarity of the word shingles of two tasks."""
    # A paraphrase has other words: it is not found, and the number of calls is the last limit.
    first, second = _shingles(one), _shingles(other)
    return len(first & second) / len(first | second)


def _check_refinement(earlier: Sequence[SessionCall], new: SessionCall) -> SessionRefusal | None:
    known = {one.run: one for one in earlier}
    if new.refines not in known:
        return SessionRefusal(
            rule="refinements",
            problem=f"{new.refines} is not a run of the session.",
            next_step="Name one of its runs: get_agent_status",
        )
    origin = _origin(new, known)
    others = [one.run for one in earlier if one.refines and _origin(one, known) == origin]
    if len(others) < MAX_REFINEMENTS:
        return None
    return SessionRefusal(
        rule="refinements",
        problem=f"{origin} was refined {MAX_REFINEMENTS} times: {', '.join(others)}.",
        next_step="Do the rest yourself, or report to the user.",
    )


def _origin(call: SessionCall, known: dict[str, SessionCall]) -> str:
    """Return the first run of a chain of refinements."""
    while call.refines in known:
        call = known[call.refines]
    return call.run


def _find_similar(earlier: Sequence[SessionCall], new: SessionCall) -> SessionCall | None:
    same = [one for one in earlier if one.agent == new.agent]
    ranked = [(measure_similarity(one.task, new.task), one) for one in same]
    return next((one for value, one in reversed(ranked) if value >= SIMILAR), None)


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    count = max(1, len(words) - SHINGLE_WORDS + 1)
    return frozenset(tuple(words[at : at + SHINGLE_WORDS]) for at in range(count))
