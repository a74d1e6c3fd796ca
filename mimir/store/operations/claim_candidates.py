"""Which tasks may be claimed now: what nobody holds, and what a dead or late holder left; and what a death counts."""

from collections.abc import Sequence

from mimir.store import row_fields
from mimir.store.protocol import Compare, ReadOps, Row, Where
from mimir.store.schema import NodeLabel

FREE, HELD = "free", "held"
MOST_DEATHS = 3
"""Deaths in a row, none with a gained outcome, after which a task is given up."""
_MORE = 8
"""How many more are looked at, at least, where some were kept back."""
_ORDER = ("-priority", "id")
_ANY_PRIORITY: Compare = (">=", -1e300)
"""Each task has one; where it is asked for, an index that holds it is enough, and no task is read but those that are taken."""


def candidates(
    reads: ReadOps, run: str, limit: int, dead: frozenset[str], *, has_suspect: bool = False
) -> list[Row]:
    """Return what may be claimed, highest priority first, then by id.

    Args:
        reads: The transaction.
        run: Whose tasks.
        limit: How many at most.
        dead: Owners that are known to be gone; their leases count as ended.
        has_suspect: True: who asks works on a task that one more death would end.
    """
    wanted = limit
    while True:
        found = _first(reads, run, wanted, dead)
        kept = _one_suspect(found, is_held=has_suspect)[:limit]
        if len(kept) == limit or len(found) < wanted:
            return kept
        wanted += max(limit, _MORE)  # some were kept back


def is_any(reads: ReadOps, run: str, dead: frozenset[str], *, has_suspect: bool = False) -> bool:
    """Tell whether there would be a candidate; the arguments are those of `candidates`."""
    free: Where = {"runId": run, "claimState": FREE, "priority": _ANY_PRIORITY}
    first = reads.find(NodeLabel.TASK, free, order=_ORDER, limit=1)
    if _one_suspect(first, is_held=has_suspect):
        return True  # most often so, and one question is enough
    return bool(candidates(reads, run, 1, dead, has_suspect=has_suspect))


def _first(reads: ReadOps, run: str, limit: int, dead: frozenset[str]) -> list[Row]:
    """Read the first tasks that nobody works on, suspects among them."""
    held: Where = {"runId": run, "claimState": HELD, "priority": _ANY_PRIORITY}
    kinds: list[Where] = [
        {"runId": run, "claimState": FREE, "priority": _ANY_PRIORITY},
        {**held, "expiresAt": ("<=", reads.now())},
    ]
    if dead:
        kinds.append({**held, "lockedBy": ("in", sorted(dead))})
    found = reads.first_of(NodeLabel.TASK, kinds, order=_ORDER, limit=limit)
    return sorted(found, key=lambda r: (-row_fields.float_field(r, "priority"), str(r["id"])))[
        :limit
    ]


def death(row: Row) -> Row:
    """Count a death if a task that is claimed had a holder: it counts against the task only if no outcome was gained since the last one."""
    if not row_fields.text_field(row, "lockedBy"):
        return {}
    outcomes = row_fields.int_field(row, "outcomes")
    gained = outcomes > row_fields.int_field(row, "outcomesAtDeath")
    return {
        "outcomesAtDeath": outcomes,
        "deaths": 0 if gained else row_fields.int_field(row, "deaths") + 1,
    }


def _one_suspect(ranked: Sequence[Row], *, is_held: bool) -> list[Row]:
    """Leave out all but one of the tasks that one more death would end: an innocent one is not to be given up with the guilty.

    Args:
        ranked: What may be claimed.
        is_held: True: the claimer works on one already.
    """
    kept: list[Row] = []
    for row in ranked:
        after = {**row, **death(row)}
        suspect = is_suspect(after) and row_fields.int_field(after, "deaths") < MOST_DEATHS
        if not (suspect and is_held):
            kept.append(row)
        is_held = is_held or suspect
    return kept


def is_suspect(row: Row) -> bool:
    """Tell whether a task's next death would be its last: nothing was gained since the one before."""
    gained = row_fields.int_field(row, "outcomes") > row_fields.int_field(row, "outcomesAtDeath")
    return row_fields.int_field(row, "deaths") >= MOST_DEATHS - 1 and not gained
