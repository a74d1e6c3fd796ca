"""Limits of delegation: depth, chain, calls, queue, refinements, repetition. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from mimir.domain.invocation import DelegationLimits
from mimir.domain.value_class import value_class

OPEN_SESSIONS = 10
"""Most open sessions of a principal that it opened itself."""
SESSIONS_PER_DAY = 30
MAX_QUEUED = 20
DAY = timedelta(hours=24)
"""Time in which sessions and invocations are counted, and without which a session closes."""
SHINGLE_WORDS = 3

Rule = Literal[
    "depth", "chain", "calls", "day", "queue", "refinements", "similar", "session", "sessions"
]


@value_class
class SessionCall:
    """One invocation of a session."""

    run: str
    agent: str
    task: str
    refines: str = ""
    """Run whose result it improves. Empty: none."""
    parent: str = ""
    """Run whose agent spawned it. Empty: the caller of mimir did."""
    is_active: bool = False
    """Whether a process works on it, or was started a moment ago."""
    is_queued: bool = False
    """Whether it waits until another agent of the session ends."""
    has_ended: bool = False


@value_class
class SessionRefusal:
    """A limit that an invocation exceeds."""

    rule: Rule
    problem: str
    next_step: str


def find_chain_refusal(
    chain: Sequence[str], agent: str, limits: DelegationLimits
) -> SessionRefusal | None:
    """Return why an agent may not be spawned at the end of a chain; None: it may.

    Args:
        chain: Addresses of its ancestors, the first one first; empty: the caller of mimir spawns it.
        agent: Its address.
        limits: Of the settings.
    """
    if len(chain) + 1 > limits.depth:
        return SessionRefusal(
            rule="depth",
            problem=f"Depth {limits.depth} is the maximum: {' -> '.join((*chain, agent))}.",
            next_step="Name the specialist under `additional_specialists` of your answer.",
        )
    if agent in chain:
        return SessionRefusal(
            rule="chain",
            problem=f"{agent} is in its own line of ancestors: {' -> '.join((*chain, agent))}.",
            next_step="Do this part yourself, or spawn another specialist.",
        )
    return None


def is_slot_free(calls: Sequence[SessionCall], new: SessionCall, limits: DelegationLimits) -> bool:
    """Return whether an invocation may start now; otherwise it waits in the queue.

    An agent that waits for the agent that it spawned does not count: the spawned one has its place.
    """
    others = [one for one in calls if one.run != new.run]
    working = _list_working(others)
    if new.parent in working:
        return True
    is_first = not any(one.is_queued for one in others)
    return is_first and len(working) < limits.active


def count_working(calls: Sequence[SessionCall]) -> int:
    """Count the agents at work, without those that wait for an agent that they spawned."""
    return len(_list_working(calls))


def choose_starts(calls: Sequence[SessionCall], limits: DelegationLimits) -> list[SessionCall]:
    """Return the queued invocations that may start now, the oldest first."""
    working, chosen = _list_working(calls), list[SessionCall]()
    for one in calls:
        if one.is_queued and one.parent in working:
            working.remove(one.parent)
        elif not (one.is_queued and len(working) + len(chosen) < limits.active):
            continue
        chosen.append(one)
    return chosen


def find_place(calls: Sequence[SessionCall], run: str) -> int:
    """Return the place of a run in the queue, 1-based; 0: it does not wait."""
    queue = [one.run for one in calls if one.is_queued]
    return queue.index(run) + 1 if run in queue else 0


def find_refusal(
    earlier: Sequence[SessionCall],
    new: SessionCall,
    limits: DelegationLimits,
    *,
    today: int = 0,
    is_forced: bool,
) -> SessionRefusal | None:
    """Return the limit that a new invocation exceeds; None: it may start or wait.

    Args:
        earlier: Invocations of its session, the oldest first.
        new: The invocation.
        limits: Of the settings.
        today: Invocations of all sessions in the last 24 hours.
        is_forced: Whether a similar task is no reason.
    """
    if len(earlier) >= limits.calls:
        counts = Counter(one.agent for one in earlier)
        used = ", ".join(f"{agent} {count}" for agent, count in sorted(counts.items()))
        return SessionRefusal(
            rule="calls",
            problem=f"The session has used its {limits.calls} calls: {used}.",
            next_step="Report to the user the finished and the missing work, or open a session.",
        )
    if today >= limits.per_day:
        return SessionRefusal(
            rule="day",
            problem=f"{limits.per_day} agents were spawned in the last 24 hours.",
            next_step="Do the work yourself, or report to the user (agents.spawns_per_day).",
        )
    queued = [one.run for one in earlier if one.is_queued]
    if len(queued) >= MAX_QUEUED and not is_slot_free(earlier, new, limits):
        return SessionRefusal(
            rule="queue",
            problem=f"{len(queued)} invocations of the session are queued.",
            next_step=f"Wait for one: get_agent_output {queued[0]}",
        )
    if new.refines:
        return _check_refinement(earlier, new, limits)
    similar = None if is_forced else _find_similar(earlier, new, limits)
    if similar is None:
        return None
    return SessionRefusal(
        rule="similar",
        problem=f"{similar.run} had nearly the same task for {similar.agent}.",
        next_step=f"Read its answer: get_agent_output {similar.run}  Improve it: refines {similar.run}",
    )


def find_session_refusal(*, open_now: int, today: int) -> SessionRefusal | None:
    """Return why a principal may not open a session; None: it may.

    Args:
        open_now: Sessions that it opened and that are open.
        today: Sessions that it opened in the last 24 hours.
    """
    if open_now >= OPEN_SESSIONS:
        return SessionRefusal(
            rule="sessions",
            problem=f"{OPEN_SESSIONS} sessions are open.",
            next_step="Use one of them; a session closes after 24 hours without contact.",
        )
    if today >= SESSIONS_PER_DAY:
        return SessionRefusal(
            rule="sessions",
            problem=f"{SESSIONS_PER_DAY} sessions were opened in the last 24 hours.",
            next_step="Use an open session, or report to the user.",
        )
    return None


def measure_similarity(one: str, other: str) -> float:
    """Return the Jaccard similarity of the word shingles of two tasks."""
    # A paraphrase has other words: it is not found, and the number of calls is the last limit.
    first, second = _shingles(one), _shingles(other)
    return len(first & second) / len(first | second)


def _check_refinement(
    earlier: Sequence[SessionCall], new: SessionCall, limits: DelegationLimits
) -> SessionRefusal | None:
    known = {one.run: one for one in earlier}
    if new.refines not in known:
        return SessionRefusal(
            rule="refinements",
            problem=f"{new.refines} is not a run of the session.",
            next_step="Name one of its runs: get_agent_status",
        )
    origin = _origin(new, known)
    others = [one.run for one in earlier if one.refines and _origin(one, known) == origin]
    if len(others) < limits.refinements:
        return None
    return SessionRefusal(
        rule="refinements",
        problem=f"{origin} was refined {limits.refinements} times: {', '.join(others)}.",
        next_step="Do the rest yourself, or report to the user.",
    )


def _origin(call: SessionCall, known: dict[str, SessionCall]) -> str:
    """Return the first run of a chain of refinements."""
    while call.refines in known:
        call = known[call.refines]
    return call.run


def _list_working(calls: Sequence[SessionCall]) -> list[str]:
    """Return the runs of the agents that have a place."""
    waiting = {one.parent for one in calls if one.is_active}
    return [one.run for one in calls if one.is_active and one.run not in waiting]


def _find_similar(
    earlier: Sequence[SessionCall], new: SessionCall, limits: DelegationLimits
) -> SessionCall | None:
    same = [one for one in earlier if one.agent == new.agent]
    ranked = [(measure_similarity(one.task, new.task), one) for one in same]
    return next((one for value, one in reversed(ranked) if value >= limits.similarity), None)


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    count = max(1, len(words) - SHINGLE_WORDS + 1)
    return frozenset(tuple(words[at : at + SHINGLE_WORDS]) for at in range(count))
