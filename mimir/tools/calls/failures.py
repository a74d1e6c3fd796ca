"""Failures of a call: a text for the model, or a pause if no model can help."""

import errno

from mimir.domain.message import ToolResult
from mimir.errors import Paused, ToolError


class CallDenied(ToolError):  # noqa: N818  named for the event
    """A permission or a quota refuses the call; nothing was executed."""


def failure(error: ToolError) -> ToolResult:
    """Return the result for the model; a full disk raises `Paused` instead."""
    pause_if_full(error)
    denied = isinstance(error, CallDenied)
    text = f"{'Denied' if denied else 'Error'}: {error} {error.next_step or ''}".rstrip()
    return ToolResult(text=text, is_error=True, denied=denied)


def pause_if_full(error: BaseException) -> None:
    """Raise `Paused` if a full disk or file system quota caused the error."""
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, OSError) and at.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Paused(
                "There is no space left on the disk that holds the workspace.",
                reason="disk",
                next_step="Free some space, then continue the run: mimir resume",
            ) from error
        # The full disk may be wrapped in several other errors.
        at = at.__cause__ or at.__context__
