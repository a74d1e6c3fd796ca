"""What a call that fails becomes: words for the model, or a pause when no model can help."""

import errno

from mimir.domain.message import ToolResult
from mimir.errors import Paused, ToolError


class CallDenied(ToolError):  # noqa: N818  named for what happened
    """A right or a quota refuses; nothing was run."""


def failure(error: ToolError) -> ToolResult:
    """Return the result that tells a model what went wrong, why, and what to do next.

    Raises:
        Paused: What went wrong is that the disk is full.
    """
    pause_if_full(error)
    denied = isinstance(error, CallDenied)
    said = f"{'Denied' if denied else 'Error'}: {error} {error.next_step or ''}".rstrip()
    return ToolResult(text=said, is_error=True, denied=denied)


def pause_if_full(error: BaseException) -> None:
    """Pause if an error comes from a full disk.

    Raises:
        Paused: There is no space left, or the quota of the file system is used up.
    """
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, OSError) and at.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Paused(
                "There is no space left on the disk that holds the workspace.",
                reason="disk",
                next_step="Free some space, then: mimir resume",
            ) from error
        at = at.__cause__ or at.__context__
