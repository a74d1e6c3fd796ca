"""Probable cost and time of a run, for the question before it."""

from mimir.cli.live.cells import clock
from mimir.domain.forecast import EffortRange, RunForecast
from mimir.domain.money import UNITS, format_money
from mimir.domain.quoted_text import count_noun
from mimir.domain.run import RunBudget


def describe_run(
    path: str, probable: RunForecast, size: tuple[int, int, int], limits: RunBudget
) -> list[str]:
    """Return the size of a run: its probable range, then its hard limits.

    Args:
        path: Plan.
        probable: Forecast from earlier runs.
        size: Tasks, most tool calls, most tokens.
        limits: Of the run.
    """
    tasks, calls, tokens = size
    source = (
        f"learned from {count_noun(probable.samples, 'completed task')}"
        if probable.samples
        else "a guess: no run of this project has ended"
    )
    parts = [
        f"{_numbers(probable.calls)} model calls",
        f"{_numbers(probable.tokens)} tokens",
        f"{_times(probable.seconds)} of time",
    ]
    parts += [f"{_costs(probable.cost)} of cost"] if probable.cost else []
    return [
        f"{path}: {count_noun(tasks, 'task')}",
        f"probably {', '.join(parts)} ({source}; lowest, middle, highest)",
        f"at most {calls:,} tool calls and {tokens:,} tokens{_stops(limits)}",
    ]


def _numbers(found: EffortRange) -> str:
    return "–".join(f"{_round_number(one):,}" for one in (found.low, found.middle, found.high))


def _round_number(value: float) -> int:
    """Round to two digits: more of them would promise too much."""
    whole = int(value)
    step = 10 ** max(0, len(str(whole)) - 2)
    return (whole + step // 2) // step * step


def _times(found: EffortRange) -> str:
    return "–".join(clock(one) for one in (found.low, found.middle, found.high))


def _costs(found: EffortRange) -> str:
    cents = UNITS // 100
    amounts = (max(1, int(one) // cents) * cents for one in (found.low, found.middle, found.high))
    return "–".join(format_money(one) for one in amounts)


def _stops(limits: RunBudget) -> str:
    parts = [
        f"{limits.max_calls:,} model calls" if limits.max_calls is not None else "",
        f"{limits.max_tokens:,} tokens" if limits.max_tokens is not None else "",
        f"a cost of {format_money(limits.max_cost)}" if limits.max_cost is not None else "",
        f"{clock(limits.seconds)} of time" if limits.seconds is not None else "",
    ]
    given = ", ".join(part for part in parts if part)
    return f"; it pauses at {given}" if given else ""
