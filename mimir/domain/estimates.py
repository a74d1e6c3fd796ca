"""Estimates of a role from completed tasks, as medians that outliers hardly move. Pure."""

import unicodedata
from collections.abc import Sequence
from statistics import median

from mimir.domain.value_class import value_class


@value_class
class TaskSample:
    """Time and tool calls of one completed task."""

    source: str
    """`run/task`."""
    seconds: float
    """All attempts, with their checks and QC."""
    tool_calls: int
    """Of the accepted attempt."""


@value_class
class LearnedEstimate:
    """Typical effort of a task of one role."""

    minutes: float
    tool_calls: float
    tasks: int
    """Number of completed tasks it rests on; at least 1."""


def medians(samples: Sequence[TaskSample]) -> LearnedEstimate | None:
    """Return the medians of these tasks; None: there are no tasks."""
    if not samples:
        return None
    return LearnedEstimate(
        minutes=round(median(one.seconds for one in samples) / 60, 3),
        tool_calls=float(median(one.tool_calls for one in samples)),
        tasks=len(samples),
    )


def role_key(role: str) -> str:
    """Normalise a role description: NFKC, case, white space and trailing punctuation."""
    # Planners write one role with small differences; estimates must still match.
    text = " ".join(unicodedata.normalize("NFKC", role).casefold().split())
    while text and (unicodedata.category(text[-1])[0] == "P" or text[-1].isspace()):
        text = text[:-1]
    return text
