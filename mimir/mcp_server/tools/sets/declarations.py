"""Declarations of tools: kinds of tools, and parts of their schemas, which mimir checks."""

from importlib import import_module

from mimir.domain.json_value import JsonObject
from mimir.mcp_server.tools.tool_values import Handle, IncomingCall, Scope, ServedTool, ToolAnswer

READ: frozenset[Scope] = frozenset({"read"})
WORK: frozenset[Scope] = frozenset({"work"})
TEXTS: JsonObject = {"type": "array", "items": {"type": "string"}}
FLAG: JsonObject = {"type": "boolean"}
OPEN: JsonObject = {"type": "object", "additionalProperties": True}
MODE: JsonObject = {"type": "string", "enum": ["foreground", "ping", "trust"]}
"""Whether a call waits for the agent that it invokes."""


def read_tool(
    name: str, description: str, handle: Handle, arguments: JsonObject, results: JsonObject
) -> ServedTool:
    """Return a tool that changes nothing."""
    return ServedTool(
        name=name,
        description=description,
        scopes=READ,
        handle=handle,
        input_schema=arguments,
        output_schema=results,
    )


def work_tool(
    name: str,
    description: str,
    handle: Handle,
    arguments: JsonObject,
    results: JsonObject,
    *,
    scopes: frozenset[Scope] = WORK,
    is_idempotent: bool = True,
    is_destructive: bool = False,
    reaches_out: bool = False,
) -> ServedTool:
    """Return a tool that changes something; the flags are hints for the client."""
    return ServedTool(
        name=name,
        description=description,
        scopes=scopes,
        handle=handle,
        input_schema=arguments,
        output_schema=results,
        is_read_only=False,
        is_idempotent=is_idempotent,
        is_destructive=is_destructive,
        reaches_out=reaches_out,
    )


def import_later(module: str, name: str) -> Handle:
    """Return a handler of a module below `tools` that its first call imports."""

    async def handle(call: IncomingCall) -> ToolAnswer:
        # The list of tools needs none of it, and it takes a sixth of the start.
        found: Handle = getattr(import_module(f"mimir.mcp_server.tools.{module}"), name)
        return await found(call)

    return handle


def arguments_of(*required: str, **members: JsonObject) -> JsonObject:
    """Return the schema of arguments: an object with these members only."""
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": members, **needed, "additionalProperties": False}


def result_of(**kinds: str) -> JsonObject:
    """Return a schema of results, which may hold further members."""
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in kinds.items()}}


def text(description: str = "", most: int = 0, least: int = 0) -> JsonObject:
    """Return the schema of a text."""
    bounds = {"minLength": least} if least else {}
    bounds |= {"maxLength": most} if most else {}
    return {"type": "string", **({"description": description} if description else {}), **bounds}


def texts(description: str = "", most: int = 0) -> JsonObject:
    """Return the schema of a list of texts."""
    shown = {"description": description} if description else {}
    return {**TEXTS, **shown, **({"maxItems": most} if most else {})}


def whole(least: int = 1, most: int = 0) -> JsonObject:
    """Return the schema of a whole number."""
    return {"type": "integer", "minimum": least, **({"maximum": most} if most else {})}
