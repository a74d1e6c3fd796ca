"""Words and figures of a table's cells: statuses, scores, durations, fractions."""

from collections.abc import Mapping

from mimir.domain.json_value import as_text
from mimir.domain.task_states import TaskStatus

WORDS: Mapping[TaskStatus, str] = {
    TaskStatus.PENDING: "waiting",
    TaskStatus.WORKER_EXECUTING: "working",
    TaskStatus.WORKER_COMPLETED: "checking",
    TaskStatus.QC_EXECUTING: "judging",
    TaskStatus.QC_PASSED: "merging",
    TaskStatus.QC_FAILED: "rejected",
    TaskStatus.PREPARING_RETRY: "retrying",
    TaskStatus.COMPLETED: "completed",
    TaskStatus.FAILED: "failed",
    TaskStatus.BLOCKED: "blocked",
    TaskStatus.CANCELLED: "cancelled",
}
"""The displayed word of each status; at most nine letters."""
ASKING = "asking"
"""The displayed word of a task that waits for the user's answer."""


def clock(seconds: float) -> str:
    """Return a duration as `m:ss` or `h:mm:ss`."""
    whole = max(0, int(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, seconds_left = divmod(rest, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{seconds_left:02d}"
    return f"{minutes}:{seconds_left:02d}"


def score_of(value: float | None) -> str:
    """Return a score in at most four characters; empty for None."""
    return "" if value is None else f"{value:.0f}"


def number(value: object) -> float | None:
    """Return a number, also of a fraction such as `"200/3"`; None if the value is neither."""
    # In Python, True and False are numbers too.
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    parts = as_text(value).split("/")
    try:
        above, below = float(parts[0]), float(parts[1]) if len(parts) == 2 else 1.0
        return above / below
    except (ValueError, ZeroDivisionError):
        return None
