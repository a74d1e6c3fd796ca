"""Every error of mimir, grouped by who must act.

Each carries what happened, why, and what to do next; `exit_code` is what the command line ends with.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place in a file that a person wrote or a model wrote."""

    file: str
    line: int
    """1-based."""
    column: int = 1
    """1-based."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class MimirError(Exception):
    """The root. `str(error)` says what and why; `next_step` says what to do."""

    exit_code = 1

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        super().__init__(message)
        self.next_step = next_step


# The person must act.


class UsageError(MimirError):
    """The command was given wrongly."""

    exit_code = 2


class PlanError(MimirError):
    """A plan or another file of the person's cannot be accepted."""

    exit_code = 65

    def __init__(
        self,
        message: str,
        *,
        at: Location | None = None,
        code: str = "",
        next_step: str | None = None,
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.at = at
        self.code = code


class UnavailableError(MimirError):
    """The store, the model or the sandbox is not there at the start."""

    exit_code = 69


class ConfigurationError(MimirError):
    """A setting is missing or wrong: key, endpoint, model name, value."""

    exit_code = 78


class BusyError(MimirError):
    """The plan is already running elsewhere."""

    exit_code = 75


class Paused(MimirError):  # noqa: N818
    """The run stops here and can be resumed; nothing failed.

    Raised through the loop and the machine to the worker, which gives its lease back and keeps the phase.
    """

    exit_code = 75

    def __init__(
        self, message: str, *, reason: str, exit_code: int = 75, next_step: str | None = None
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.reason = reason
        """One of `budget`, `time_limit`, `provider`, `configuration`, `sandbox`, `store`, `disk`, `workspace`, `interrupted`."""
        self.exit_code = exit_code


# The provider must act.


class ModelError(MimirError):
    """A model call failed.

    `scope` says what it ends: `call` (retry it), `attempt` (context length, content filter), `run` (401, 402, 403,
    unknown model).
    """

    def __init__(
        self,
        message: str,
        *,
        scope: str,
        status: int | None = None,
        retry_after_seconds: float | None = None,
        next_step: str | None = None,
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.scope = scope
        self.status = status
        self.retry_after_seconds = retry_after_seconds


# The agent must act.


class AnswerError(MimirError):
    """A model's answer cannot be read; the message goes back to the model once."""


class ToolError(MimirError):
    """A tool could not do what the model asked; becomes a ToolResult, never leaves the gateway."""


# We must act: a bug, or a race that was lost.


class StoreError(MimirError):
    """The store did not do what was asked."""

    exit_code = 69


class DamagedNode(StoreError):  # noqa: N818  what is there, not what was done
    """What the store holds of one node is not what was written; nothing was changed."""

    def __init__(self, message: str, *, label: str, id: str) -> None:
        super().__init__(message)
        self.label = label
        self.id = id


class LeaseLost(MimirError):  # noqa: N818  named in the architecture: what happened, not a fault
    """Another holder has the task; what this one still does is refused."""


class IllegalMove(MimirError):  # noqa: N818
    """A status may not go there; nothing was changed."""


class SandboxError(MimirError):
    """The sandbox is missing or broken; nothing was run outside it."""

    exit_code = 69


class WorkspaceError(MimirError):
    """Git or the file system did not do what the engine needs."""

    exit_code = 69


class RecordingMiss(MimirError):  # noqa: N818
    """A replay asked something that the recording does not hold."""
