"""Roles, and what each may use: one table."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleLimits:
    """What one role may say and do."""

    answer_tokens: int
    """Bound of a closing answer."""
    working_tokens: int
    """Bound of a turn that may call tools."""
    tools: tuple[str, ...]
    """Names that the role grants; the plan and the policy may only take away."""


READ_TOOLS = ("read_file", "list_files", "grep")
WRITE_TOOLS = ("write_file", "edit_file", "delete_file")
MEMORY_TOOLS = (
    "memory_search_nodes",
    "memory_query_nodes",
    "memory_get_node",
    "memory_get_neighbors",
    "memory_get_subgraph",
)
ALL_TOOLS = (*READ_TOOLS, *WRITE_TOOLS, "run", "read_artifact", *MEMORY_TOOLS)

ROLES: dict[str, RoleLimits] = {
    "ecko": RoleLimits(answer_tokens=4000, working_tokens=4000, tools=()),
    "pm": RoleLimits(
        answer_tokens=16_000, working_tokens=16_000, tools=(*READ_TOOLS, *MEMORY_TOOLS)
    ),
    "agentinator": RoleLimits(answer_tokens=8000, working_tokens=8000, tools=()),
    "worker": RoleLimits(answer_tokens=4000, working_tokens=16_000, tools=ALL_TOOLS),
    "qc": RoleLimits(
        answer_tokens=1000, working_tokens=1000, tools=(*READ_TOOLS, "run", "read_artifact")
    ),
    "qc_reporter": RoleLimits(answer_tokens=2000, working_tokens=2000, tools=()),
    "pm_reporter": RoleLimits(answer_tokens=3000, working_tokens=3000, tools=()),
}
"""QC's answer gets 150 tokens a criterion on top."""
