"""Candidates of a claim: free tasks, and tasks whose holder is dead or late."""

from collections.abc import Sequence

from mimir.store.protocol import Compare, ReadOps, Row, Where
from mimir.store.row_fields import float_field, int_field, text_field
from mimir.store.schema import NodeLabel

FREE, HELD, WAITING = "free", "held", "waiting"
# Deaths in a row, without a gained outcome, after which a task fails.
MOST_DEATHS = 3
# How many more candidates are read, at least, if some were left out.
_MORE = 8
_ORDER = ("-priority", "id")
# Every task has a priority. With this condition the index answers the query, and only claimed tasks are read.
_ANY_PRIORITY: Compare = (">=", -1e300)


def candidates(
    reads: ReadOps,
    run: str,
    limit: int,
    dead: frozenset[str],
    *,
    has_suspect: bool = False,
    task: str = "",
) -> list[Row]:
    """Return the tasks that can be claimed, highest priority first, then by id.

    Leases of `dead` processes count as ended. With `has_suspect`, the process already works on a task that one more death would end.
    A `task` that is named is the only candidate.
    """
    wanted = limit
    while True:
        found = _first(reads, run, wanted, dead, task)
        kept = _one_suspect(found, is_held=has_suspect)[:limit]
        if len(kept) == limit or len(found) < wanted:
            return kept
        wanted += max(limit, _MORE)  # some were kept back


def is_any(reads: ReadOps, run: str, dead: frozenset[str], *, has_suspect: bool = False) -> bool:
    """Return whether there is a candidate; the arguments are those of `candidates`."""
    # A process without work asks often, so the usual case is one cheap query.
    free: Where = {"runId": run, "claimState": FREE, "priority": _ANY_PRIORITY}
    first = reads.find(NodeLabel.TASK, free, order=_ORDER, limit=1)
    if _one_suspect(first, is_held=has_suspect):
        return True  # most often so, and one question is enough
    return bool(candidates(reads, run, 1, dead, has_suspect=has_suspect))


def _first(reads: ReadOps, run: str, limit: int, dead: frozenset[str], task: str) -> list[Row]:
    """Return the first candidates, suspects among them."""
    named: Where = {"runId": run, "priority": _ANY_PRIORITY, **({"taskId": task} if task else {})}
    held: Where = {**named, "claimState": HELD}
    kinds: list[Where] = [
        {**named, "claimState": FREE},
        {**held, "expiresAt": ("<=", reads.now())},
    ]
    if dead:
        kinds.append({**held, "lockedBy": ("in", sorted(dead))})
    found = reads.first_of(NodeLabel.TASK, kinds, order=_ORDER, limit=limit)
    return sorted(found, key=lambda r: (-float_field(r, "priority"), str(r["id"])))[:limit]


def death(row: Row) -> Row:
    """Return the count of deaths if a claimed task had a holder."""
    # A death counts only if no outcome was gained since the last one.
    if not text_field(row, "lockedBy"):
        return {}
    outcomes = int_field(row, "outcomes")
    gained = outcomes > int_field(row, "outcomesAtDeath")
    return {"outcomesAtDeath": outcomes, "deaths": 0 if gained else int_field(row, "deaths") + 1}


def _one_suspect(ranked: Sequence[Row], *, is_held: bool) -> list[Row]:
    """Return the candidates with at most one suspect; none if one `is_held` already."""
    # If a process dies with two suspects, an innocent task would fail with the guilty one.
    kept: list[Row] = []
    for row in ranked:
        after = {**row, **death(row)}
        suspect = is_suspect(after) and int_field(after, "deaths") < MOST_DEATHS
        if not (suspect and is_held):
            kept.append(row)
        is_held = is_held or suspect
    return kept


def is_suspect(row: Row) -> bool:
    """Return whether the next death of a task would end it."""
    gained = int_field(row, "outcomes") > int_field(row, "outcomesAtDeath")
    return int_field(row, "deaths") >= MOST_DEATHS - 1 and not gained
