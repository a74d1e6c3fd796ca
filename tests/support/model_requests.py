"""Requests of model tests, and their waits: nothing really sleeps."""

from mimir.domain.message import Answer, Message, ModelRequest, ToolCall, ToolSpec
from mimir.errors import ModelError
from tests.support.clock import FrozenClock

READ_FILE = ToolSpec(
    name="read_file",
    description="Read a file.",
    input_schema={
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    },
)


def question(
    *more: Message, text: str = "Task: task-1\nAttempt 1 of 3", **settings: object
) -> ModelRequest:
    """Return a request with a system message, a brief, and further messages."""
    brief = (Message(role="system", text="You work."), Message(role="user", text=text))
    return ModelRequest(messages=(*brief, *more), **settings)  # type: ignore[arg-type]


def assistant_message(text: str, *calls: ToolCall) -> Message:
    """Return an answer of the model in the form of a later request."""
    return Message(role="assistant", text=text, calls=calls)


def result(call: ToolCall, text: str) -> Message:
    """Return a tool's result."""
    return Message(role="tool", text=text, call_id=call.id, tool=call.name)


class Sleeper:
    """Sleeps by advancing a frozen clock, and remembers for how long it was asked to."""

    def __init__(self, clock: FrozenClock) -> None:
        self.slept: list[float] = []
        self._clock = clock

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._clock.advance(seconds)


class Middle:
    """A source of chance that always returns one half: no jitter up or down."""

    def __call__(self) -> float:
        return 0.5


class Troubled:
    """A model that raises the scripted errors, then answers."""

    def __init__(self, *troubles: Exception, answer: str = "done") -> None:
        self.asked: list[ModelRequest] = []
        self._troubles = list(troubles)
        self._answer = Answer(message=assistant_message(answer))

    async def ask(self, request: ModelRequest) -> Answer:
        self.asked.append(request)
        if self._troubles:
            raise self._troubles.pop(0)
        return self._answer


def trouble(scope: str = "call", wait: float | None = None) -> ModelError:
    """Return an error of a model."""
    return ModelError(
        "The model endpoint http://model/v1: is not available (503).",
        scope=scope,
        retry_after_seconds=wait,
    )
