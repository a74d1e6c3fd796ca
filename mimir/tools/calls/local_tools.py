"""Tools of this process: a description and a method each, as a `Toolset`."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence

from mimir.domain.message import CallContext, ToolCall, ToolResult, ToolSpec
from mimir.domain.quoted_text import nearest, quote_text
from mimir.errors import ToolError
from mimir.tools.calls.arguments import ToolArguments, parse_arguments
from mimir.tools.calls.failures import failure

Handler = Callable[[ToolArguments], Awaitable[ToolResult]]
"""Executes a call; raises `ToolError` for a mistake that the model can correct."""


class LocalTools(ABC):
    """A `Toolset` of methods."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._specs = tuple(specs)

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """The descriptions for the model, in the order of construction."""
        return self._specs

    @abstractmethod
    def _handlers(self) -> Sequence[Handler]:
        """Return the method of each description, in the same order."""
        # A method, not an attribute: an object that holds its own methods is a reference cycle.

    async def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        """Parse the arguments and run the method; a `ToolError` becomes a result."""
        try:
            for spec, handler in zip(self._specs, self._handlers(), strict=True):
                if spec.name == call.name:
                    return await handler(parse_arguments(call.arguments, spec))
            known = [spec.name for spec in self._specs]
            raise ToolError(f"There is no tool {quote_text(call.name)}.{nearest(call.name, known)}")
        except ToolError as error:
            return failure(error)


def describe_tool(
    name: str,
    description: str,
    properties: Mapping[str, Mapping[str, object]],
    *,
    required: Sequence[str] = (),
    read_only: bool = True,
) -> ToolSpec:
    """Return the description of a tool that takes these properties and no others."""
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
    )


def string(description: str) -> Mapping[str, object]:
    """Return the schema of a string."""
    return {"type": "string", "description": description}


def whole_number(least: int, most: int, description: str) -> Mapping[str, object]:
    """Return the schema of a whole number within limits."""
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}
