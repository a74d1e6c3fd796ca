"""Tools that read: `status`, `report`, `memory_search` and `inbox`."""

import re
from functools import partial

from mimir.bootstrap.clock import SystemClock
from mimir.bootstrap.stored_project import ProjectPlace, StoredProject
from mimir.errors import ToolError
from mimir.mcp_server.tools.run_reading import (
    find_visible_run,
    load_status,
    read_visible_inbox,
)
from mimir.mcp_server.tools.run_results import is_working, limit_tasks, next_call
from mimir.mcp_server.tools.tool_values import IncomingCall, ToolAnswer
from mimir.store.protocol import ReadOps
from mimir.store.schema import NodeLabel

PAGE_CHARS = 20_000
"""Most characters of a report in one answer."""
DEFAULT_LIMIT = 10
POLL_SECONDS = 0.5


async def status(call: IncomingCall) -> ToolAnswer:
    """Return the state of a run; with `wait_seconds`, when no process works on it any more."""
    given = call.arguments
    load = partial(load_status, call.project, call.principal, given.text("run") or None)
    found, wait = await load(), call.limit_wait(0)
    while is_working(found, SystemClock().now(), is_followed=False) and await wait.rest(
        POLL_SECONDS
    ):
        found = await load()
    limited = limit_tasks(found)
    return ToolAnswer(content={**limited, "next": next_call(found, str(found.get("status")))})


async def report(call: IncomingCall) -> ToolAnswer:
    """Return a page of a report, or of one of its sections."""
    given = call.arguments

    async def load(opened: StoredProject) -> tuple[str, str]:
        named = given.text("run") or None
        find = partial(find_visible_run, place=opened, principal=call.principal, run=named)
        run = await opened.store.read(find)
        return run, await opened.report_files().read(run)

    run, text = await call.project.use_store(load)
    text = _find_section(text, given.text("section"))
    offset = given.number("offset", 0)
    page = text[offset : offset + PAGE_CHARS]
    end = offset + len(page)
    content: dict[str, object] = {"run": run, "text": page, "characters": len(text)}
    if end < len(text):
        content["next"] = f"Call report with offset {end}."
    return ToolAnswer(content=content)


async def memory_search(call: IncomingCall) -> ToolAnswer:
    """Return nodes of the memory whose text matches, best first."""
    given, days = call.arguments, call.project.load().settings.memory.days

    def look(reads: ReadOps, place: ProjectPlace) -> list[object]:
        # Imported here: the first answer of the server needs none of it.
        from mimir.orchestrator.proposals.decisions import find_expired
        from mimir.store.operations import memory

        # A server may run for longer than no process opens the project.
        expired = find_expired(reads, place.id, days)
        scope = memory.MemoryScope(project=place.id, expired=frozenset(expired))
        limit = given.number("limit", DEFAULT_LIMIT)
        # Runs and tasks of other principals are nodes of the memory too.
        labels = (NodeLabel.MEMORY,) if call.principal.is_token else given.texts("labels")
        return [*memory.search_nodes(reads, scope, given.text("text"), labels, limit)]

    return ToolAnswer(content={"memories": await call.project.read(look)})


async def inbox(call: IncomingCall) -> ToolAnswer:
    """Return the open questions of the project."""
    every = call.arguments.values.get("all") is True
    found = await call.project.read(
        lambda reads, place: read_visible_inbox(reads, place, call.principal, every=every)
    )
    return ToolAnswer(content=found)


def _find_section(text: str, name: str) -> str:
    """Return the part of a report below a heading; an empty name means all.

    Raises:
        ToolError: There is no such heading; the next step names them.
    """
    if not name:
        return text
    found = [(len(m[1]), m[2].strip(), m.start()) for m in re.finditer(r"(?m)^(#+) (.+)$", text)]
    wanted = name.casefold()
    for place, (level, title, start) in enumerate(found):
        if title.casefold().startswith(wanted):
            ends = [at for depth, _, at in found[place + 1 :] if depth <= level]
            return text[start : ends[0] if ends else len(text)]
    titles = ", ".join(title for level, title, _ in found if level <= 2)
    raise ToolError(f"The report has no section {name[:80]!r}.", next_step=f"Sections: {titles}")
