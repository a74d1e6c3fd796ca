"""Counts in the store what the metrics of a run are made from. `docs/metrics.md` says the same as queries, one for each metric."""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import cast

from mimir.domain.attempt import TERMINAL, Cause
from mimir.domain.clock import moment
from mimir.domain.event import EventKind
from mimir.domain.ids import PLAN_TASK, lane_id
from mimir.reporting.metrics import Measured
from mimir.reporting.pieces.proofs import body
from mimir.store import calls, fields, workers
from mimir.store.proof import record_of
from mimir.store.protocol import Reads, Row, Where
from mimir.store.schema import Label

SEARCHES = (
    "memory_search_nodes", "memory_query_nodes", "memory_get_node", "memory_get_neighbors",
    "memory_get_subgraph",
)  # fmt: skip
UNCLEAR = (Cause.CRITERIA_IMPOSSIBLE.value, Cause.UNVERIFIABLE.value)
ENDS = tuple(sorted(status.value for status in TERMINAL))


def measure(reads: Reads, run: Row, tasks: Sequence[Row], attempts: Sequence[Row]) -> Measured:
    """Count what a run's metrics are made from.

    Args:
        reads: One view of the store.
        run: Its row.
        tasks: Its tasks.
        attempts: Their attempts; what was taken over from another run is left out, it was measured there.
    """
    id = str(run["id"])
    own = [row for row in attempts if not row.get("takenFrom")]
    begun = sorted(at for row in own if (at := fields.text(row, "workerStartTime")))
    granted = reads.counts(Label.EVENT, "kind", {"runId": id})
    new = [row for row in tasks if not row.get("takenFrom")]
    planner = _planner(reads, run)
    retrieved, used = _retrieved(reads, [id, fields.text(run, "planRun")])
    return Measured(
        pieces=[piece for row in own for piece in _pieces(row)],
        given_tokens=sum(
            fields.whole(row, n) for row in own for n in ("contextTokens", "qcContextTokens")
        ),
        available_tokens=sum(
            fields.whole(row, n)
            for row in own
            for n in ("contextTokensAvailable", "qcContextTokensAvailable")
        ),
        worker_seconds=[seconds for row in own if (seconds := _lifetime(row)) is not None],
        pm_seconds=_span(planner),
        claims_granted=granted.get(EventKind.ATTEMPT_STARTED.value, 0)
        + granted.get(EventKind.LEASE_TAKEN.value, 0),
        claims_empty=fields.whole(run, "claimsEmpty"),
        attempts=len(own),
        rejected=sum(fields.flag(row, "judged") for row in own),
        red_tasks=_red_tasks(reads, id),
        retrieved=retrieved,
        used=used,
        tasks=len(new),
        unclear=sum(fields.text(row, "cause") in UNCLEAR for row in new),
        pm_tokens_first=_tokens_at(planner, begun[0]) if begun else None,
        pm_tokens_last=_tokens_at(planner, begun[-1]) if begun else None,
        held_seconds=sum(fields.number(row, "heldSeconds") for row in new),
        served_seconds=_served(workers.present(reads, id), _end(reads, id)),
    )


def _pieces(row: Row) -> list[tuple[str, int]]:
    texts = (*fields.texts(row, "contextPieces"), *fields.texts(row, "qcContextPieces"))
    parted = (text.partition(" ") for text in texts)
    return [(hash, int(tokens)) for hash, _, tokens in parted]


def _lifetime(row: Row) -> float | None:
    """Return for how long an attempt's worker was there, from its brief to its answer; pauses count."""
    start, end = fields.text(row, "workerStartTime"), fields.text(row, "workerCompletedAt")
    return (moment(end) - moment(start)).total_seconds() if start and end else None


def _planner(reads: Reads, run: Row) -> list[Row]:
    """Return the PM's calls for a run's plan; none if a person wrote it."""
    planning = fields.text(run, "planRun")
    if run.get("kind") == "plan":
        planning = str(run["id"])
    return calls.rows(reads, lane_id(planning, PLAN_TASK, 1, "pm")) if planning else []


def _span(lane: Sequence[Row]) -> float | None:
    starts = [at for row in lane if (at := fields.text(row, "startedAt"))]
    ends = [at for row in lane if (at := fields.text(row, "finishedAt"))]
    if not starts or not ends:
        return None
    return round((moment(max(ends)) - moment(min(starts))).total_seconds(), 3)


def _tokens_at(lane: Sequence[Row], at: str) -> int | None:
    """Return the size of the context of a lane's last model call that was answered by then."""
    before = [
        r for r in lane if r.get("kind") == "model" and "" < fields.text(r, "finishedAt") <= at
    ]
    return fields.maybe_whole(before[-1], "inputTokens") if before else None


def _red_tasks(reads: Reads, run: str) -> int | None:
    """Count the tasks with a red check as the newest passage of the final gate was sealed; None: there is none."""
    last = reads.find(Label.EVIDENCE, {"runId": run, "kind": "gate"}, order=("-seq",), limit=1)
    if not last:
        return None
    red = body(record_of(last[0])).get("red")
    items = cast("list[object]", red) if isinstance(red, list) else []
    return len(
        {str(cast("Mapping[str, object]", i).get("task")) for i in items if isinstance(i, dict)}
    )


def _end(reads: Reads, run: str) -> str:
    """Return when the run's last task ended; empty: none has."""
    kinds = (
        EventKind.TASK_COMPLETED, EventKind.TASK_FAILED, EventKind.TASK_BLOCKED, EventKind.TASK_CANCELLED,
    )  # fmt: skip
    where: Where = {"runId": run, "kind": ("in", [kind.value for kind in kinds])}
    last = reads.find(Label.EVENT, where, order=("-seq",), limit=1)
    return fields.text(last[0], "at") if last else ""


def _served(present: Sequence[Row], end: str) -> float:
    """Add up for how long the agents of all processes were there until the last task ended.

    A process that died counts until its lease would have. What a process writes after the last task's end changes nothing: a report is the same
    when it is written and ever after.
    """
    total = 0.0
    for row in present:
        left = min(end, fields.text(row, "leftAt") or fields.text(row, "until"))
        since = fields.text(row, "since")
        if since and left > since:
            seconds = (moment(left) - moment(since)).total_seconds()
            total += fields.whole(row, "agents") * seconds
    return total


def _retrieved(reads: Reads, runs: Sequence[str]) -> tuple[int, int]:
    """Count the nodes that memory tools gave to agents, and those that the same agent named in a later answer."""
    among: Where = {
        "runId": ("in", [run for run in runs if run]),
        "kind": "tool",
        "tool": ("in", list(SEARCHES)),
    }
    found = reads.find(Label.CALL, among, order=("lane", "seq"))
    retrieved = used = 0
    for lane, rows in groupby(found, key=lambda row: fields.text(row, "lane")):
        first: dict[str, int] = {}
        for row in rows:
            for id in _nodes(row):
                first.setdefault(id, calls.seq_of(row))
        said = [r for r in calls.rows(reads, lane) if r.get("kind") == "model"] if first else []
        retrieved += len(first)
        used += sum(
            any(calls.seq_of(r) > seq and id in fields.text(r, "valueJson") for r in said)
            for id, seq in first.items()
        )
    return retrieved, used


def _nodes(row: Row) -> list[str]:
    """Return the ids of the nodes in a memory tool's answer; none if it is an error's text."""
    try:
        told = cast("object", json.loads(str(fields.mapping(row, "valueJson").get("text"))))
    except ValueError:
        return []
    nodes = cast("Mapping[str, object]", told).get("nodes") if isinstance(told, dict) else None
    if not isinstance(nodes, list):
        return []
    items = [
        cast("Mapping[str, object]", n) for n in cast("list[object]", nodes) if isinstance(n, dict)
    ]
    return [id for item in items if isinstance(id := item.get("id"), str)]
