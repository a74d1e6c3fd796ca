"""What the scheduler decided; the coordinator does it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseTask:
    """A pending task may be claimed now."""

    task: str
    priority: float
    """Longest remaining path through it, in the plan's weights; higher goes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTask:
    """A pending task can never start."""

    task: str
    because: str
    """Id of the dependency that ended without being completed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishRun:
    """Every task has ended: run the final gate and close the run."""


Command = ReleaseTask | BlockTask | FinishRun
