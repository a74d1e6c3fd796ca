"""Reports of what went wrong: one a failed task, one a run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One attempt of a failed task."""

    attempt: int
    score: float | None
    """None: it was judged without QC."""
    cause: str
    issues: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QCFailureReport:
    """Why a task failed; computed, with prose by a model if it answers."""

    task: str
    cause: str
    timeline: tuple[TimelineEntry, ...]
    root_causes: tuple[str, ...]
    recommendations: tuple[str, ...]
    prose: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PMFailureSummary:
    """What the failures mean for the plan; computed."""

    blocking_tasks: tuple[str, ...]
    blocked_tasks: tuple[str, ...]
    project_delay: float
    """Blocked share of the plan's estimated minutes, 0–1."""
    risk_level: str
    """`low`, `medium` or `high`."""
    next_actions: tuple[str, ...]
    lessons_learned: tuple[str, ...]
