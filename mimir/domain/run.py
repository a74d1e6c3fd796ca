"""What a person asks of a run, and what it came to."""

from dataclasses import dataclass
from typing import Literal, get_args

from mimir.domain.task_states import RunStatus

Apply = Literal["auto", "never", "commit"]
APPLY_OPTIONS: tuple[Apply, ...] = get_args(Apply)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBudget:
    """Bounds of a whole run; None: no bound."""

    max_calls: int | None = None
    max_tokens: int | None = None
    seconds: float | None = None
    max_cost: int | None = None
    """Units of money, see `money`."""


NO_LIMITS = RunBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a run, or this process's part of it, ended."""

    run: str
    outcome: RunStatus
    exit_code: int
    message: str = ""
    """Why, where it is not `completed`."""
    next_step: str = ""
    report_path: str = ""
    """Relative to the project."""
    plan_path: str = ""
    commit: str = ""
    applied: tuple[str, ...] = ()
    """Paths that were brought into the person's directory."""
    conflicts: tuple[str, ...] = ()
    """Touched files that the person changed meanwhile; then nothing was applied."""
    seal: str = ""


def exit_code(outcome: RunStatus) -> int:
    """Return what the command line ends with."""
    if outcome is RunStatus.COMPLETED:
        return 0
    return 75 if outcome in (RunStatus.PAUSED, RunStatus.RUNNING) else 1
