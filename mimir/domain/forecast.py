"""Forecast of a run: probable calls, tokens and time from completed tasks. Pure.

A sum of many tasks is nearly normal. Its spread holds the spread of the tasks and the uncertainty of their mean, so a few samples
give a wide range. The same input gives the same numbers.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from statistics import fmean, variance

from mimir.domain.value_class import value_class

FEW = 3
"""Fewer samples of a role than this: the samples of all roles count."""
# Share of 80 % between P10 and P90: quantile of Student's t by degrees of freedom, then the normal one.
_T90 = {1: 3.078, 2: 1.886, 3: 1.638, 4: 1.533, 5: 1.476, 6: 1.440, 8: 1.397, 10: 1.372, 15: 1.341}
_NORMAL90 = 1.2816
_GUESS_BAND = 4.0


@value_class
class TaskEffort:
    """Effort of one completed task, over all its attempts."""

    calls: float
    """Of models."""
    tokens: float
    seconds: float


GUESS = TaskEffort(calls=6.0, tokens=20_000.0, seconds=120.0)
"""Of a task, if no run of the project has ended."""


@value_class
class EffortRange:
    """Probable range of one quantity: one run of ten is below `low`, one above `high`."""

    low: float
    middle: float
    high: float


@value_class
class RunForecast:
    """Probable effort of a run."""

    calls: EffortRange
    tokens: EffortRange
    seconds: EffortRange
    cost: EffortRange | None
    """Units of money. None: no earlier run had prices."""
    samples: int
    """Completed tasks that it rests on. 0: a guess."""


def forecast_run(
    roles: Sequence[str],
    samples: Mapping[str, Sequence[TaskEffort]],
    overhead: Sequence[TaskEffort] = (),
    *,
    parallel: float = 1.0,
    cost_of_token: float = 0.0,
) -> RunForecast:
    """Return the probable effort of tasks with these roles.

    Args:
        roles: Role of each task.
        samples: Completed tasks by role.
        overhead: Effort of earlier runs without their tasks, such as preambles and reports.
        parallel: Tasks that are worked on at the same time, on average.
        cost_of_token: Mean cost of a token in units of money. 0: unknown.
    """
    every = [one for known in samples.values() for one in known]

    def sum_up(of: Callable[[TaskEffort], float], share: float = 1.0) -> EffortRange:
        if not every:
            middle = of(GUESS) * len(roles) * share
            return EffortRange(low=middle / _GUESS_BAND, middle=middle, high=middle * _GUESS_BAND)
        mean = spread = 0.0
        fewest = len(every)
        parts = [
            (count, _choose(samples, role, every)) for role, count in sorted(Counter(roles).items())
        ]
        if overhead and share == 1.0:
            parts.append((1, overhead))
        for count, known in parts:
            values = [of(one) for one in known]
            mean += count * fmean(values)
            spread += _spread(values, count)
            fewest = min(fewest, len(values))
        half = _quantile(fewest - 1) * sqrt(spread)
        return EffortRange(
            low=max(0.0, mean - half) * share, middle=mean * share, high=(mean + half) * share
        )

    tokens = sum_up(lambda one: one.tokens)
    cost = EffortRange(
        low=tokens.low * cost_of_token,
        middle=tokens.middle * cost_of_token,
        high=tokens.high * cost_of_token,
    )
    return RunForecast(
        calls=sum_up(lambda one: one.calls),
        tokens=tokens,
        cost=cost if cost_of_token else None,
        seconds=sum_up(lambda one: one.seconds, 1 / max(1.0, parallel)),
        samples=len(every),
    )


def _choose(
    samples: Mapping[str, Sequence[TaskEffort]], role: str, every: Sequence[TaskEffort]
) -> Sequence[TaskEffort]:
    known = samples.get(role, ())
    return known if len(known) >= FEW else every


def _spread(values: Sequence[float], count: int) -> float:
    """Return the variance of the sum of `count` further values like these."""
    # One value shows no spread: it is taken as large as the value itself.
    one = variance(values) if len(values) > 1 else values[0] ** 2
    return one * (count + count**2 / len(values))


def _quantile(freedom: int) -> float:
    """Return the 90 % quantile of Student's t; between two entries the safer, larger one."""
    known = [value for least, value in _T90.items() if least <= max(1, freedom)]
    return known[-1] if freedom <= 30 else _NORMAL90
