"""Who acts now: the run, and the task and attempt of it; known to all that is called on its behalf, whoever calls.

What belongs to no attempt's own services (a check that several may share) is recorded under it.
"""

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """One attempt, or a run at its end."""

    run: str
    task: str = ""
    """Empty: the run itself."""
    attempt: int = 0

    @property
    def place(self) -> str:
        """Name it within its run: `task/attempt`; empty: the run itself."""
        return f"{self.task}/{self.attempt}" if self.task else ""


SPEAKER: ContextVar[Speaker | None] = ContextVar("speaker", default=None)
"""Set where an attempt, or a run's end, begins; inherited by everything that is started there. None: nobody's run."""
