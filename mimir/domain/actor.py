"""The run, task and attempt on whose behalf the current code runs. Pure."""

from contextvars import ContextVar
from dataclasses import replace

from mimir.domain.value_class import value_class


@value_class
class Actor:
    """One attempt, or a run at its end."""

    run: str
    task: str = ""
    """Empty: the run itself."""
    attempt: int = 0
    whose: str = ""
    """Task whose check runs, if it is not the actor's own; two tasks may share a check."""
    plan_run: str = ""
    """Planning run whose trial of the checks counts for this run too; empty: none."""

    @property
    def place(self) -> str:
        """`task/attempt`, empty for the run; after a blank the task whose check runs."""
        own = f"{self.task}/{self.attempt}" if self.task else ""
        return f"{own} {self.whose}" if self.whose else own


def act_for_task(task: str) -> None:
    """Record later actions of the current asyncio task as done for the check of a task."""
    actor = CURRENT_ACTOR.get()
    if actor is not None:
        CURRENT_ACTOR.set(replace(actor, whose=task))


# Set where an attempt or the end of a run starts; asyncio tasks inherit it. None: no run.
CURRENT_ACTOR: ContextVar[Actor | None] = ContextVar("speaker", default=None)
