"""Roles of agents, and the limits and tools of each. Pure."""

from mimir.domain.value_class import value_class


@value_class
class RoleLimits:
    """Token limits and tools of one role."""

    answer_tokens: int
    working_tokens: int
    """Limit of a reply that may call tools."""
    tools: tuple[str, ...]
    """Names that the role grants; plan and policy may only remove some."""


READ_TOOLS = ("read_file", "list_files", "grep")
WRITE_TOOLS = ("write_file", "edit_file", "delete_file")
MEMORY_TOOLS = (
    "memory_search_nodes",
    "memory_query_nodes",
    "memory_get_node",
    "memory_get_neighbors",
    "memory_get_subgraph",
)
SKILL_TOOL = "read_skill"
"""Of an invoked agent that has skills."""
DEFAULT_TOOLS = (*READ_TOOLS, "read_artifact", *MEMORY_TOOLS)
"""Of an agent definition that names no tools; it includes no writing and no commands."""
ALL_TOOLS = (*READ_TOOLS, *WRITE_TOOLS, "run", "read_artifact", *MEMORY_TOOLS)
ASK_TOOL = "ask_user"
"""Only of an agent whose task or definition names it, as its run may wait for the user."""
NOTE_TOOL = "note_assumption"
"""Of an agent that may ask: it can assume instead."""
SPAWN_TOOL = "spawn_agent"
"""Only of an agent whose trusted definition has `may_spawn`."""
NAMED_TOOLS = (*ALL_TOOLS, ASK_TOOL, NOTE_TOOL)
"""Tools that a plan or a definition can name."""


# QC gets 150 answer tokens more for each criterion.
ROLES: dict[str, RoleLimits] = {
    "ecko": RoleLimits(answer_tokens=4000, working_tokens=4000, tools=()),
    "pm": RoleLimits(
        answer_tokens=16_000, working_tokens=16_000, tools=(*READ_TOOLS, "probe", *MEMORY_TOOLS)
    ),
    "agentinator": RoleLimits(answer_tokens=8000, working_tokens=8000, tools=()),
    "worker": RoleLimits(answer_tokens=4000, working_tokens=16_000, tools=ALL_TOOLS),
    "qc": RoleLimits(
        answer_tokens=4000, working_tokens=4000, tools=(*READ_TOOLS, "run", "read_artifact")
    ),
    "qc_reporter": RoleLimits(answer_tokens=2000, working_tokens=2000, tools=()),
    "pm_reporter": RoleLimits(answer_tokens=3000, working_tokens=3000, tools=()),
}


def name_model(endpoint: str, own: str, common: str) -> str:
    """Return the full name of a role's model.

    Args:
        endpoint: Of the role; empty: none is named.
        own: Model of the role; empty: the common one.
        common: Model of all roles; empty: the endpoint's default.
    """
    name = own or common
    return f"{endpoint}/{name}" if endpoint else name


def grant_notes(named: tuple[str, ...]) -> tuple[str, ...]:
    """Return the named tools, with `note_assumption` for an agent that may ask."""
    return (*named, NOTE_TOOL) if ASK_TOOL in named and NOTE_TOOL not in named else named
