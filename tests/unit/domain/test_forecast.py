"""A forecast is right about four times of five."""

import random

import pytest

from mimir.domain.forecast import TaskEffort, forecast_run


def draw(source: random.Random) -> TaskEffort:
    return TaskEffort(
        calls=float(source.randint(3, 9)),
        tokens=source.lognormvariate(9, 0.5),
        seconds=source.gammavariate(4, 20),
    )


@pytest.mark.parametrize("quantity", ["calls", "tokens", "seconds"])
def test_four_of_five_runs_fall_into_the_range(quantity: str):
    source = random.Random(7)
    inside = 0
    for _ in range(200):
        roles = ["a"] * 8 + ["b"] * 5
        samples = {role: [draw(source) for _ in range(20)] for role in "ab"}
        real = sum(getattr(draw(source), quantity) for _ in roles)
        found = getattr(forecast_run(roles, samples), quantity)
        inside += found.low <= real <= found.high
    assert 150 <= inside <= 170


def test_estimate_without_samples_has_a_wide_range():
    found = forecast_run(["a", "b"], {})
    assert found.samples == 0
    assert found.calls.high == 16 * found.calls.low


def test_a_role_with_few_samples_takes_those_of_all_roles():
    known = {"a": [TaskEffort(calls=4, tokens=100, seconds=10)] * 5}
    assert forecast_run(["new"], known) == forecast_run(["a"], known)
