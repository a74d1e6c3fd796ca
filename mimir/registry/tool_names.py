"""Tool names of other programs, mapped to tools of mimir, and the granted tools. Pure."""

import re
from collections.abc import Mapping, Sequence

from mimir.domain.agent import (
    DEFAULT_TOOLS,
    MEMORY_TOOLS,
    NAMED_TOOLS,
    SPAWN_TOOL,
    WRITE_TOOLS,
)
from mimir.domain.agent_definition import AgentDefinition, ToolRequest
from mimir.domain.value_class import value_class

EDIT_TOOLS = ("edit_file", "write_file", "delete_file")

_FIND = ("grep", "list_files")
_WEB = ("web.fetch", "web.search")
_SPAWN = (SPAWN_TOOL,)
_NAMES: Mapping[tuple[str, ...], str] = {
    ("read_file",): "read readfile read/readfile view search/readfile readmanyfiles",
    ("list_files",): "glob ls list listdir listdirectory search/filesearch filesearch search/listdirectory globsearch findfiles",
    _FIND: "grep search codebase search/codebase usages search/usages textsearch search/textsearch search/searchresults searchresults grepsearch semanticsearch searchfiles searchfilecontent",
    ("write_file",): "write createfile edit/createfile writefile create edit/createdirectory writetofile",
    EDIT_TOOLS: "edit multiedit edit/editfiles editfiles applypatch patch",
    ("run",): "bash shell execute runcommands execute/runinterminal runinterminal runtests execute/runtests run terminal terminalcommand runtasks execute/runtask execute/createandruntask runshellcommand executecommand runcommand",
    MEMORY_TOOLS: "memory vscode/memory",
    _SPAWN: "spawnagent task agent agents runsubagent agent/runsubagent",
    _WEB: "web fetch web/fetch webfetch websearch web/search googlewebsearch",
    DEFAULT_TOOLS: "* all",
}  # fmt: skip
_ALIASES: Mapping[str, tuple[str, ...]] = {
    **{tool.replace("_", ""): (tool,) for tool in NAMED_TOOLS},
    **{name: tools for tools, names in _NAMES.items() for name in names.split()},
}
_EVERYTHING = ("*", "all")
_PATTERN = re.compile(r"\([^()]*\)\s*\Z")


@value_class
class ToolGrant:
    """The tools of a definition, after all restrictions."""

    granted: tuple[str, ...] = ()
    """Names of mimir, sorted."""
    unmapped: tuple[str, ...] = ()
    """Requested names that mimir does not know."""
    withheld: Mapping[str, str]
    """Tool → why it is not granted although it was requested."""


def map_tool(name: str) -> tuple[str, ...]:
    """Return the tools that a requested name means; empty: none."""
    plain = strip_pattern(name).casefold().replace("_", "")
    if plain.startswith("memory") and plain not in _ALIASES:
        return MEMORY_TOOLS
    return _ALIASES.get(plain, ())


def strip_pattern(name: str) -> str:
    """Return a tool name without the pattern in brackets after it."""
    return _PATTERN.sub("", name.strip()).strip()


def grant_tools(definition: AgentDefinition, default: Sequence[str] = DEFAULT_TOOLS) -> ToolGrant:
    """Return the tools that a definition may use: never more than its file requests.

    Args:
        definition: A definition with errors gets no tool; a program brings its own.
        default: Tools of a definition that names none, and the most of one that is not trusted.
    """
    if definition.kind == "cli":
        return ToolGrant(withheld={})
    request = definition.tools
    wanted = _wanted_tools(request, default)
    # Without the key no agent spawns: many public files name a tool for it.
    wanted |= {SPAWN_TOOL} if definition.may_spawn and definition.kind == "sdk" else set()
    unmapped = tuple(name for name in request.requested if not map_tool(name))
    withheld: dict[str, str] = {}
    for tool in sorted(wanted):
        reason = _withholding_reason(tool, definition, default)
        if reason:
            withheld[tool] = reason
    granted = tuple(sorted(wanted - withheld.keys()))
    return ToolGrant(granted=granted, unmapped=unmapped, withheld=withheld)


def _wanted_tools(request: ToolRequest, default: Sequence[str]) -> set[str]:
    if request.is_default:
        return set(default)
    return {
        tool
        for name in request.requested
        for tool in (default if strip_pattern(name) in _EVERYTHING else map_tool(name))
    }


def _withholding_reason(tool: str, definition: AgentDefinition, default: Sequence[str]) -> str:
    if definition.has_errors:
        return "the file has errors"
    request = definition.tools
    # A denial of everything beside named tools leaves the named ones.
    denied = [name for name in request.denied if request.is_default or name not in _EVERYTHING]
    if "*" in denied or any(tool in map_tool(name) for name in denied):
        return "the file denies it"
    if request.is_read_only and tool in (*WRITE_TOOLS, "run"):
        return "the file asks for planning only"
    if definition.memory == "none" and tool in MEMORY_TOOLS:
        return "the file sets memory: none"
    if tool == SPAWN_TOOL and not definition.may_spawn:
        return "the file does not set may_spawn: true"
    if tool not in (*NAMED_TOOLS, SPAWN_TOOL):
        return "this version has no such tool"
    if not definition.source.is_trusted and tool not in default:
        return "the file is not trusted"
    return ""
