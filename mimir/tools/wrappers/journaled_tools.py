"""Tools with a transcript: calls are recorded, and recorded results are served.

A refused call is recorded too. The tree of the workspace is recorded after each effect.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from mimir.domain.call_outcome import CallOutcome, Transcript, encode_result
from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec
from mimir.domain.question import NewQuestion
from mimir.domain.quoted_text import storable
from mimir.domain.value_class import value_class
from mimir.errors import StoreError
from mimir.tools.calls.failures import pause_if_full

Snapshot = Callable[[], Awaitable[str]]
"""Returns the id of the workspace's tree."""

MAX_RECORDED_CHARS = 1_000_000
"""Longer arguments are recorded by their start, length and hash; they are refused anyway."""


@value_class
class GateDecision:
    """The decision on a call, made before anything is executed."""

    refusal: ToolResult | None = None
    """None: the call is admitted."""
    effectful: bool = False
    """False for a read and for a refused call."""
    title: str = ""
    """A few words for display, without secrets."""
    question: NewQuestion | None = None
    """Question that the call asks the user. None: it asks none."""


class ToolDispatcher(Protocol):
    """Decides on calls, and executes them later."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """The descriptions for the model."""
        ...

    def admit(self, call: ToolCall) -> GateDecision:
        """Decide on a call without waiting."""
        ...

    async def run(self, call: ToolCall, context: CallContext) -> ToolResult:
        """Execute an admitted call; its result holds no secret."""
        ...


class JournaledTools:
    """The outermost `Toolset` of an agent."""

    def __init__(
        self,
        dispatcher: ToolDispatcher,
        transcript: Transcript,
        snapshot: Snapshot | None,
        redact: Callable[[str], str],
        base_tree: str = "",
    ) -> None:
        self._dispatcher = dispatcher
        self._transcript = transcript
        self._snapshot = snapshot
        self._redact = redact
        self._tree = base_tree

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """The descriptions for the model, in a fixed order."""
        return self._dispatcher.specs

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        """Execute one call, or serve its recorded result."""
        # Nothing is awaited before the call's place in the transcript is taken.
        decision = self._dispatcher.admit(call)

        async def work() -> CallOutcome:
            result = decision.refusal or await self._dispatcher.run(call, context)
            tree = await self._take_snapshot() if decision.effectful else ""
            return CallOutcome(value=encode_result(result), tree=tree)

        # Redacted before it is stored: the store must hold no secret.
        request = {
            "tool": _shorten(self._redact(storable(call.name))),
            "arguments": _shorten(self._redact(storable(call.arguments))),
        }
        if decision.question is not None:
            outcome = await self._transcript.ask(request, decision.question, title=decision.title)
        else:
            outcome = await self._transcript.call(
                "tool", request, request, work, effectful=decision.effectful, title=decision.title
            )
        # A read leaves the tree of the last effect.
        self._tree = outcome.tree or self._tree
        try:
            return replace(read_result(outcome.value), tree=self._tree)
        except ValueError as error:
            raise StoreError(f"A recorded tool result is invalid: {error}.") from None

    async def _take_snapshot(self) -> str:
        if self._snapshot is None:
            return ""
        # A full disk pauses the run; another error of the disk is a bug.
        try:
            return await self._snapshot()
        except OSError as error:
            pause_if_full(error)
            raise


def _shorten(text: str) -> str:
    if len(text) <= MAX_RECORDED_CHARS:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{text[:1000]}… [{len(text)} characters, sha256 {digest}]"


def read_result(value: Mapping[str, object]) -> ToolResult:
    """Return a recorded result without its tree; `ValueError` names an invalid member."""
    text, code = value.get("text"), value.get("exit_code")
    is_error, denied = value.get("is_error"), value.get("denied")
    if not isinstance(text, str):
        raise ValueError("text: not a text")  # noqa: TRY004  one error for every bad record
    if not (code is None or type(code) is int):
        raise ValueError("exit_code: not a whole number")
    if not isinstance(is_error, bool):
        raise ValueError("is_error: not true or false")  # noqa: TRY004
    if not isinstance(denied, bool):
        raise ValueError("denied: not true or false")  # noqa: TRY004
    return ToolResult(text=text, is_error=is_error, exit_code=code, denied=denied)
