"""The nine metrics as rules: formulas, goals, and no number where there is nothing to compute it from."""

from dataclasses import replace

import pytest

from mimir.reporting.summary.metrics import NOTHING, Metric, MetricInputs, context_use, metrics

FULL = MetricInputs(
    piece_tokens=120,
    unique_tokens=80,
    given_tokens=100,
    available_tokens=400,
    worker_seconds=(10.0, 20.0, 60.0),
    pm_seconds=120.0,
    claims_granted=19,
    claims_empty=1,
    attempts=10,
    rejected=3,
    red_tasks=1,
    retrieved=4,
    used=3,
    tasks=8,
    unclear=1,
    questions=1,
    pm_tokens_first=1000,
    pm_tokens_last=1100,
    held_seconds=90.0,
    served_seconds=100.0,
)


def of(measured: MetricInputs) -> dict[str, Metric]:
    return {one.id: one for one in metrics(measured)}


@pytest.mark.parametrize(
    ("id", "value", "met"),
    [
        ("context_deduplication_rate", 1 - 80 / 120, False),
        ("agent_context_lifespan", 30.0, True),
        ("task_allocation_efficiency", 0.95, False),
        ("cross_agent_error_propagation", 0.25, False),
        ("subgraph_retrieval_precision", 0.75, False),
        ("hand_off_completeness", 0.75, False),
        ("worker_retry_rate", 0.3, False),
        ("pm_context_growth", 0.1, False),
        ("worker_idle_time", 0.1, False),
    ],
)
def test_each_metric_follows_its_formula(id: str, value: float, met: bool):
    one = of(FULL)[id]
    assert one.value == pytest.approx(value, abs=1e-6)
    assert one.met is met
    assert one.why == ""


def test_metric_without_data_has_no_value_but_a_reason():
    for one in metrics(NOTHING):
        assert one.value is None, one.id
        assert one.met is None
        assert one.why
    assert context_use(NOTHING).reduction is None


@pytest.mark.parametrize(
    ("id", "changed"),
    [
        ("context_deduplication_rate", {"piece_tokens": 360, "unique_tokens": 60}),
        ("task_allocation_efficiency", {"claims_empty": 0}),
        ("cross_agent_error_propagation", {"red_tasks": 0}),
        ("subgraph_retrieval_precision", {"used": 4}),
        ("hand_off_completeness", {"questions": 0, "unclear": 0}),
        ("worker_retry_rate", {"rejected": 1}),
        ("pm_context_growth", {"pm_tokens_last": 1000}),
        ("worker_idle_time", {"held_seconds": 99.0}),
    ],
)
def test_each_goal_can_be_reached(id: str, changed: dict[str, object]):
    assert of(replace(FULL, **changed))[id].met is True


@pytest.mark.parametrize(
    ("changed", "met"),
    [
        ({"worker_seconds": (301.0,)}, False),
        ({"pm_seconds": 3601.0}, False),
        ({"pm_seconds": None}, True),
    ],
)
def test_both_lifespans_count_where_both_are_known(changed: dict[str, object], met: bool):
    assert of(replace(FULL, **changed))["agent_context_lifespan"].met is met


def test_no_error_found_is_not_the_same_as_no_gate_passed():
    clean = replace(FULL, red_tasks=0, rejected=0)
    assert of(clean)["cross_agent_error_propagation"].why == "no error was found"
    early = replace(FULL, red_tasks=None)
    assert of(early)["cross_agent_error_propagation"].why == "the final gate was not reached"
    assert of(early)["cross_agent_error_propagation"].value is None


def test_idle_time_is_never_negative():
    assert of(replace(FULL, held_seconds=101.0))["worker_idle_time"].value == 0
