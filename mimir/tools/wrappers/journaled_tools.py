"""Tools that remember: every call, also a refused one, is in the lane; an effect leaves the workspace's tree behind.

On a replay the recorded result is served and nothing runs.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from mimir.domain.call_outcome import CallOutcome
from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec
from mimir.errors import StoreError
from mimir.tools.calls.failures import pause_if_full
from mimir.tools.calls.messages import storable

Snapshot = Callable[[], Awaitable[str]]
"""Returns the id of the workspace's tree as it is now."""

MAX_RECORDED_CHARS = 1_000_000
"""Longer arguments are recorded by their start, length and hash; they are refused anyway."""


class Journal(Protocol):
    """What this room wants of a lane; the store's has it."""

    async def call(
        self,
        kind: Literal["model", "tool"],
        request: Mapping[str, object],
        delta: Mapping[str, object],
        work: Callable[[], Awaitable[CallOutcome]],
        /,
        *,
        effectful: bool,
        title: str = "",
    ) -> CallOutcome:
        """Serve the recorded outcome, or record an intent, do `work` and record its outcome.

        The place in the lane is taken before the first wait, so calls started one after another stay in that order.
        An exception of `work` passes through and leaves the open intent.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GateDecision:
    """What is decided of a call before anything runs."""

    refusal: ToolResult | None = None
    """None: it may run."""
    effectful: bool = False
    """False for what only reads, and for whatever is refused."""
    title: str = ""
    """A few words for a person who watches; no secrets."""


class ToolDispatcher(Protocol):
    """Decides at once, runs later."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """What the model is told."""
        ...

    def admit(self, call: ToolCall, context: CallContext, /) -> GateDecision:
        """Decide; never waits."""
        ...

    async def run(self, call: ToolCall, context: CallContext, /) -> ToolResult:
        """Run an admitted call; its result holds no secret."""
        ...


class JournaledTools:
    """The outermost `Toolset` of an agent."""

    def __init__(
        self,
        door: ToolDispatcher,
        journal: Journal,
        snapshot: Snapshot | None,
        redact: Callable[[str], str],
        base_tree: str = "",
    ) -> None:
        self._door = door
        self._journal = journal
        self._snapshot = snapshot
        self._redact = redact
        self._tree = base_tree

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """What the model is told, in a fixed order."""
        return self._door.specs

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        """Run one call through the journal; nothing is awaited before its place in the lane is taken."""
        admission = self._door.admit(call, context)

        async def work() -> CallOutcome:
            result = admission.refusal or await self._door.run(call, context)
            tree = await self._tree_now() if admission.effectful else ""
            return CallOutcome(value=_written(result), tree=tree)

        request = {
            "tool": _bounded(self._redact(storable(call.name))),
            "arguments": _bounded(self._redact(storable(call.arguments))),
        }
        outcome = await self._journal.call(
            "tool", request, request, work, effectful=admission.effectful, title=admission.title
        )
        self._tree = outcome.tree or self._tree
        try:
            return replace(read_result(outcome.value), tree=self._tree)
        except ValueError as error:
            raise StoreError(f"A recorded tool result cannot be read: {error}.") from None

    async def _tree_now(self) -> str:
        if self._snapshot is None:
            return ""
        try:
            return await self._snapshot()
        except OSError as error:
            pause_if_full(error)
            raise


def _bounded(text: str) -> str:
    if len(text) <= MAX_RECORDED_CHARS:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{text[:1000]}… [{len(text)} characters, sha256 {digest}]"


def _written(result: ToolResult) -> Mapping[str, object]:
    return {
        "text": result.text,
        "is_error": result.is_error,
        "exit_code": result.exit_code,
        "denied": result.denied,
    }


def read_result(value: Mapping[str, object]) -> ToolResult:
    """Read a result as it is recorded, without its tree.

    Raises:
        ValueError: `value` is not of that form; the message says where.
    """
    text, code = value.get("text"), value.get("exit_code")
    if not isinstance(text, str):
        raise ValueError("text: not a text")  # noqa: TRY004  one error for every bad record
    if not (code is None or type(code) is int):
        raise ValueError("exit_code: not a whole number")
    return ToolResult(
        text=text,
        is_error=_flag(value, "is_error"),
        exit_code=code,
        denied=_flag(value, "denied"),
    )


def _flag(value: Mapping[str, object], name: str) -> bool:
    flag = value.get(name)
    if not isinstance(flag, bool):
        raise ValueError(f"{name}: not true or false")  # noqa: TRY004
    return flag
