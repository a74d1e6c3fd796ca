"""Metrics of a session are computed from its runs."""

from datetime import UTC, datetime, timedelta

from mimir.orchestrator.sessions.metrics import CallFacts, compute_metrics

START = datetime(2026, 1, 1, tzinfo=UTC)


def call(agent: str, status: str, *, after: int, seconds: int, attempts: int = 1) -> CallFacts:
    began = START + timedelta(seconds=after)
    return CallFacts(
        agent=agent,
        started=began,
        ended=began + timedelta(seconds=seconds),
        tokens=1000,
        response={
            "status": status,
            "deliverables": {"analysis": "word " * 40},
            "assurance": {"citations": {"total": 2, "verified": 1}},
            "metadata": {"attempts": attempts, "cost": "0.02"},
        },
    )


def test_metrics_are_totals_and_parts_of_each_agent():
    open_one = CallFacts(agent="b", started=START, ended=None, tokens=7, response={})
    calls = [
        call("a", "answered", after=0, seconds=10),
        call("a", "completed", after=5, seconds=10, attempts=2),
        call("b", "failed", after=5, seconds=20),
        open_one,
    ]
    found = compute_metrics(calls, {"similar": 2})

    assert (found["spawned"], found["ended"], found["success_rate"]) == (4, 3, 0.667)
    assert (found["elapsed_seconds"], found["sum_seconds"]) == (25.0, 40.0)
    assert found["recovery_rate"] == 0.5
    assert (found["cost"], found["cost_per_task"]) == ("0.06", "0.02")
    assert found["citations"] == {"total": 6, "verified": 3}
    assert found["refusals"] == {"similar": 2}
    saved = found["context_saved"]
    assert isinstance(saved, float)
    assert 0.9 < saved < 1
    assert found["by_agent"]["a"]["success_rate"] == 1.0  # type: ignore[index]


def test_a_session_without_an_invocation_has_no_rates():
    found = compute_metrics([], {})

    assert (found["success_rate"], found["context_saved"], found["cost"]) == (None, None, None)
