"""Look-up of an agent's citations: tool log, delivered tree, given memories."""

from collections.abc import Mapping

from mimir.agents.citations import (
    MAX_CITATIONS,
    find_unquoted_calls,
    find_unsupported,
    find_unsupported_sources,
    parse_sources,
)
from mimir.agents.tool_log import ToolLogEntry
from mimir.attempts.services import AttemptServices
from mimir.domain.agent import MEMORY_TOOLS

FILE_BYTES = 2_000_000
"""Of a cited file that is searched."""


async def look_up_citations(
    services: AttemptServices, words: str, tree: str, log: Mapping[int, ToolLogEntry]
) -> tuple[str, ...]:
    """Return the citations of an agent's answer that do not hold, each with the reason."""
    # A name with control characters is no path, and git would not take it.
    paths = {
        one.name
        for one in parse_sources(words)[:MAX_CITATIONS]
        if one.kind == "file" and one.name.isprintable()
    }
    files = {path: await _read_text(services, tree, path) for path in sorted(paths)}
    # Only tools of the memory show memories: a file could hold any id.
    memories = [one.text for one in log.values() if one.tool in MEMORY_TOOLS]
    material = services.agent.material if services.agent else None
    memories += [hit.id for hit in material.memory] if material else []
    return (
        *find_unsupported(words, {number: one.text for number, one in log.items()}),
        *find_unquoted_calls(words),
        *find_unsupported_sources(words, files, "\n".join(memories)),
    )


async def _read_text(services: AttemptServices, tree: str, path: str) -> str | None:
    content = await services.history.file(tree, path)
    if content is None or len(content) > FILE_BYTES:
        return None
    # The agent saw the text with secrets replaced.
    return services.redact(content.decode("utf-8", "replace"))
