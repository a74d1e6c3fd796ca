"""Call outcomes, and the transcript that records and serves them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from mimir.domain.usage import TokenUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """The result of one model or tool call, as the transcript stores it."""

    value: Mapping[str, object]
    """JSON values; written and read by the wrapper that made them."""
    tree: str = ""
    """Workspace tree after the call; empty if nothing can have changed."""
    usage: TokenUsage | None = None
    """Of a model call. None: unknown, so the reservation is charged."""


class Transcript(Protocol):
    """The ordered model and tool calls of one agent in one attempt."""

    async def call(
        self,
        kind: Literal["model", "tool"],
        request: Mapping[str, object],
        delta: Mapping[str, object],
        work: Callable[[], Awaitable[CallOutcome]],
        /,
        *,
        effectful: bool,
        reserve: int = 0,
        of_answer: int = 0,
        title: str = "",
    ) -> CallOutcome:
        """Return the recorded outcome, or record an intent, do `work` and record its outcome.

        The place in the transcript is taken before the first wait, so calls keep the order in which they were started. An exception
        of `work` passes through and leaves the open intent.

        Args:
            kind: What is called.
            request: Decides the outcome, given all earlier calls; hashed.
            delta: The part of the request that is stored.
            work: Makes the call; awaited at most once.
            effectful: True: the call may change something, so an intent is written first.
            reserve: Most tokens of the call; charged to the run's budget until the outcome is known.
            of_answer: The part of `reserve` for the answer, which has its own price.
            title: A few words for display, without secrets.
        """
        ...
