"""Look-up of an agent's citations: tool log, delivered tree, given memories."""

from collections.abc import Awaitable, Callable, Mapping

from mimir.agents.citations import (
    MAX_CITATIONS,
    find_unquoted_calls,
    find_unsupported,
    find_unsupported_sources,
    parse_sources,
)
from mimir.agents.tool_log import ToolLogEntry
from mimir.domain.agent import MEMORY_TOOLS
from mimir.domain.invocation import PinnedMaterial

ReadFile = Callable[[str, str], Awaitable[bytes | None]]
"""Tree and path → content; None: there is no file."""
FILE_BYTES = 2_000_000
"""Of a cited file that is searched."""


async def look_up_citations(
    words: str,
    tree: str,
    log: Mapping[int, ToolLogEntry],
    *,
    read_file: ReadFile,
    redact: Callable[[str], str],
    material: PinnedMaterial | None,
) -> tuple[str, ...]:
    """Return the citations of an agent's answer that do not hold, each with the reason.

    Args:
        words: Of the answer; untrusted.
        tree: The delivered tree.
        log: Tool log of the agent.
        read_file: Reads a file of a tree.
        redact: Replaces secrets, as in the texts that the agent saw.
        material: That the agent was shown. None: none.
    """
    # A name with control characters is no path, and git would not take it.
    paths = {
        one.name
        for one in parse_sources(words)[:MAX_CITATIONS]
        if one.kind == "file" and one.name.isprintable()
    }
    files: dict[str, str | None] = {}
    for path in sorted(paths):
        content = await read_file(tree, path)
        is_readable = content is not None and len(content) <= FILE_BYTES
        files[path] = redact((content or b"").decode("utf-8", "replace")) if is_readable else None
    # Only tools of the memory show memories: a file could hold any id.
    memories = [one.text for one in log.values() if one.tool in MEMORY_TOOLS]
    memories += [hit.id for hit in material.memory] if material else []
    return (
        *find_unsupported(words, log),
        *find_unquoted_calls(words),
        *find_unsupported_sources(words, files, "\n".join(memories)),
    )
