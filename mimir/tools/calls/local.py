"""Tools that run in this process: a description and a function each, behind the `Toolset` protocol."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec
from mimir.errors import ToolError
from mimir.tools.calls.arguments import Arguments, read
from mimir.tools.calls.failing import failure
from mimir.tools.calls.wording import nearest, quoted

Handler = Callable[[Arguments, CallContext], Awaitable[ToolResult]]
"""Does the work; raises `ToolError` for what the model can mend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool: what the model is told, and what is done."""

    spec: ToolSpec
    handler: Handler


class LocalTools:
    """A `Toolset` of functions."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """What the model is told, in the order of construction."""
        return tuple(tool.spec for tool in self._tools.values())

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        """Read the arguments and run the function; a `ToolError` becomes a result."""
        try:
            tool = self._tools.get(call.name)
            if tool is None:
                raise ToolError(
                    f"There is no tool {quoted(call.name)}.{nearest(call.name, self._tools)}"
                )
            return await tool.handler(read(call.arguments, tool.spec), context)
        except ToolError as error:
            return failure(error)


def described(
    name: str,
    description: str,
    properties: Mapping[str, Mapping[str, object]],
    *,
    required: Sequence[str] = (),
    read_only: bool = True,
    destructive: bool = False,
) -> ToolSpec:
    """Describe a tool whose arguments are `properties` and nothing else."""
    schema: Mapping[str, object] = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolSpec(
        name=name,
        description=description,
        input_schema=schema,
        read_only=read_only,
        destructive=destructive,
    )
