"""`mimir memory`: proposed memories, and decisions about them."""

from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.session import CommandSession
from mimir.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mimir.bootstrap.stored_project import ProjectPlace
    from mimir.orchestrator.proposals.rules import MemoryDecision
    from mimir.store.protocol import ReadOps

All = Annotated[bool, typer.Option("--all", help="Decided ones of agents too.")]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids, or their beginnings.")]
OneId = Annotated[str, typer.Argument(metavar="ID", help="Id of a memory, or its beginning.")]
Supersedes = Annotated[
    str, typer.Option("--supersedes", metavar="OLD", help="Memory whose place it takes.")
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="For the agent.")]
NewText = Annotated[str, typer.Argument(metavar="TEXT", help="The memory; - reads input.")]


def list_memories(session: CommandSession, every: All = False) -> int:
    """List the memories that agents propose, with the findings of the engine about them."""
    from mimir.orchestrator.proposals.decisions import (
        describe_memory,
        list_decided,
        list_proposals,
    )

    def look(reads: "ReadOps", place: "ProjectPlace") -> "list[dict[str, object]]":
        decided = list_decided(reads, place.id) if every else []
        return [describe_memory(one) for one in (*list_proposals(reads, place.id), *decided)]

    from mimir.cli.output.people.proposals_page import proposals_page

    found = session.look(look)
    lines = proposals_page(found, session.console.width) or ["No memory is proposed."]
    return session.show({"memories": found}, *lines)


def accept(session: CommandSession, ids: Ids, supersedes: Supersedes = "") -> int:
    """Accept proposed memories: agents find them from now on.

    With --supersedes they do not find the older memory any more.
    """
    from mimir.orchestrator.proposals.rules import MemoryDecision

    if supersedes and len(ids) > 1:
        raise UsageError("One memory takes the place of another one: name one ID.")
    return _decide(
        session, [MemoryDecision(id=one, verb="accept", supersedes=supersedes) for one in ids]
    )


def reject(session: CommandSession, ids: Ids, reason: Reason = "") -> int:
    """Reject proposed memories; the next run of the agent is given the reason."""
    from mimir.orchestrator.proposals.rules import MemoryDecision

    return _decide(session, [MemoryDecision(id=one, verb="reject", text=reason) for one in ids])


def edit(session: CommandSession, name: OneId, text: NewText) -> int:
    """Accept a proposed memory with another text."""
    from mimir.cli import arguments
    from mimir.orchestrator.proposals.rules import MemoryDecision

    words = arguments.read_request([text], session.project)
    return _decide(session, [MemoryDecision(id=name, verb="edit", text=words)])


def trace(session: CommandSession, name: OneId) -> int:
    """Show the proposer, the sources and the decision of a memory."""
    from mimir.orchestrator.proposals.decisions import describe_memory, find_memory

    def look(reads: "ReadOps", place: "ProjectPlace") -> "dict[str, object]":
        return describe_memory(find_memory(reads, place.id, name))

    from mimir.cli.output.people.proposals_page import memory_lines

    found = session.look(look)
    return session.show(found, *memory_lines(found, session.console.width))


def _decide(session: CommandSession, decisions: "Sequence[MemoryDecision]") -> int:
    """Decide as the user, or as the client for which this process works."""
    loaded = session.load()

    async def job() -> "tuple[Sequence[Mapping[str, object]], Sequence[Mapping[str, object]]]":
        from mimir.orchestrator.proposals.decisions import Decider, decide_all
        from mimir.settings.principal import find_principal

        async with session.open_store(loaded) as opened:
            # A command that a client started decides as that client, never as the user.
            name, setting = find_principal() or "user", loaded.settings.agents.accept
            decider = Decider(project=opened.id, name=name, accept=setting)
            return await decide_all(opened.store, decisions, decider)

    done, refused = session.run(job())
    if session.json:
        session.console.json({"schema": 1, "memories": done, "refused": refused})
    else:
        for one in done:
            session.console.say(f"{one['state']}: {one['id']}")
        for one in refused:
            session.console.note(f"error: {one['problem']}")
    return int(bool(refused))
