"""Tools of the set `aliases`: other names of the use cases of `delegation`."""

from collections.abc import Mapping
from dataclasses import replace

from mimir.mcp_server.tools.delegating import spawn_agent
from mimir.mcp_server.tools.tool_values import IncomingCall, ToolAnswer
from mimir.tools.calls.arguments import ToolArguments


async def invoke_agent(call: IncomingCall) -> ToolAnswer:
    """Invoke an agent as `spawn_agent` does."""
    given = call.arguments
    names = {"agent": "chatmode", "prompt": "task", "mode": "mode", "model_override": "model"}
    return await _spawn(call, {names[name]: value for name, value in given.values.items()})


async def skill_agent(call: IncomingCall) -> ToolAnswer:
    """Invoke an agent of a skill as `spawn_agent` does."""
    given = call.arguments
    is_detached = given.values.get("run_in_background") is True
    address = f"{given.text('skill_name')}/{given.text('agent_name')}"
    return await _spawn(
        call,
        {
            "chatmode": address,
            "task": given.text("prompt"),
            "mode": "ping" if is_detached else "foreground",
        },
    )


async def _spawn(call: IncomingCall, given: Mapping[str, object]) -> ToolAnswer:
    return await spawn_agent(replace(call, arguments=ToolArguments(given)))
