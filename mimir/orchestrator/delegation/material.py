"""Material of an invocation: memory, instructions and files, pinned with its run."""

from dataclasses import replace

from mimir.domain.invocation import MemoryHit, PinnedDefinition
from mimir.orchestrator.services import ProjectServices
from mimir.registry.domain_terms import select_paths
from mimir.store.operations import memory

INSTRUCTIONS = "AGENTS.md"
MAX_BYTES = 200_000
"""Of `AGENTS.md`; a longer one is not shown."""
MAX_HITS = 10


async def search_memory(services: ProjectServices, text: str) -> tuple[MemoryHit, ...]:
    """Return notes on similar work, and lessons that no later run overcame."""
    scope = memory.MemoryScope(project=services.project_id)
    found = memory.ProjectMemory(services.store, scope)
    return tuple(
        MemoryHit(
            id=str(node["id"]),
            kind=str(node.get("kind") or "note"),
            title=str(node.get("name") or ""),
            text=str(node.get("text") or ""),
        )
        for node in await found.search_notes(text, limit=MAX_HITS)
    )


async def pin_material(
    services: ProjectServices, definition: PinnedDefinition, tree: str, request: str
) -> PinnedDefinition:
    """Return a definition with what its invocation is shown of the project.

    Args:
        services: Services of the project.
        definition: With the domain terms of its material; without material it is returned as it is.
        tree: Base of the run.
        request: The task.
    """
    material = definition.material
    if material is None:
        return definition
    history, redact = services.history, services.redact
    content = await history.file(tree, INSTRUCTIONS) or b""
    # The terms find notes of the field that the task does not name.
    words = " ".join((request, *material.terms))
    hits = await search_memory(services, words) if material.reads_memory else ()
    return replace(
        definition,
        material=replace(
            material,
            memory=hits,
            files=select_paths(await history.paths(tree, None), material.terms),
            instructions=redact(content.decode("utf-8", "replace"))
            if len(content) <= MAX_BYTES
            else "",
        ),
    )
