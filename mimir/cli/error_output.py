"""What ends a command early: the exit code, and at most three lines that say what, why and what next.

| exit | when |
|---|---|
| 0 | done; a run: `completed` |
| 1 | a run: `completed_with_gaps`, `failed` or `cancelled`; `verify`: a record is broken; a question answered with no |
| 2 | wrong usage |
| 65 | a plan or file that cannot be accepted |
| 69 | store, model or sandbox not available |
| 70 | a bug of mimir's own; `--debug` shows where |
| 75 | paused and resumable, or the plan is running elsewhere |
| 78 | configuration |
| 130 | interrupted |
| 141 | nobody reads the output any more (a closed pipe); a run is paused |
"""

import errno
from collections.abc import Iterator
from dataclasses import dataclass

from mimir.cli.console import SAID_CHARS, clean_line
from mimir.errors import AnswerError, MimirError, ModelError, PlanError

USAGE = 2
REFUSED = 65
UNAVAILABLE = 69
BUG = 70
PAUSED = 75
CONFIGURATION = 78
INTERRUPTED = 130
NOBODY_READS = 141

_FULL = (errno.ENOSPC, errno.EDQUOT)
_MODEL_EXITS = {"run": CONFIGURATION, "call": PAUSED}
"""A model's failure that no room turned into a pause, by what it ends; else 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFailure:
    """How a command ends early."""

    exit_code: int
    what: str
    why: str = ""
    next_step: str = ""

    def lines(self) -> list[str]:
        """Return what is printed: one to three lines."""
        parts = (("error", self.what), ("why", self.why), ("next", self.next_step))
        return [f"{name}: {clean_line(text, SAID_CHARS)}" for name, text in parts if text]


def failure(error: BaseException) -> CommandFailure | None:
    """Say what an exception means to a person; None: nobody is there to be told (an interruption, a closed pipe)."""
    match _innermost(error):
        case MimirError() as known:
            return _known(known)
        case BrokenPipeError() | KeyboardInterrupt():
            return None
        case cancelled if (
            type(cancelled).__name__ == "CancelledError"
        ):  # asyncio is imported where it is used
            return None
        case OSError() as system:
            return _system(system)
        case RecursionError() | MemoryError():
            return CommandFailure(
                exit_code=BUG, what="What was given is too large or too deep to handle."
            )
        case bug:
            what = f"mimir has a bug: {type(bug).__name__}: {bug}"
            return CommandFailure(
                exit_code=BUG, what=what, next_step="Add --debug to see where, and report it."
            )


def exit_code(error: BaseException) -> int:
    """Return what a command ends with that ended by `error`."""
    known = failure(error)
    if known is not None:
        return known.exit_code
    return NOBODY_READS if isinstance(_innermost(error), BrokenPipeError) else INTERRUPTED


def _innermost(error: BaseException) -> BaseException:
    """Return what a group of exceptions is about: the first that a person can act on, else the first."""
    leaves = list(_leaves(error))
    return next((leaf for leaf in leaves if isinstance(leaf, MimirError)), leaves[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        group: BaseExceptionGroup[BaseException] = error  # pyright: ignore[reportUnknownVariableType]  from isinstance alone
        for inner in group.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _known(error: MimirError) -> CommandFailure:
    what, _, why = str(error).strip().partition("\n")
    if isinstance(error, PlanError) and error.at is not None:
        code = f" {error.code}" if error.code else ""
        what = f"{error.at}: error{code}: {what}"
    code = error.exit_code
    if isinstance(error, ModelError):
        code = _MODEL_EXITS.get(error.scope, 1)
    elif isinstance(error, AnswerError):
        code = REFUSED
    return CommandFailure(exit_code=code, what=what, why=why, next_step=error.next_step or "")


def _system(error: OSError) -> CommandFailure:
    place = f": {error.filename}" if error.filename else ""
    what = f"{error.strerror or error}{place}"
    if error.errno in _FULL:
        step = "Make room; then `mimir resume` goes on where the run stopped."
        return CommandFailure(exit_code=PAUSED, what=what, next_step=step)
    return CommandFailure(
        exit_code=UNAVAILABLE, what=what, next_step="Add --debug to see where it happened."
    )
