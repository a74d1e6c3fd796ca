"""Values of the tools of the server: principal, tool, call and answer."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mimir.mcp_server.project_access import ProjectAccess
from mimir.tools.calls.arguments import ToolArguments

Scope = Literal["read", "work", "answer", "admin"]
EXECUTING = "/execute"
"""End of the id of a task whose planning run is followed by the execution."""
SCOPES: tuple[Scope, ...] = ("read", "work", "answer", "admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Caller of the server."""

    name: str
    """`stdio:USER` or `token:NAME`."""
    scopes: frozenset[Scope]
    is_token: bool = False
    session: str = ""
    """Its session. Empty: the newest one of its runs decides."""

    def has_any(self, scopes: frozenset[Scope]) -> bool:
        """Return whether one of these scopes is granted."""
        return bool(self.scopes & scopes)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitLimit:
    """How long a call may wait, and where it reports progress."""

    seconds: float
    report: Callable[[float, str], Awaitable[None]]
    """Takes elapsed seconds and a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingCall:
    """One call of a tool, with checked arguments."""

    arguments: ToolArguments
    principal: Principal
    project: ProjectAccess
    wait: WaitLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """Structured result of a call."""

    content: Mapping[str, object]
    is_error: bool = False
    task: str = ""
    """Id of the task that continues. Empty: nothing continues."""
    forms: Sequence[Mapping[str, object]] = ()
    """Open questions that a client may show as forms."""


Handle = Callable[[IncomingCall], Awaitable[ToolAnswer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTool:
    """A tool as it is listed, and its handler."""

    name: str
    description: str
    scopes: frozenset[Scope]
    """Each of them permits the call."""
    handle: Handle
    input_schema: Mapping[str, object]
    output_schema: Mapping[str, object]
    is_read_only: bool = True
    is_idempotent: bool = True
    is_destructive: bool = False
    reaches_out: bool = False
    """Whether models and programs outside of the project take part."""
