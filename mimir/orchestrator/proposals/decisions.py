"""Decisions about proposed memories, each in one conditional change."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial

from mimir.domain.clock import moment, stamp
from mimir.domain.json_value import JsonObject, as_objects, as_text
from mimir.domain.value_class import value_class
from mimir.errors import MimirError, UsageError
from mimir.orchestrator.proposals import rules
from mimir.orchestrator.proposals.checking import CheckedProposals
from mimir.orchestrator.proposals.rules import MemoryDecision, Verb
from mimir.store.memory_records import (
    MemoryDecisionChange,
    MemoryEndChange,
    MemoryRecord,
    MemoryState,
)
from mimir.store.operations.memory import MAX_TEXT
from mimir.store.protocol import GraphStore, ReadOps, Where, WriteOps
from mimir.store.records.record_codec import encode
from mimir.store.records.run_records import RunOverviewRecord
from mimir.store.run_reading import find_records, load_record
from mimir.store.schema import EdgeType, NodeLabel

_STATES: Mapping[Verb, MemoryState] = {
    "accept": "accepted",
    "reject": "rejected",
    "edit": "accepted",
}
MAX_FEEDBACK = 20
"""Decisions that an agent is shown of its earlier proposals."""


@value_class
class Decider:
    """Principal that decides."""

    project: str
    name: str = rules.USER
    accept: str = "primary"
    """The setting `agents.accept`."""


def save_proposals(ops: WriteOps, checked: CheckedProposals) -> None:
    """Store the proposals of a run in the transaction that ends it."""
    for one in checked.kept:
        now = ops.now()
        decided = now if one.decided_by else ""
        row = {**encode(one), "createdAt": now, "decidedAt": decided}
        ops.upsert(NodeLabel.MEMORY, [row])
        about = _find_entities(ops, one)
        # The attempt leads to the calls that taught it.
        ops.link(EdgeType.ABOUT, [(one.id, id) for id in (*about, one.source_attempt) if id])


def _find_entities(reads: ReadOps, one: MemoryRecord) -> list[str]:
    """Return the accepted entities of the project that a memory is about."""
    names = {rules.normalise(name) for name in one.entities}
    where = {"projectId": one.project_id, "kind": "entity", "state": "accepted"}
    found = find_records(reads, MemoryRecord, where)
    return [
        other.id
        for other in found
        if other.id != one.id and names & {rules.normalise(name) for name in other.entities}
    ]


def list_proposals(reads: ReadOps, project: str) -> list[MemoryRecord]:
    """Return the proposals of a project that are not decided, oldest first."""
    where = {"projectId": project, "state": "proposed"}
    return find_records(reads, MemoryRecord, where, order=("createdAt", "id"))


def list_decided(reads: ReadOps, project: str) -> list[MemoryRecord]:
    """Return the memories of a project that ended, and decided proposals of agents."""
    found = find_records(reads, MemoryRecord, {"projectId": project}, order=("createdAt", "id"))
    ended = ("superseded", "expired")
    return [
        one for one in found if one.state in ended or (one.operation and one.state != "proposed")
    ]


def describe_memory(one: MemoryRecord) -> dict[str, object]:
    """Return a memory as in `inbox --json` and `memory --json`."""
    data = one.data.mapping() if one.data else {"name": one.name, "text": one.text}
    return {
        "id": one.id,
        "operation": one.operation or "note",
        "data": data,
        "text": one.text,
        "sources": list(one.sources),
        "unverified": list(one.unverified),
        "relevance": one.relevance,
        "duplicate_of": one.duplicate_of or None,
        "contradicts": list(one.contradicts),
        "state": one.state,
        "run": one.run_id or None,
        "proposed_by": one.proposed_by,
        "proposed_at": one.created_at,
        "decided_by": one.decided_by or None,
        "decided_at": one.decided_at or None,
        "feedback": one.feedback or None,
        "superseded_by": one.superseded_by or None,
    }


def find_memory(reads: ReadOps, project: str, name: str) -> MemoryRecord:
    """Return a memory of a project by its id, or the beginning of it.

    Raises:
        UsageError: There is none, or several ids begin so.
    """
    exact = load_record(reads, MemoryRecord, name) if name.isprintable() and name else None
    if exact is not None and exact.project_id == project:
        return exact
    found = find_records(reads, MemoryRecord, {"projectId": project})
    known = [one for one in found if name and one.id.startswith(name)]
    if len(known) == 1:
        return known[0]
    if known:
        names = ", ".join(f"{one.id} ({one.name})" for one in known[:5])
        raise UsageError(f"{len(known)} memories begin with {name[:80]!r}.", next_step=names)
    raise UsageError(
        f"There is no memory {name[:80]!r}.", next_step="List the proposals: mimir memory"
    )


def decide(ops: WriteOps, decision: MemoryDecision, decider: Decider) -> dict[str, object]:
    """Decide about one memory; return it as `describe_memory` does.

    Raises:
        UsageError: There is no such memory, it was decided before, or the decider may not decide.
    """
    one = find_memory(ops, decider.project, decision.id)
    _require_decider(ops, one, decider)
    if decision.verb == "edit" and not decision.text.strip():
        raise UsageError("The new text is empty.", next_step="Give the text of the memory.")
    state = _STATES[decision.verb]
    feedback = {"accept": "accepted", "edit": f"edited: {decision.text}"}.get(
        decision.verb, f"rejected: {decision.text or 'no reason given'}"
    )[:MAX_TEXT]
    # A repeated call decides the same.
    if (one.state, one.feedback, one.decided_by) == (state, feedback, decider.name):
        if decision.supersedes:
            _supersede(ops, decision, one.id, decider)
        return describe_memory(one)
    # The user may change a decision later; for others the first one counts.
    is_final = one.state != "proposed" and (decider.name != rules.USER or one.state == state)
    change = MemoryDecisionChange(
        state=state,
        text=decision.text[:MAX_TEXT] if decision.verb == "edit" else one.text,
        decided_by=decider.name,
        decided_at=ops.now(),
        feedback=feedback,
    )
    # Compared with the state that was read: the first decision counts.
    expected = {"projectId": decider.project, "state": one.state}
    changed = None if is_final else ops.patch_if(NodeLabel.MEMORY, one.id, expected, encode(change))
    if changed is None:
        by = f" by {one.decided_by} at {one.decided_at}" if one.decided_by else ""
        raise UsageError(f"{one.id} was {one.state}{by}. Nothing changed.")
    if decision.supersedes:
        _supersede(ops, decision, one.id, decider)
    return describe_memory(find_memory(ops, decider.project, one.id))


def _require_decider(reads: ReadOps, one: MemoryRecord, decider: Decider) -> None:
    run = load_record(reads, RunOverviewRecord, one.run_id) if one.run_id else None
    reason = rules.refuse_decider(
        decider.name,
        principal=run.principal if run else "",
        agent=run.agent if run else "",
        accept=decider.accept,
    )
    if reason:
        raise UsageError(
            f"{one.id} is not yours to decide: {reason}.", next_step="The user decides: mimir inbox"
        )


def _supersede(ops: WriteOps, decision: MemoryDecision, newer: str, decider: Decider) -> None:
    """Supersede an older memory by a newer one, in the transaction of its decision."""
    old = find_memory(ops, decider.project, decision.supersedes)
    if decision.verb == "reject" or old.id == newer:
        raise UsageError(
            "Only a memory that is accepted takes the place of another one. Nothing changed."
        )
    # A client that may not decide about the older one must not remove it in this way.
    _require_decider(ops, old, decider)
    if old.proposed_by == rules.ENGINE and decider.name != rules.USER:
        raise UsageError(f"{old.id} is a fact of the engine: the user decides. Nothing changed.")
    if old.superseded_by == newer:
        return
    expected = {"projectId": decider.project, "state": "accepted"}
    change = encode(MemoryEndChange(state="superseded", superseded_by=newer))
    if ops.patch_if(NodeLabel.MEMORY, old.id, expected, change) is None:
        raise UsageError(f"{old.id} is not accepted: it is {old.state}. Nothing changed.")


def find_expired(reads: ReadOps, project: str, days: int) -> list[str]:
    """Return the accepted memories of a project that are older than `days`; 0: none is."""
    if not days:
        return []
    # The decision is later than the proposal, so none of the others can be too old.
    before = stamp(moment(reads.now()) - timedelta(days=days))
    where: Where = {"projectId": project, "state": "accepted", "createdAt": ("<", before)}
    found = find_records(reads, MemoryRecord, where)
    return [one.id for one in found if (one.decided_at or one.created_at) < before]


def expire_memories(ops: WriteOps, project: str, days: int) -> None:
    """Expire the accepted memories of a project that are older than `days`."""
    for id in find_expired(ops, project, days):
        ops.patch(NodeLabel.MEMORY, id, encode(MemoryEndChange(state="expired")))


async def decide_all(
    store: GraphStore, decisions: Sequence[MemoryDecision], decider: Decider
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Decide about memories one after another; return the decided and the refused ones."""
    done: list[dict[str, object]] = []
    refused: list[dict[str, object]] = []
    for one in decisions:
        # Each has its own transaction: a refused one must not undo the others.
        try:
            done.append(await store.write(partial(decide, decision=one, decider=decider)))
        except MimirError as error:
            refused.append({"id": one.id, "problem": str(error), "next": error.next_step or ""})
    return done, refused


def add_decisions(reads: ReadOps, response: JsonObject) -> JsonObject:
    """Return a response whose memory operations have the state and feedback of now."""
    shown: list[JsonObject] = []
    for one in as_objects(response.get("memory_operations")):
        stored = load_record(reads, MemoryRecord, as_text(one.get("id")))
        if stored is not None:
            one = {**one, "state": stored.state, "feedback": stored.feedback or None}
        shown.append(one)
    return {**response, "memory_operations": shown} if shown else response


def find_feedback(reads: ReadOps, project: str, agent: str, task: str) -> tuple[str, ...]:
    """Return the decisions about proposals of an agent in earlier runs of the same task."""
    where = {
        "projectId": project,
        "proposedBy": f"agent:{agent}",
        "taskHash": rules.hash_task(task),
    }
    found = find_records(reads, MemoryRecord, where, order=("decidedAt", "id"))
    # A proposal without a decision has no feedback yet.
    lines = [f"{one.name} ({one.operation}): {one.feedback}"[:500] for one in found if one.feedback]
    return tuple(lines[-MAX_FEEDBACK:])
