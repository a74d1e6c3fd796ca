"""All errors of mimir, grouped by the party that must act: user, provider, agent or mimir.

Each has a message, a next step and the exit code of the command line.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A position in a file."""

    file: str
    line: int
    """1-based."""
    column: int = 1
    """1-based."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class MimirError(Exception):
    """Base class; `str(error)` is the problem and its cause, `next_step` the remedy."""

    exit_code = 1

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        super().__init__(message)
        self.next_step = next_step


# The user must act.


class UsageError(MimirError):
    """A command or an argument is wrong."""

    exit_code = 2


class LimitError(UsageError):
    """An invocation exceeds a limit of delegation."""

    def __init__(self, message: str, *, rule: str, next_step: str, session: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.rule = rule
        self.session = session


class PlanError(MimirError):
    """A plan or another file of the user is not acceptable."""

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
    """The store, the model or the sandbox is not available at the start."""

    exit_code = 69


class ConfigurationError(MimirError):
    """A setting is missing or invalid: a key, an endpoint, a model name, a value."""

    exit_code = 78


class BusyError(MimirError):
    """Another process already runs the plan."""

    exit_code = 75


class Paused(MimirError):  # noqa: N818
    """The run pauses and can be resumed; nothing failed.

    It passes through the agent loop and the machine to the agent pool, which returns the lease and keeps the phase.
    """

    exit_code = 75

    def __init__(
        self, message: str, *, reason: str, exit_code: int = 75, next_step: str | None = None
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.reason = reason
        """Kind of the reason, for scripts.

        One of `budget`, `time_limit`, `provider`, `configuration`, `sandbox`, `store`, `disk`, `workspace`, `input`, `interrupted`.
        """
        self.exit_code = exit_code


class Waiting(MimirError):  # noqa: N818  a state, not a fault
    """The task waits for the answer of the user; its lease is released.

    It passes through the agent loop and the machine to the agent pool, as `Paused`; the run continues with its other tasks.
    """

    exit_code = 75


# The provider must act.


class ModelError(MimirError):
    """A model call failed.

    `scope` is the scope of the failure: `call` (it can be retried), `attempt` (context length, content filter) or `run` (401, 402, 403,
    unknown model).
    """

    def __init__(
        self,
        message: str,
        *,
        scope: str,
        status: int | None = None,
        retry_after_seconds: float | None = None,
        most_tries: int | None = None,
        next_step: str | None = None,
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.scope = scope
        self.status = status
        self.most_tries = most_tries
        self.retry_after_seconds = retry_after_seconds


# The agent must act.


class AnswerError(MimirError):
    """The answer of a model is not readable; the message is returned to the model once."""

    exit_code = 65


class RejectedError(MimirError):
    """The user rejected the work of a planning step as often as the settings allow."""


class ToolError(MimirError):
    """A tool call failed; the gateway turns it into a `ToolResult`."""


# mimir must act: a bug, or a lost race.


class StoreError(MimirError):
    """The store failed."""

    exit_code = 69


class DamagedNode(StoreError):  # noqa: N818  a state, not an action
    """A stored node differs from its written form; nothing was changed."""

    def __init__(self, message: str, *, label: str, id: str) -> None:
        super().__init__(message)
        self.label = label
        self.id = id


class LeaseLost(MimirError):  # noqa: N818  a state, not a fault
    """Another process has the lease; writes with the older fence are refused."""


class IllegalMove(MimirError):  # noqa: N818
    """A change of status is not allowed; nothing was changed."""


class SandboxError(MimirError):
    """The sandbox is missing or broken; nothing was executed outside it."""

    exit_code = 69


class WorkspaceError(MimirError):
    """Git or the file system failed."""

    exit_code = 69


class RecordingMiss(MimirError):  # noqa: N818
    """A replay needs something that the recording lacks."""
