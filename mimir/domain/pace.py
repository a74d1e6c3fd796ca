"""Pace of a run: its lower bound, its critical path and its probable end. Pure."""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from statistics import fmean

from mimir.domain.value_class import value_class


@value_class
class TaskTime:
    """Time of one task so far."""

    dependencies: tuple[str, ...] = ()
    seconds: float = 0.0
    """From the start of its first attempt."""
    has_ended: bool = False


@value_class
class RunPace:
    """Lower bound of a run's time, and its probable remaining time."""

    bound_seconds: float
    """No schedule is faster: the critical path, or the whole work on all agents."""
    path: tuple[str, ...]
    """The critical path: the chain of dependencies that takes longest."""
    left_seconds: float


def measure_pace(tasks: Mapping[str, TaskTime], workers: int) -> RunPace | None:
    """Return the pace of a run with so many tasks at once; None: no task has ended yet.

    An open task is taken to last as long as the mean of the ended ones, or as long as it has
    lasted.
    """
    ended = [one.seconds for one in tasks.values() if one.has_ended and one.seconds > 0]
    if not ended:
        return None
    mean, whole, left = fmean(ended), dict[str, float](), dict[str, float]()
    for id, one in tasks.items():
        whole[id] = one.seconds if one.has_ended else max(mean, one.seconds)
        left[id] = 0.0 if one.has_ended else whole[id] - one.seconds
    try:
        graph = TopologicalSorter({id: one.dependencies for id, one in tasks.items()})
        order = [id for id in graph.static_order() if id in tasks]
    except CycleError:  # a store of another version: nothing can be said
        return None
    path, longest = _longest_path(tasks, order, whole)
    remaining = _longest_path(tasks, order, left)[1]
    at_once = max(1, workers)
    return RunPace(
        bound_seconds=max(longest, sum(whole.values()) / at_once),
        path=path,
        left_seconds=max(remaining, sum(left.values()) / at_once),
    )


def _longest_path(
    tasks: Mapping[str, TaskTime], order: list[str], seconds: Mapping[str, float]
) -> tuple[tuple[str, ...], float]:
    """Return the chain of dependencies that takes longest, and its time."""
    total: dict[str, float] = {}
    before: dict[str, str] = {}
    for id in order:
        known = [one for one in tasks[id].dependencies if one in total]
        last = max(known, key=lambda one: total[one], default="")
        before[id] = last
        total[id] = seconds[id] + total.get(last, 0.0)
    here = max(total, key=lambda one: total[one], default="")
    longest, path = total.get(here, 0.0), list[str]()
    while here:
        path.append(here)
        here = before[here]
    return tuple(reversed(path)), longest
