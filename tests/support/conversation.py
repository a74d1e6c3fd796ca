"""A scripted model and a scripted toolset, for tests of conversations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mimir.domain.message import (
    Answer,
    CallContext,
    Finish,
    Message,
    ModelRequest,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from mimir.domain.usage import TokenUsage

CONTEXT = CallContext(project="p", run="r", task="task-1", attempt=1, role="worker")
BRIEF = (Message(role="system", text="You work."), Message(role="user", text="Task: task-1"))


def call(name: str = "run", arguments: str = "{}", id: str = "c") -> ToolCall:
    """Return a wish of a model."""
    return ToolCall(id=id, name=name, arguments=arguments)


def reply(
    text: str = "",
    *calls: ToolCall,
    finish: Finish = "stop",
    usage: TokenUsage | None = None,
) -> Answer:
    """Return a reply of a model."""
    return Answer(
        message=Message(role="assistant", text=text, calls=calls), finish=finish, usage=usage
    )


@dataclass
class FakeModel:
    """Answers from a list, or from a function of the request; keeps its requests."""

    script: Sequence[Answer | Exception] | Callable[[ModelRequest], Answer]
    asked: list[ModelRequest] = field(default_factory=list[ModelRequest])

    async def ask(self, request: ModelRequest) -> Answer:
        self.asked.append(request)
        if callable(self.script):
            return self.script(request)
        answer = self.script[len(self.asked) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer


@dataclass
class FakeTools:
    """Counts its calls; each result names its call, or comes from `result`."""

    result: Callable[[ToolCall, int], ToolResult] = lambda _call, n: ToolResult(text=f"result {n}")
    specs: Sequence[ToolSpec] = (
        ToolSpec(name="run", description="Run.", input_schema={}, read_only=False),
        ToolSpec(name="read_file", description="Read.", input_schema={}),
    )
    ran: list[ToolCall] = field(default_factory=list[ToolCall])

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        assert context is CONTEXT
        self.ran.append(call)
        return self.result(call, len(self.ran))
