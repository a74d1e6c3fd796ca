"""The recorded result of one call of a transcript. Pure."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, Protocol

from mimir.domain.message import ToolResult
from mimir.domain.question import NewQuestion, QuestionClosing, answer_text
from mimir.domain.usage import TokenUsage
from mimir.domain.value_class import value_class


@value_class
class CallOutcome:
    """Result of one model or tool call, as the transcript stores it for replay."""

    value: Mapping[str, object]
    """JSON values; written and read by the wrapper that recorded the call."""
    tree: str = ""
    """Workspace tree after the call; empty if nothing can have changed."""
    usage: TokenUsage | None = None
    """Of a model or program. None: unknown, charged at the reservation."""


def encode_result(result: ToolResult) -> Mapping[str, object]:
    """Return the recorded value of a tool result; its tree is recorded with the outcome."""
    return {
        "text": result.text,
        "is_error": result.is_error,
        "exit_code": result.exit_code,
        "denied": result.denied,
    }


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


def outcome_of_closing(closing: QuestionClosing) -> CallOutcome:
    """Return the outcome of the call that asked a question; `answer` has the typed values."""
    result = encode_result(ToolResult(text=answer_text(closing)))
    return CallOutcome(value={**result, "answer": closing.values})


class Transcript(Protocol):
    """Ordered calls of one agent in one attempt, each replayed or made and recorded."""

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
        """Answer from the record, or do `work` and record it.

        Args:
            kind: Kind of the call.
            request: All that decides the outcome, given the calls before; hashed.
            delta: Part of the request that is stored.
            work: Makes the call; awaited at most once.
            effectful: True: the call may change something, so its intent is committed first.
            reserve: Most tokens that a model or program may use; charged until its outcome is known.
            of_answer: Part of `reserve` for the answer, which has its own price.
            title: Shown to users; for a model call, the name of the model.
        """
        ...

    async def ask(
        self, request: Mapping[str, object], question: NewQuestion, /, *, title: str = ""
    ) -> CallOutcome:
        """Return the recorded outcome of a tool call that asks the user, or ask.

        Raises:
            Waiting: It was asked; the task waits for its answer.
        """
        ...
