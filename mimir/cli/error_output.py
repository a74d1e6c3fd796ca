"""Errors of a command: an exit code and at most three lines, `error`, `why` and `next`.

docs/command-line.md explains each exit code.
"""

import errno
from collections.abc import Iterator

from mimir.cli.console import MAX_ERROR_CHARS, clean_line
from mimir.domain.value_class import value_class
from mimir.errors import (
    ConfigurationError,
    MimirError,
    ModelError,
    Paused,
    PlanError,
    UnavailableError,
)

BUG = 70
INTERRUPTED = 130
CLOSED_PIPE = 141

_FULL = (errno.ENOSPC, errno.EDQUOT)
# A failed call can be resumed; a failure of the run needs another setting first.
_MODEL_EXITS = {"run": ConfigurationError.exit_code, "call": Paused.exit_code}
"""Exit code by the scope of a model error; 1 for any other scope."""


@value_class
class CommandFailure:
    """The exit code and the message of a failed command."""

    exit_code: int
    problem: str
    why: str = ""
    next_step: str = ""

    def lines(self) -> list[str]:
        """Return the one to three lines of the message."""
        parts = (("error", self.problem), ("why", self.why), ("next", self.next_step))
        return [f"{name}: {clean_line(text, MAX_ERROR_CHARS)}" for name, text in parts if text]


def failure(error: BaseException) -> CommandFailure | None:
    """Return the message of an exception; None for an interruption and a closed pipe."""
    match _innermost(error):
        case MimirError() as known:
            return _describe_known(known)
        case BrokenPipeError() | KeyboardInterrupt():
            return None
        # By name: importing asyncio here would slow down every command.
        case cancelled if type(cancelled).__name__ == "CancelledError":
            return None
        case OSError() as system:
            return _describe_os_error(system)
        case RecursionError() | MemoryError():
            return CommandFailure(
                exit_code=BUG, problem="The input is too large or too deeply nested."
            )
        case bug:
            return CommandFailure(
                exit_code=BUG,
                problem=f"mimir has a bug: {type(bug).__name__}: {bug}",
                next_step="Find the place with --debug, and report it.",
            )


def exit_code(error: BaseException) -> int:
    """Return the exit code of a command that ended with `error`."""
    known = failure(error)
    if known is not None:
        return known.exit_code
    return CLOSED_PIPE if isinstance(_innermost(error), BrokenPipeError) else INTERRUPTED


def _innermost(error: BaseException) -> BaseException:
    """Return the first `MimirError` of an exception group, otherwise its first exception."""
    # The user can act on an error of mimir, but not on its companions.
    leaves = list(_leaves(error))
    return next((leaf for leaf in leaves if isinstance(leaf, MimirError)), leaves[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        group: BaseExceptionGroup[BaseException] = error  # pyright: ignore[reportUnknownVariableType]  from isinstance alone
        for inner in group.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _describe_known(error: MimirError) -> CommandFailure:
    # The first line of a message is the problem, the rest its cause.
    problem, _, why = str(error).strip().partition("\n")
    if isinstance(error, PlanError) and error.at is not None:
        code = f" {error.code}" if error.code else ""
        problem = f"{error.at}: error{code}: {problem}"
    code = error.exit_code
    if isinstance(error, ModelError):
        code = _MODEL_EXITS.get(error.scope, 1)
    return CommandFailure(exit_code=code, problem=problem, why=why, next_step=error.next_step or "")


def _describe_os_error(error: OSError) -> CommandFailure:
    place = f": {error.filename}" if error.filename else ""
    is_full = error.errno in _FULL
    step = "Free some space, then continue the run: mimir resume"
    return CommandFailure(
        exit_code=(Paused if is_full else UnavailableError).exit_code,
        problem=f"{error.strerror or error}{place}",
        next_step=step if is_full else "Find the place with --debug.",
    )
