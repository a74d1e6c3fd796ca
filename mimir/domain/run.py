"""Limits and result of a run. Pure."""

from typing import Literal, get_args

from mimir.domain.task_states import RunStatus, shown_state
from mimir.domain.value_class import value_class

Apply = Literal["auto", "never", "commit"]
APPLY_OPTIONS: tuple[Apply, ...] = get_args(Apply)
ControlMode = Literal["always", "accepted", "never"]
"""In which attempts passed checks are controlled: all, those no check rejected, none."""
CONTROL_MODES: tuple[ControlMode, ...] = get_args(ControlMode)
INPUT = "input"
"""Reason of a pause until the user answers."""
TODO_PLAN = "todo:"
"""Beginning of the plan of a todo list; its name follows."""


@value_class
class RunBudget:
    """Limits of a whole run; None: no limit."""

    max_calls: int | None = None
    max_tokens: int | None = None
    seconds: float | None = None
    max_cost: int | None = None
    """Units of money, see `money`."""


NO_LIMITS = RunBudget()


@value_class
class RunResult:
    """End of a run, or of the part of this process in it."""

    run: str
    outcome: RunStatus
    exit_code: int
    message: str = ""
    """Reasons that it is not `completed`."""
    next_step: str = ""
    report_path: str = ""
    """Relative to the project."""
    plan_path: str = ""
    commit: str = ""
    applied: tuple[str, ...] = ()
    """Paths that were copied to the user's directory."""
    conflicts: tuple[str, ...] = ()
    """Files that the user changed during the run; then nothing was applied."""
    marked: tuple[str, ...] = ()
    """Applied files that hold conflict markers."""
    shown: tuple[str, ...] = ()
    """Existing files that git would no longer ignore; then nothing was applied."""
    branch: str = ""
    """Branch of the result. Empty: none."""
    seal: str = ""
    is_read_only: bool = False
    """True: nothing decided the result."""

    @property
    def state(self) -> str:
        """The displayed word of the outcome."""
        return shown_state(self.outcome, is_read_only=self.is_read_only)


def is_todo_list(kind: str, plan_path: str, *, is_read_only: bool) -> bool:
    """Return whether clients work on a run, and agents never do."""
    # A plan in a file has criteria, whatever its file is called.
    return kind == "execute" and is_read_only and plan_path.startswith(TODO_PLAN)


def exit_code(outcome: RunStatus) -> int:
    """Return the exit code of the command line."""
    if outcome is RunStatus.COMPLETED:
        return 0
    # 75 is EX_TEMPFAIL: the run can be resumed.
    return 75 if outcome in (RunStatus.PAUSED, RunStatus.RUNNING) else 1
