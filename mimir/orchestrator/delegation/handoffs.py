"""Hand-offs of the user: notes for the next plan."""

from collections.abc import Sequence

from mimir.store.operations import memory
from mimir.store.protocol import ReadOps, Where, WriteOps
from mimir.store.records.run_records import NoteRecord, RunOverviewRecord
from mimir.store.run_reading import NEWEST_FIRST, find_records

HANDOFF = "handoff"
"""Kind of the note that `mimir handoff` writes."""


def find_handoff(reads: ReadOps, project: str, *, before: str = "") -> Sequence[NoteRecord]:
    """Return the hand-offs of the user since the last plan, oldest first.

    `before` is a time, ISO-8601 UTC: plans made then or later do not count. Empty: all count.
    """
    where: Where = {"projectId": project, "kind": HANDOFF, "state": "accepted"}
    found = find_records(reads, NoteRecord, where, order=("createdAt", "id"))
    if not found:
        return ()
    plans: Where = {"projectId": project, "kind": "plan"}
    # A resumed planning run must not count itself.
    if before:
        plans = {**plans, "createdAt": ("<", before)}
    planned = find_records(reads, RunOverviewRecord, plans, order=NEWEST_FIRST, limit=1)
    planned_at = planned[0].created_at if planned else ""
    return [note for note in found if note.created_at > planned_at]


def add_handoff(ops: WriteOps, project: str, text: str) -> str:
    """Store a hand-off of the user for the next plan; return the id of the note."""
    return memory.add(ops, project, "Hand-off", text, kind=HANDOFF)
