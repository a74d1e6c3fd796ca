"""What travels between an agent, a model and its tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mimir.domain.usage import TokenUsage

Finish = Literal["stop", "tool_calls", "length", "content_filter"]
ToolChoice = Literal["auto", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One wish of the model, as it came: untrusted."""

    id: str
    name: str
    arguments: str
    """Raw text of the arguments, as the model wrote it; read strictly by the gateway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    """Assistant only."""
    call_id: str = ""
    """Tool only: the call that this answers."""
    tool: str = ""
    """Tool only: its name."""
    ran: bool = True
    """Tool only. False: "not run", counts neither as a call nor as a message."""
    tree: str = ""
    """Tool only: id of the workspace tree after the call; empty where there is no workspace. Never sent to a model."""
    closing: bool = False
    """True for the engine's request for a closing answer and all that follows it; never counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What a model is told of a tool; described as MCP does."""

    name: str
    description: str
    input_schema: Mapping[str, object]
    """JSON Schema of an object."""
    read_only: bool = True
    destructive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool said; errors are text that the model can act on."""

    text: str
    is_error: bool = False
    exit_code: int | None = None
    """Of a command; None for other tools, or when it was killed."""
    denied: bool = False
    """True: refused by a right or a quota; nothing was run."""
    tree: str = ""
    """Workspace tree after the call; filled in by the journal's wrapper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Who calls; made by the engine, never from a model's arguments."""

    project: str
    run: str
    task: str
    attempt: int
    role: str
    principal: str = "local"
    depth: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One question to a model: everything that decides the answer, nothing that does not."""

    messages: tuple[Message, ...]
    """Oldest first; [0] is the system message."""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    """"none": the tools are listed, no call is wanted."""
    model: str = ""
    """Name for the endpoint; empty: its default."""
    max_tokens: int = 4000
    temperature: float | None = 0.0
    """None: not sent."""
    schema: Mapping[str, object] | None = None
    """JSON Schema of the wanted answer, used where the provider can; None: free text."""
    schema_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One reply of a model."""

    message: Message
    """Role assistant."""
    finish: Finish = "stop"
    usage: TokenUsage | None = None
    """None: the provider did not say; charged at its estimate."""
    model: str = ""
    """As the provider named it."""
