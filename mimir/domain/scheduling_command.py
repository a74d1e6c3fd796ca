"""Decisions of the scheduler that the coordinator carries out. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseTask:
    """A pending task may be claimed."""

    task: str
    priority: float
    """Weight of the longest remaining path; higher first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTask:
    """A pending task can never start."""

    task: str
    because: str
    """Id of the dependency that ended without being completed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishRun:
    """Every task has ended: run the final gate and close the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitInput:
    """Only answers of the user can continue the run: pause it."""


Command = ReleaseTask | BlockTask | FinishRun | AwaitInput
