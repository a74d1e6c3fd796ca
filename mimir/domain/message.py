"""Messages, tool calls and requests between an agent, a model and its tools. Pure."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from mimir.domain.json_value import OMIT_EMPTY
from mimir.domain.usage import TokenUsage
from mimir.domain.value_class import value_class

Finish = Literal["stop", "tool_calls", "length", "content_filter"]
ToolChoice = Literal["auto", "none"]


@value_class
class ToolCall:
    """One tool call as the model wrote it; untrusted."""

    id: str
    name: str
    arguments: str
    """Raw text; the gateway parses it strictly."""
    opaque: str = field(default="", metadata=OMIT_EMPTY)
    """JSON object of the members that mimir does not know; sent back. Empty: none."""


@value_class
class Message:
    """One entry of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    """Assistant only."""
    call_id: str = ""
    """Tool only: the call that it answers."""
    tool: str = ""
    ran: bool = True
    """Tool only. False: the call did not run and is not counted."""
    tree: str = ""
    """Tool only: workspace tree after the call, or empty. Never sent to a model."""
    closing: bool = False
    """True from the request for a closing answer on; never counted."""
    opaque: str = field(default="", metadata=OMIT_EMPTY)
    """Assistant only: as `ToolCall.opaque`; `content` in it is the whole content."""


@value_class
class ToolSpec:
    """Description of a tool for a model, as in MCP."""

    name: str
    description: str
    input_schema: Mapping[str, object]
    """JSON Schema of an object."""
    read_only: bool = True


@value_class
class ToolResult:
    """Result of a tool call; errors are text that a model can act on."""

    text: str
    is_error: bool = False
    exit_code: int | None = None
    """Of a command. None: another tool, or killed."""
    denied: bool = False
    """True: refused by a right or a quota; nothing ran."""
    tree: str = ""
    """Workspace tree after the call; set by the journaled tools."""


@value_class
class CallContext:
    """Identity of a caller; made by the engine, never from a model's arguments."""

    project: str
    run: str
    task: str
    attempt: int
    role: str
    depth: int = 0


@value_class
class ModelRequest:
    """One request to a model: exactly the input that decides the answer."""

    messages: tuple[Message, ...]
    """Oldest first; [0] is the system message."""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    """"none": the tools are listed, but not to be called."""
    model: str = ""
    """Name for the endpoint; empty: its default."""
    max_tokens: int = 4000
    temperature: float | None = 0.0
    """None: not sent."""
    schema: Mapping[str, object] | None = None
    """JSON Schema of the answer, if the provider supports it. None: free text."""
    schema_name: str = ""


@value_class
class Answer:
    """One reply of a model."""

    message: Message
    finish: Finish = "stop"
    usage: TokenUsage | None = None
    """None: unknown; charged at its estimate."""
    model: str = ""
    """As the provider named it."""
    cached_tokens: int = 0
    """Input tokens of `usage` that the provider took from its cache."""
