"""Metrics of a session, in total and for each agent. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from mimir.domain.json_value import as_object, as_objects, as_text, as_whole_number
from mimir.domain.usage import estimate
from mimir.domain.value_class import value_class
from mimir.orchestrator.delegation.response import is_success

GOALS: Mapping[str, str] = {
    "success_rate": "> 0.85",
    "context_saved": ">= 0.4",
    "recovery_rate": "> 0.95",
}
"""Reported with the numbers, never enforced."""


@value_class
class CallFacts:
    """Facts of the store about one invocation."""

    agent: str
    started: datetime
    ended: datetime | None
    """None: it has not ended."""
    tokens: int
    response: Mapping[str, object]
    """Its `AgentResponse`. Empty: it has not ended."""


def compute_metrics(
    calls: Sequence[CallFacts], refusals: Mapping[str, object]
) -> Mapping[str, object]:
    """Return the metrics of a session; a number that nothing decides is None."""
    agents = sorted({one.agent for one in calls})
    return {
        **_measure(calls),
        "refusals": dict(refusals),
        "goals": dict(GOALS),
        "by_agent": {
            agent: _measure([one for one in calls if one.agent == agent]) for agent in agents
        },
    }


def _measure(calls: Sequence[CallFacts]) -> Mapping[str, object]:
    ended = [one for one in calls if one.ended is not None]
    good = [one for one in ended if is_success(one.response)]
    # A second attempt follows an error; so does a failure.
    erred = [one for one in ended if _attempts(one) > 1 or one not in good]
    tokens = sum(one.tokens for one in ended)
    answers = sum(_answer_tokens(one) for one in ended)
    # Without a price the cost is unknown, not zero.
    costs = [Decimal(cost) for one in ended if (cost := as_text(_meta(one).get("cost")))]
    cited = [as_object(as_object(one.response.get("assurance")).get("citations")) for one in ended]
    states = Counter(
        as_text(op.get("state"))
        for one in ended
        for op in as_objects(one.response.get("memory_operations"))
    )
    return {
        "spawned": len(calls),
        "ended": len(ended),
        "success_rate": _ratio(len(good), len(ended)),
        "elapsed_seconds": _measure_span(ended),
        "sum_seconds": round(sum(_seconds(one) for one in ended), 3),
        "context_saved": None if not tokens else round(1 - answers / tokens, 3),
        "cost": str(sum(costs, Decimal(0))) if costs else None,
        "cost_per_task": str(sum(costs, Decimal(0)) / len(costs)) if costs else None,
        "errors": len(erred),
        "recovery_rate": _ratio(sum(one in good for one in erred), len(erred)),
        "citations": {
            name: sum(as_whole_number(one.get(name)) or 0 for one in cited)
            for name in ("total", "verified")
        },
        "memory": dict(states),
    }


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


def _meta(call: CallFacts) -> Mapping[str, object]:
    return as_object(call.response.get("metadata"))


def _attempts(call: CallFacts) -> int:
    return as_whole_number(_meta(call).get("attempts")) or 0


def _answer_tokens(call: CallFacts) -> int:
    """Return the tokens of the text that the caller read instead of the work."""
    own = as_object(call.response.get("deliverables"))
    return estimate(as_text(own.get("analysis"))) + estimate(str(own.get("structured") or ""))


def _seconds(call: CallFacts) -> float:
    return (call.ended - call.started).total_seconds() if call.ended else 0.0


def _measure_span(ended: Sequence[CallFacts]) -> float:
    ends = [one.ended for one in ended if one.ended]
    if not ends:
        return 0.0
    return round((max(ends) - min(one.started for one in ended)).total_seconds(), 3)
