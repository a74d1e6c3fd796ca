"""Values of the tools of the server: principal, tool, call and answer."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from mimir.domain.clock import Clock
from mimir.domain.value_class import value_class
from mimir.mcp_server.project_access import ProjectAccess
from mimir.tools.calls.arguments import ToolArguments

Scope = Literal["read", "work", "answer", "admin"]
EXECUTING = "/execute"
"""End of the id of a task whose planning run is followed by the execution."""
SCOPES: tuple[Scope, ...] = ("read", "work", "answer", "admin")


@value_class
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


CALL_SECONDS = 50.0
"""Longest call of a client that does not listen to progress."""
ANSWER_SECONDS = 1.0
"""Part of `CALL_SECONDS` that is left for the answer itself."""


@value_class
class WaitLimit:
    """Time that a call may wait after its arrival, and the receiver of its progress."""

    seconds: float
    report: Callable[[float, str], Awaitable[None]]
    """Takes elapsed seconds and a message."""
    clock: Clock
    arrived: float
    """Monotonic time of the call's arrival."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    @property
    def elapsed(self) -> float:
        """Seconds since the arrival of the call."""
        return self.clock.monotonic() - self.arrived

    async def rest(self, seconds: float) -> bool:
        """Sleep before the next look; False, at once: the time would be over then."""
        if self.elapsed + seconds > self.seconds:
            return False
        await self.sleep(seconds)
        return True


@value_class
class IncomingCall:
    """One call of a tool, with checked arguments."""

    arguments: ToolArguments
    principal: Principal
    project: ProjectAccess
    wait: WaitLimit

    def limit_wait(self, default: float) -> WaitLimit:
        """Return how long the call waits: as its argument `wait_seconds` says, if it has one."""
        seconds = self.arguments.number("wait_seconds", -1)
        wanted = default if seconds < 0 else min(seconds, CALL_SECONDS - ANSWER_SECONDS)
        return replace(self.wait, seconds=wanted)


@value_class
class ToolAnswer:
    """Structured result of a call."""

    content: Mapping[str, object]
    is_error: bool = False
    task: str = ""
    """Id of the task that continues. Empty: nothing continues."""
    forms: Sequence[Mapping[str, object]] = ()
    """Open questions that a client may show as forms."""


Handle = Callable[[IncomingCall], Awaitable[ToolAnswer]]


@value_class
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
