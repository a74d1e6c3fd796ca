"""What tasks of a role took, as finished runs showed it: medians, so that one task that got stuck says little. Pure."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSample:
    """One task that was completed."""

    source: str
    """`run/task`."""
    seconds: float
    """For how long it was worked on: every attempt, the checks and QC included."""
    tool_calls: int
    """Of its accepted worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedEstimate:
    """What a task of a role takes, as a rule."""

    minutes: float
    tool_calls: float
    tasks: int
    """From how many completed tasks this is known; at least 1."""


def medians(samples: Sequence[TaskSample]) -> LearnedEstimate | None:
    """Return what these tasks have in common; None: there are none."""
    if not samples:
        return None
    return LearnedEstimate(
        minutes=round(median(one.seconds for one in samples) / 60, 3),
        tool_calls=float(median(one.tool_calls for one in samples)),
        tasks=len(samples),
    )


def role_key(role: str) -> str:
    """Return what makes two role descriptions the same: NFKC, case-folded, white space and trailing punctuation collapsed."""
    text = " ".join(unicodedata.normalize("NFKC", role).casefold().split())
    while text and (unicodedata.category(text[-1])[0] == "P" or text[-1].isspace()):
        text = text[:-1]
    return text
