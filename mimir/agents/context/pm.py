"""Context of the PM: request, repository, memory and lessons. Pure."""

from collections import Counter
from collections.abc import Sequence

from mimir.agents.context import deduplication, quotation
from mimir.agents.context.inputs import ContextBudgets, MemoryHit, PMInput
from mimir.agents.context.task_sections import file_piece
from mimir.agents.context.token_budget import ContextBuilder, ContextPart, ContextPiece
from mimir.domain.usage import estimate

# Paths that are listed; of a larger repository the folders are counted.
MOST_LISTED = 400
# Nodes of the memory that are shown.
MOST_HITS = 40
MEMORY = "## From the memory"
SANDBOX = "## The sandbox"


def write_pm_context(given: PMInput, budgets: ContextBudgets, sheet: ContextBuilder) -> None:
    """Write the PM's context."""
    sheet.add_text("task", "Task: plan\nAttempt 1 of 1")
    sheet.add_text(
        "request", f"## The request, word for word\n\n{quotation.fence_block(given.request)}"
    )
    if given.specification.strip():
        words = "Worked out from the request; where the two differ, the request decides."
        body = quotation.fence_block(given.specification)
        sheet.add_text("specification", f"## Specification\n\n{words}\n\n{body}")
    sheet.add(_repository(given, budgets.repository))
    if given.sandbox:
        facts = "\n".join(f"- {quotation.one_line(fact)}" for fact in given.sandbox)
        sheet.add_text("sandbox", f"{SANDBOX}\n\n{facts}")
    sheet.add(_memory(given.memory, budgets.memory))
    _lessons(given.lessons, sheet)


def _repository(given: PMInput, budget: int) -> ContextPart:
    listing = _file_list(given.repository, budget // 2)
    pieces = [
        ContextPiece(
            name="repository",
            title=f"Files ({len(given.repository)}):",
            content=listing,
            reference="list_files",
        )
    ]
    pieces += [file_piece(file, "optional") for file in given.files]
    # An empty heading would let the model guess that the list was cut.
    before = "" if given.repository else "The repository is empty."
    shown = pieces if given.repository else []
    return ContextPart(heading="## Repository", before=before, pieces=shown, budget=budget)


def _file_list(repository: Sequence[tuple[str, int]], tokens: int) -> str:
    """Return every path with its size; the folders of a large repository."""
    lines = [f"{quotation.path(name)} ({size})" for name, size in repository]
    whole = "\n".join(lines)
    if len(lines) <= MOST_LISTED and estimate(whole) <= tokens:
        return whole
    # The first two folders of each path; empty for a file at the top.
    folders = Counter("/".join(name.split("/")[:-1][:2]) for name, _ in repository)
    top = [f"{quotation.path(name)} ({size})" for name, size in repository if "/" not in name]
    counted = [
        f"{quotation.path(name)}/ ({count} files)"
        for name, count in sorted(folders.items())
        if name
    ]
    return "\n".join([*top[:MOST_LISTED], *counted[:MOST_LISTED]])


def _memory(hits: Sequence[MemoryHit], budget: int) -> ContextPart:
    first: dict[str, MemoryHit] = {}
    for hit in hits:
        first.setdefault(hit.id, hit)
    pieces = [
        ContextPiece(
            name=f"memory:{hit.id}",
            title=f"{quotation.one_line(hit.kind)} {quotation.path(hit.id)}: {quotation.one_line(hit.title)[:200]}",
            content=hit.text,
            reference=f"memory_get_node({quotation.quote_argument(hit.id)})",
            most=1_000,
        )
        for hit in list(first.values())[:MOST_HITS]
    ]
    further = len(first) - MOST_HITS
    before = f"{further} further nodes: memory_search_nodes finds them." if further > 0 else ""
    return ContextPart(heading=MEMORY, before=before, pieces=pieces, budget=budget)


def _lessons(lessons: Sequence[str], sheet: ContextBuilder) -> None:
    said, merged = deduplication.merge_messages(
        [("earlier runs", lesson) for lesson in lessons], "lesson"
    )
    pieces = [
        ContextPiece(
            name=f"lesson:{n}",
            content=f"- {lesson.line}",
            importance="critical",
            data=False,
        )
        for n, lesson in enumerate(said[-MOST_HITS:], start=1)
    ]
    heading = "## Lessons of earlier runs"
    # No budget: critical pieces are never cut.
    sheet.add(ContextPart(heading=heading, pieces=pieces, budget=0, merged=merged, between="\n"))
