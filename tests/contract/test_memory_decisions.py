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
    expire_memories,
    find_feedback,
    list_proposals,
    save_proposals,
)
from mimir.orchestrator.proposals.rules import MemoryDecision
from mimir.store.memory_records import MemoryRecord
from mimir.store.operations import memory
from mimir.store.protocol import GraphStore, WriteOps
from mimir.store.run_reading import load_record
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


async def test_one_of_several_concurrent_decisions_counts(
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


async def find(store: GraphStore, text: str = "wombat") -> set[str]:
    """Return the memories that a search finds."""
    scope = memory.MemoryScope(project="p1")
    hits = await store.read(
        lambda reads: memory.search_nodes(reads, scope, text, (NodeLabel.MEMORY,), 50)
    )
    return {str(one["id"]) for one in hits}


async def test_a_superseded_memory_is_not_found_and_only_its_decider_may_supersede_it(
    store: GraphStore,
):
    # Given two accepted memories, a proposal, and a note of the user
    await store.write(propose)
    note = await store.write(lambda ops: memory.add(ops, "p1", "Own", "The wombat is mine."))
    await decide_all(store, [MemoryDecision(id=f"m-{n}", verb="accept") for n in (0, 1)], ANA)

    # When a client supersedes one of its own, and tries it with others
    tried = [
        MemoryDecision(id="m-2", verb="accept", supersedes=old)
        for old in ("m-0", note, "m-5", "m-none", "m-2")
    ]
    ends = [await decide_all(store, [one], ANA) for one in tried]
    other, _ = await decide_all(
        store, [MemoryDecision(id="m-3", verb="edit", text="New wombat", supersedes="m-1")], ANA
    )

    # Then a refused one changes nothing, and a search finds accepted memories alone
    assert [bool(done) for done, _ in ends] == [True, False, False, False, False]
    assert [one["state"] for one in other] == ["accepted"]
    assert await find(store) == {"m-2", "m-3", note}
    old = await store.read(lambda reads: load_record(reads, MemoryRecord, "m-0"))
    assert old is not None
    assert (old.state, old.superseded_by) == ("superseded", "m-2")

    # And the user may accept it again, or supersede any other
    user = Decider(project="p1")
    done, refused = await decide_all(store, [MemoryDecision(id="m-0", verb="accept")], user)
    assert ([one["superseded_by"] for one in done], refused) == ([None], [])
    done, refused = await decide_all(
        store, [MemoryDecision(id="m-4", verb="accept", supersedes=note)], user
    )
    assert (len(done), refused) == (1, [])
    assert await find(store) == {"m-0", "m-2", "m-3", "m-4"}


async def test_an_accepted_memory_expires_by_its_age_since_the_decision(store: GraphStore):
    # Given memories of long ago, one of which was decided just now
    await store.write(propose)
    await decide_all(store, [MemoryDecision(id=f"m-{n}", verb="accept") for n in (0, 1)], ANA)
    old = {"createdAt": "2001-01-01T00:00:00.000000Z"}

    def age(ops: WriteOps) -> None:
        for number in range(3):
            ops.patch(NodeLabel.MEMORY, f"m-{number}", old)
        ops.patch(NodeLabel.MEMORY, "m-0", {"decidedAt": old["createdAt"]})

    await store.write(age)
    for days, left in ((0, {"m-0", "m-1"}), (30, {"m-1"})):
        await store.write(lambda ops, days=days: expire_memories(ops, "p1", days))
        assert await find(store) == left
    # A proposal does not expire, and an expired memory may be accepted again.
    assert "m-2" in [one.id for one in await store.read(lambda reads: list_proposals(reads, "p1"))]
    again = [MemoryDecision(id="m-0", verb="accept")]
    await decide_all(store, again, Decider(project="p1"))
    await store.write(lambda ops: expire_memories(ops, "p1", 30))
    assert await find(store) == {"m-0", "m-1"}
