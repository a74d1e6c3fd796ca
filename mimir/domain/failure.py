"""Computed reports on a failed task and on a failed run. Pure."""

from mimir.domain.value_class import value_class


@value_class
class TimelineEntry:
    """One attempt of a failed task."""

    attempt: int
    score: float | None
    """None: judged without QC."""
    cause: str
    issues: tuple[str, ...]


@value_class
class QCFailureReport:
    """Causes of a task's failure; computed, with a narrative if a model answers."""

    task: str
    cause: str
    timeline: tuple[TimelineEntry, ...]
    root_causes: tuple[str, ...]
    recommendations: tuple[str, ...]
    prose: str = ""


@value_class
class PMFailureSummary:
    """Consequences of the failures for the plan."""

    blocking_tasks: tuple[str, ...]
    blocked_tasks: tuple[str, ...]
    project_delay: float
    """Blocked share of the plan's estimated minutes, 0 to 1."""
    risk_level: str
    """`low`, `medium` or `high`."""
    next_actions: tuple[str, ...]
    lessons_learned: tuple[str, ...]
