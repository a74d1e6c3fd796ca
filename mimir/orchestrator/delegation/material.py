"""Material of an invocation: memory, instructions and files, pinned with its run."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from mimir.domain.invocation import LedgerExcerpt, MemoryHit, PinnedDefinition
from mimir.orchestrator.delegation.handoffs import find_handoff
from mimir.orchestrator.proposals.decisions import find_feedback
from mimir.orchestrator.services import ProjectServices
from mimir.registry.domain_terms import select_paths
from mimir.store.operations import memory

INSTRUCTIONS = "AGENTS.md"
MAX_BYTES = 200_000
"""Of `AGENTS.md`; a longer one is not shown."""
MAX_HITS = 10


async def find_memory(
    services: ProjectServices, text: str, *, before: str = ""
) -> tuple[MemoryHit, ...]:
    """Return hand-offs of the user, then notes on similar work and lessons in force.

    Args:
        services: Services of the project.
        text: The work.
        before: Time of the work, ISO-8601 UTC; hand-offs end at the last plan before it. Empty: now.
    """
    read = partial(find_handoff, project=services.project_id, before=before)
    handoff = [
        MemoryHit(id=one.id, kind=one.kind, title=one.name, text=one.text)
        for one in await services.store.read(read)
    ]
    scope = memory.MemoryScope(project=services.project_id)
    found = memory.ProjectMemory(services.store, scope)
    hits = [
        MemoryHit(
            id=str(node["id"]),
            kind=str(node.get("kind") or "note"),
            title=str(node.get("name") or ""),
            text=str(node.get("text") or ""),
        )
        for node in await found.search_notes(text, limit=MAX_HITS)
    ]
    # The hand-off comes first: the token limit may cut the last notes.
    return tuple({one.id: one for one in (*handoff, *hits)}.values())


async def pin_material(
    services: ProjectServices,
    definition: PinnedDefinition,
    tree: str,
    request: str,
    ledger: LedgerExcerpt | None,
) -> PinnedDefinition:
    """Return a definition with the project data that its invocation receives.

    Args:
        services: Services of the project.
        definition: With the domain terms of its material; without material it is returned as it is.
        tree: Base of the run.
        request: The task.
        ledger: Of the work that it belongs to; None: there is none.
    """
    material = definition.material
    if material is None:
        return definition
    history, redact = services.history, services.redact
    content = await history.file(tree, INSTRUCTIONS) or b""
    # The terms find notes of the field that the task does not name.
    words = " ".join((request, *material.terms))
    feedback = partial(
        find_feedback, project=services.project_id, agent=definition.address, task=request
    )
    hits = await find_memory(services, words) if material.reads_memory else ()
    return replace(
        definition,
        material=replace(
            material,
            memory=hits,
            files=select_paths(await history.paths(tree, None), material.terms),
            feedback=await services.store.read(feedback) if material.reads_memory else (),
            instructions=redact(content.decode("utf-8", "replace"))
            if len(content) <= MAX_BYTES
            else "",
            ledger=ledger and _redact_excerpt(ledger, redact),
        ),
    )


def _redact_excerpt(ledger: LedgerExcerpt, redact: Callable[[str], str]) -> LedgerExcerpt:
    return replace(
        ledger,
        goal=redact(ledger.goal),
        decisions=tuple(map(redact, ledger.decisions)),
        handoff=tuple(map(redact, ledger.handoff)),
    )
