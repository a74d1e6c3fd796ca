"""All tool sets by name, in the order of their tools."""

from collections.abc import Mapping

from mimir.mcp_server.tools.sets.aliases import ALIASES
from mimir.mcp_server.tools.sets.core import CORE
from mimir.mcp_server.tools.sets.delegation import DELEGATION
from mimir.mcp_server.tools.sets.todo import TODOS
from mimir.mcp_server.tools.tool_values import ServedTool

TOOL_SETS: Mapping[str, tuple[ServedTool, ...]] = {
    "core": CORE,
    "delegation": DELEGATION,
    "todo": TODOS,
    "aliases": ALIASES,
}
"""Only `core` and `delegation` are listed without being named."""
