"""The tool set `aliases`: names of other programs for tools of `core` and `delegation`."""

from mimir.mcp_server.tools import aliases, reading
from mimir.mcp_server.tools.sets.declarations import (
    FLAG,
    MODE,
    arguments_of,
    read_tool,
    result_of,
    text,
    whole,
    work_tool,
)
from mimir.mcp_server.tools.tool_values import ServedTool

_PROMPT = text("It must stand alone.", 20_000, 1)
_STARTED = result_of(run="string", status="string", next="string")
_SEARCH = arguments_of("text", text=text(most=1000, least=1), limit=whole(1, 50))
_FOUND = result_of(memories="array")

ALIASES: tuple[ServedTool, ...] = (
    work_tool(
        "invoke_agent",
        "As spawn_agent.",
        aliases.invoke_agent,
        arguments_of(
            "agent",
            "prompt",
            agent=text("Address of a definition.", 200, 1),
            prompt=_PROMPT,
            mode=MODE,
            model_override=text(most=200),
        ),
        _STARTED,
        is_idempotent=False,
        reaches_out=True,
    ),
    work_tool(
        "skill_agent",
        "As spawn_agent, for an agent of a skill.",
        aliases.skill_agent,
        arguments_of(
            "skill_name",
            "agent_name",
            "prompt",
            skill_name=text(most=100, least=1),
            agent_name=text(most=100, least=1),
            prompt=_PROMPT,
            run_in_background={**FLAG, "description": "Do not wait: mode ping."},
        ),
        _STARTED,
        is_idempotent=False,
        reaches_out=True,
    ),
    read_tool("ledger_get_learnings", "As memory_search.", reading.memory_search, _SEARCH, _FOUND),
    read_tool("memory-lane_find", "As memory_search.", reading.memory_search, _SEARCH, _FOUND),
)
"""In the order of the list."""
