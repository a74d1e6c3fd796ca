"""Decisions about proposed memories at one moment, on every kind of store."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from mimir.orchestrator.proposals import rules
from mimir.orchestrator.proposals.checking import CheckedProposals
from mimir.orchestrator.proposals.decisions import (
    Decider,
    decide_all,
    find_feedback,
    list_proposals,
    save_proposals,
)
from mimir.orchestrator.proposals.rules import MemoryDecision
from mimir.store.memory_records import MemoryRecord
from mimir.store.operations import memory
from mimir.store.protocol import GraphStore, WriteOps
from mimir.store.schema import NodeLabel

TASK = "Review the parser."
RACES = 10
ANA, EVE = (Decider(project="p1", name=name) for name in ("stdio:ana", "token:eve"))


def propose(ops: WriteOps) -> None:
    """Store the proposals of a run of ana, each with other words."""
    run = {"id": "r1", "kind": "agent", "status": "completed", "projectId": "p1"}
    ops.upsert(NodeLabel.RUN, [{**run, "principal": "stdio:ana", "agent": "reviewer"}])
    made = [
        MemoryRecord(
            id=f"m-{number}",
            name=f"Parser {number}",
            kind="entity",
            text=f"parser number {number} reads wombat lines",
            state="proposed",
            project_id="p1",
            run_id="r1",
            proposed_by="agent:reviewer",
            operation="create_entities",
            entities=(f"Parser {number}",),
            sources=("call:1",),
            relevance=0.6,
            task_hash=rules.hash_task(TASK),
        )
        for number in range(RACES)
    ]
    save_proposals(ops, CheckedProposals(kept=made))


async def test_of_decisions_at_one_moment_one_holds_and_the_others_are_refused(
    store: GraphStore, second: Callable[[], AbstractAsyncContextManager[GraphStore]]
):
    await store.write(propose)
    scope = memory.MemoryScope(project="p1")
    async with second() as other:
        for number in range(RACES):
            id = f"m-{number}"
            # When its client, the same client elsewhere and a stranger decide
            ends = await asyncio.gather(
                decide_all(store, [MemoryDecision(id=id, verb="accept")], ANA),
                decide_all(other, [MemoryDecision(id=id, verb="reject", text="no")], ANA),
                decide_all(other, [MemoryDecision(id=id, verb="reject", text="bad")], EVE),
            )
            # Then one decision holds, and a repeated one changes nothing
            assert Counter(bool(done) for done, _ in ends) == {True: 1, False: 2}
            assert not ends[2][0]
    assert await store.read(lambda reads: list_proposals(reads, "p1")) == []
    feedback = await store.read(lambda reads: find_feedback(reads, "p1", "reviewer", TASK))
    assert len(feedback) == RACES
    accepted = [one for one in feedback if one.endswith(": accepted")]
    hits = await store.read(
        lambda reads: memory.search_nodes(reads, scope, "wombat", (NodeLabel.MEMORY,), 50)
    )
    assert len(hits) == len(accepted)
    # The user may change a decision; the memory is no longer found
    user = Decider(project="p1")
    changed, refused = await decide_all(
        store, [MemoryDecision(id=str(one["id"]), verb="reject") for one in hits], user
    )
    assert (len(changed), refused) == (len(hits), [])
    search = memory.ProjectMemory(store, scope)
    assert not await search.search_notes("wombat", limit=5)
