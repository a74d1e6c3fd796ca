"""Counts in the store what the metrics of a run are made from. `docs/metrics.md` says the same as queries, one for each metric."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import cast

from mimir.domain.clock import moment
from mimir.domain.event import EventKind
from mimir.domain.ids import PLAN_TASK, lane_id
from mimir.domain.task_states import TERMINAL, Cause
from mimir.reporting.summary.metrics import MetricInputs
from mimir.reporting.summary.proofs import members
from mimir.store import row_fields
from mimir.store.operations import worker_processes
from mimir.store.operations.evidence import record_of
from mimir.store.protocol import ReadOps, Row, Where
from mimir.store.schema import NodeLabel
from mimir.store.transcripts import call_rows

SEARCHES = (
    "memory_search_nodes", "memory_query_nodes", "memory_get_node", "memory_get_neighbors",
    "memory_get_subgraph",
)  # fmt: skip
UNCLEAR = (Cause.CRITERIA_IMPOSSIBLE.value, Cause.UNVERIFIABLE.value)
ENDS = tuple(sorted(status.value for status in TERMINAL))


class MetricCounter:
    """Counts what a run's metrics are made from, some rows at a time: none is kept.

    What was taken over from another run is left out, it was measured there.
    """

    def __init__(self) -> None:
        self._sums: Counter[str] = Counter()
        self._longest: dict[str, int] = {}
        """Hash of a piece → its tokens."""
        self._seconds: list[float] = []
        self._held = 0.0
        self._first = self._last = ""
        """When a worker began."""

    def take(self, tasks: Iterable[Row], attempts: Iterable[Row]) -> None:
        """Take in tasks and their attempts."""
        for row in tasks:
            self._task(row)
        for row in attempts:
            self._attempt(row)

    def _task(self, row: Row) -> None:
        if row.get("takenFrom"):
            return
        self._sums["tasks"] += 1
        self._sums["unclear"] += row_fields.text_field(row, "cause") in UNCLEAR
        self._held += row_fields.float_field(row, "heldSeconds")

    def _attempt(self, row: Row) -> None:
        if row.get("takenFrom"):
            return
        self._sums["attempts"] += 1
        self._sums["rejected"] += row_fields.bool_field(row, "judged")
        for name in ("contextTokens", "qcContextTokens"):
            self._sums["given"] += row_fields.int_field(row, name)
            self._sums["available"] += row_fields.int_field(row, f"{name}Available")
        for hash, tokens in _pieces(row):
            self._sums["pieces"] += tokens
            self._longest[hash] = max(tokens, self._longest.get(hash, 0))
        seconds = _lifetime(row)
        if seconds is not None:
            self._seconds.append(seconds)
        began = row_fields.text_field(row, "workerStartTime")
        if began:
            self._first = min(began, self._first or began)
            self._last = max(began, self._last)

    def done(self, reads: ReadOps, run: Row) -> MetricInputs:
        """Count the rest in the store.

        Args:
            reads: The view that the rows came from.
            run: The run's own row.
        """
        id = str(run["id"])
        granted = reads.counts(NodeLabel.EVENT, "kind", {"runId": id})
        planner = _planner(reads, run)
        retrieved, used = _retrieved(reads, [id, row_fields.text_field(run, "planRun")])
        return replace(
            self.counted(),
            pm_seconds=_span(planner),
            claims_granted=granted.get(EventKind.ATTEMPT_STARTED.value, 0)
            + granted.get(EventKind.LEASE_TAKEN.value, 0),
            claims_empty=row_fields.int_field(run, "claimsEmpty"),
            red_tasks=_red_tasks(reads, id),
            retrieved=retrieved,
            used=used,
            pm_tokens_first=_tokens_at(planner, self._first) if self._first else None,
            pm_tokens_last=_tokens_at(planner, self._last) if self._last else None,
            served_seconds=_served(worker_processes.present(reads, id), _end(reads, id)),
        )

    def counted(self) -> MetricInputs:
        """Return what follows from the rows alone."""
        sums = self._sums
        return MetricInputs(
            piece_tokens=sums["pieces"],
            unique_tokens=sum(self._longest.values()),
            given_tokens=sums["given"],
            available_tokens=sums["available"],
            worker_seconds=self._seconds,
            attempts=sums["attempts"],
            rejected=sums["rejected"],
            tasks=sums["tasks"],
            unclear=sums["unclear"],
            held_seconds=self._held,
        )


def _pieces(row: Row) -> list[tuple[str, int]]:
    texts = (
        *row_fields.text_list_field(row, "contextPieces"),
        *row_fields.text_list_field(row, "qcContextPieces"),
    )
    parted = (text.partition(" ") for text in texts)
    return [(hash, int(tokens)) for hash, _, tokens in parted]


def _lifetime(row: Row) -> float | None:
    """Return for how long an attempt's worker was there, from its brief to its answer; pauses count."""
    start, end = (
        row_fields.text_field(row, "workerStartTime"),
        row_fields.text_field(row, "workerCompletedAt"),
    )
    return (moment(end) - moment(start)).total_seconds() if start and end else None


def _planner(reads: ReadOps, run: Row) -> list[Row]:
    """Return the PM's calls for a run's plan; none if a person wrote it."""
    planning = row_fields.text_field(run, "planRun")
    if run.get("kind") == "plan":
        planning = str(run["id"])
    return call_rows.rows(reads, lane_id(planning, PLAN_TASK, 1, "pm")) if planning else []


def _span(lane: Sequence[Row]) -> float | None:
    starts = [at for row in lane if (at := row_fields.text_field(row, "startedAt"))]
    ends = [at for row in lane if (at := row_fields.text_field(row, "finishedAt"))]
    if not starts or not ends:
        return None
    return round((moment(max(ends)) - moment(min(starts))).total_seconds(), 3)


def _tokens_at(lane: Sequence[Row], at: str) -> int | None:
    """Return the size of the context of a lane's last model call that was answered by then."""
    before = [
        r
        for r in lane
        if r.get("kind") == "model" and "" < row_fields.text_field(r, "finishedAt") <= at
    ]
    return row_fields.maybe_whole(before[-1], "inputTokens") if before else None


def _red_tasks(reads: ReadOps, run: str) -> int | None:
    """Count the tasks with a red check as the newest passage of the final gate was sealed; None: there is none."""
    last = reads.find(NodeLabel.EVIDENCE, {"runId": run, "kind": "gate"}, order=("-seq",), limit=1)
    if not last:
        return None
    red = members(record_of(last[0])).get("red")
    items = cast("list[object]", red) if isinstance(red, list) else []
    return len(
        {str(cast("Mapping[str, object]", i).get("task")) for i in items if isinstance(i, dict)}
    )


def _end(reads: ReadOps, run: str) -> str:
    """Return when the run's last task ended; empty: none has."""
    kinds = (
        EventKind.TASK_COMPLETED, EventKind.TASK_FAILED, EventKind.TASK_BLOCKED, EventKind.TASK_CANCELLED,
    )  # fmt: skip
    where: Where = {"runId": run, "kind": ("in", [kind.value for kind in kinds])}
    last = reads.find(NodeLabel.EVENT, where, order=("-seq",), limit=1)
    return row_fields.text_field(last[0], "at") if last else ""


def _served(present: Sequence[Row], end: str) -> float:
    """Add up for how long the agents of all processes were there until the last task ended.

    A process that died counts until its lease would have. What a process writes after the last task's end changes nothing: a report is the same
    when it is written and ever after.
    """
    total = 0.0
    for row in present:
        left = min(end, row_fields.text_field(row, "leftAt") or row_fields.text_field(row, "until"))
        since = row_fields.text_field(row, "since")
        if since and left > since:
            seconds = (moment(left) - moment(since)).total_seconds()
            total += row_fields.int_field(row, "agents") * seconds
    return total


def _retrieved(reads: ReadOps, runs: Sequence[str]) -> tuple[int, int]:
    """Count the nodes that memory tools gave to agents, and those that the same agent named in a later answer."""
    among: Where = {
        "runId": ("in", [run for run in runs if run]),
        "kind": "tool",
        "tool": ("in", list(SEARCHES)),
    }
    found = reads.find(NodeLabel.CALL, among, order=("lane", "seq"))
    retrieved = used = 0
    for lane, rows in groupby(found, key=lambda row: row_fields.text_field(row, "lane")):
        first: dict[str, int] = {}
        for row in rows:
            for id in _nodes(row):
                first.setdefault(id, call_rows.seq_of(row))
        said = [r for r in call_rows.rows(reads, lane) if r.get("kind") == "model"] if first else []
        retrieved += len(first)
        used += sum(
            any(
                call_rows.seq_of(r) > seq and id in row_fields.text_field(r, "valueJson")
                for r in said
            )
            for id, seq in first.items()
        )
    return retrieved, used


def _nodes(row: Row) -> list[str]:
    """Return the ids of the nodes in a memory tool's answer; none if it is an error's text."""
    try:
        told = cast("object", json.loads(str(row_fields.json_field(row, "valueJson").get("text"))))
    except ValueError:
        return []
    nodes = cast("Mapping[str, object]", told).get("nodes") if isinstance(told, dict) else None
    if not isinstance(nodes, list):
        return []
    items = [
        cast("Mapping[str, object]", n) for n in cast("list[object]", nodes) if isinstance(n, dict)
    ]
    return [id for item in items if isinstance(id := item.get("id"), str)]
