"""Decisions of the scheduler that the coordinator applies. Pure."""

from mimir.domain.value_class import value_class


@value_class
class ReleaseTask:
    """A pending task may be claimed."""

    task: str
    priority: float
    """Weight of the longest remaining path; higher first."""


@value_class
class BlockTask:
    """A pending task can never start."""

    task: str
    because: str
    """Id of the dependency that ended without being completed."""


@value_class
class FinishRun:
    """Every task has ended: run the final gate and close the run."""


@value_class
class AwaitInput:
    """Only answers of the user can continue the run: pause it."""


Command = ReleaseTask | BlockTask | FinishRun | AwaitInput
