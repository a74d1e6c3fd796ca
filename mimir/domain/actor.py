"""Who acts now: the run, and the task and attempt of it; known to all that is called on its behalf, whoever calls.

What belongs to no attempt's own services (a check that several may share) is recorded under it.
"""

from contextvars import ContextVar
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """One attempt, or a run at its end."""

    run: str
    task: str = ""
    """Empty: the run itself."""
    attempt: int = 0
    whose: str = ""
    """Task whose check is run, where it is not the speaker's own; two tasks may have the same one."""

    @property
    def place(self) -> str:
        """Name it within its run: `task/attempt`, empty for the run itself; behind a blank the task whose check is run."""
        own = f"{self.task}/{self.attempt}" if self.task else ""
        return f"{own} {self.whose}" if self.whose else own


def on_behalf(task: str) -> None:
    """Let what the current task of the event loop does from now on be done for a task's check."""
    speaker = SPEAKER.get()
    if speaker is not None:
        SPEAKER.set(replace(speaker, whose=task))


SPEAKER: ContextVar[Actor | None] = ContextVar("speaker", default=None)
"""Set where an attempt, or a run's end, begins; inherited by everything that is started there. None: nobody's run."""
