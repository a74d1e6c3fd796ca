"""A run's rows as the lines of a recording, in the order in which they came about.

What a line holds stands in `docs/recordings.md`. The store is the truth: what is missing in a file can be written behind it at any time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mimir.domain.event import Event, EventKind
from mimir.domain.ids import PLAN_TASK, attempt_id, call_id, lane_id
from mimir.domain.task_states import TaskStatus
from mimir.scheduling.execution.preparation import START
from mimir.store import row_fields
from mimir.store.operations import record_loading, runs, worker_processes
from mimir.store.protocol import ReadOps, Row, Where
from mimir.store.schema import NodeLabel, unpack
from mimir.store.transcripts import call_rows, shared_texts

Line = dict[str, object]

PINNED = (
    "kind", "name", "projectId", "request", "title", "goal", "planPath", "settingsJson", "engineVersion", "baseCommit",
    "baseTree", "createdAt", "sandbox", "userHead", "userBranch", "fromRun", "only", "parentRun", "sessionId",
    "learnedJson", "planRun", "pricesJson",
)  # fmt: skip
"""What a run pins of itself when it is made."""
TIMES = ("At", "Time", "Seconds", "Duration", "claimsEmpty", "planRun")
"""How the names of properties end that hold what a clock said, or who else was there."""
WHERE = ("lockFile", "host", "process")
"""What of a process is nobody's business elsewhere."""
TEXTS = ("preambles", "brief", "background")
"""Artifacts of a run that are made once and used by everything after."""
CALLS = (EventKind.MODEL_CALLED, EventKind.TOOL_CALLED, EventKind.TOOL_DENIED)
ATTEMPTS = (EventKind.WORK_ANSWERED, EventKind.TASK_RETRIED, EventKind.TASK_FAILED, *CALLS)
STOPS = (EventKind.RUN_PAUSED, EventKind.RUN_FINISHED)
STOPPED = (TaskStatus.WORKER_EXECUTING.value, TaskStatus.CANCELLED.value)
"""What an attempt stands at that a stop has cut short, maybe before it had any answer to tell of."""


@dataclass(slots=True, kw_only=True)
class ExportProgress:
    """How far a run's lines are written."""

    seq: int = 0
    """Last event."""
    checks: frozenset[str] = frozenset()
    checks_at: str = ""
    """When the last check's run was kept."""
    texts: frozenset[str] = frozenset()
    """Names of the run's own texts that are written."""


def lines(reads: ReadOps, run: str, written: ExportProgress) -> Iterator[Line]:
    """Yield what is not written yet, and note in `written` that it is."""
    if written.seq == 0:
        yield _head(runs.get(reads, run))
    events = runs.events(reads, run, after=written.seq)
    yield from _texts(reads, run, written)
    yield from _checks(reads, run, written)
    for event in events:
        yield from _of(reads, event)
        yield _event(event)
        written.seq = event.seq


def end_of(reads: ReadOps, run: str, *, report: str, plan: str) -> Line:
    """Return the line of what a run came to: what a replay is compared with."""
    row = runs.node(reads, run)
    evidence = reads.find(NodeLabel.EVIDENCE, {"runId": run}, order=("chain", "seq"))
    verdicts = reads.find(NodeLabel.VERDICT, {"runId": run}, order=("id",))
    return {
        "kind": "end", "run": run, "status": row_fields.text_field(row, "status"), "seal": row_fields.text_field(row, "seal"),
        "report": report, "plan": plan, "evidence": [dict(one) for one in evidence],
        "verdicts": [dict(one) for one in verdicts], "measured": _measured(reads, row),
    }  # fmt: skip


def _measured(reads: ReadOps, run: Row) -> list[object]:
    """Return what was measured, not decided: times, durations, who was there; of the plan's making what a report counts."""
    id = str(run["id"])
    where: Where = {"runId": id}
    planned = row_fields.text_field(run, "planRun")
    rows: list[tuple[str, Row]] = [(NodeLabel.RUN.value, run)]
    rows += [
        (NodeLabel.TASK.value, row) for row in reads.find(NodeLabel.TASK, where, order=("seq",))
    ]
    rows += [
        (NodeLabel.ATTEMPT.value, row)
        for row in reads.find(NodeLabel.ATTEMPT, where, order=("id",))
    ]
    kept = [[label, {"id": row["id"], **_times(row)}] for label, row in rows]
    there = worker_processes.present(reads, id)
    asked = call_rows.rows(reads, lane_id(planned, PLAN_TASK, 1, "pm")) if planned else []
    return [
        *kept,
        *([NodeLabel.ARTIFACT.value, _without(row, *WHERE)] for row in there),
        *([NodeLabel.CALL.value, _without(r, "deltaJson")] for r in asked),
    ]


def _without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def _times(row: Row) -> Row:
    return {name: value for name, value in row.items() if name.endswith(TIMES)}


def _head(row: Row) -> Line:
    plan = row_fields.text_field(row, "planJson")
    pinned: Line = {name: row[name] for name in PINNED if row.get(name) is not None}
    pinned["settingsJson"] = unpack(row_fields.text_field(row, "settingsJson") or "{}")
    return {
        "kind": "run",
        "run": str(row["id"]),
        "pinned": pinned,
        "plan": unpack(plan) if plan else None,
    }


def _texts(reads: ReadOps, run: str, written: ExportProgress) -> Iterator[Line]:
    for name in TEXTS:
        row = None if name in written.texts else reads.get(NodeLabel.ARTIFACT, f"{run}#{name}")
        if row is not None:
            written.texts |= {name}
            yield {
                "kind": "text",
                "run": run,
                "name": name,
                "text": unpack(row_fields.text_field(row, "text")),
            }


def _checks(reads: ReadOps, run: str, written: ExportProgress) -> Iterator[Line]:
    for one in record_loading.load_check_runs(reads, run, since=written.checks_at):
        if one.id in written.checks:
            continue
        if one.created_at > written.checks_at:
            written.checks, written.checks_at = frozenset(), one.created_at
        written.checks |= {one.id}
        yield {
            "kind": "check", "run": run, "by": one.place, "owner": one.owner, "at": one.created_at,
            "timeout": one.timeout_seconds, "ran": unpack(one.result.text),
        }  # fmt: skip


def _of(reads: ReadOps, event: Event) -> Iterator[Line]:
    """Yield what belongs to an event and is no event itself: the call, the attempt's base and time."""
    if event.kind in CALLS:
        lane = lane_id(
            event.run, event.task or PLAN_TASK, event.attempt, str(event.data.get("role") or "")
        )
        row = reads.get(NodeLabel.CALL, call_id(lane, _number(event.data, "seq")))
        if row is not None and row_fields.bool_field(row, "done"):
            yield _call(row, shared_texts.delta_of(reads, row))
    first = event.kind is EventKind.MODEL_CALLED and event.data.get("seq") == 0
    if event.task and event.attempt and (first or event.kind in ATTEMPTS[:3]):
        row = reads.get(NodeLabel.ATTEMPT, attempt_id(event.run, event.task, event.attempt))
        if row is not None and row.get("startJson"):
            yield _attempt(row)
    if event.kind in STOPS:
        stopped: Where = {"runId": event.run, "status": ("in", STOPPED)}
        rows = reads.find(NodeLabel.ATTEMPT, stopped, order=("id",))
        yield from (_attempt(row) for row in rows if row.get("startJson"))


def _attempt(row: Row) -> Line:
    return {
        "kind": "attempt", "run": row_fields.text_field(row, "runId"), "task": row_fields.text_field(row, "taskId"),
        "attempt": row_fields.int_field(row, "seq"), "base": START.decode(row_fields.text_field(row, "startJson")).base_commit,
        "seconds": row.get("workerDuration"),
    }  # fmt: skip


def _call(row: Row, request: Mapping[str, object]) -> Line:
    used = None
    if row.get("inputTokens") is not None:
        used = [row_fields.int_field(row, "inputTokens"), row_fields.int_field(row, "outputTokens")]
    return {
        "kind": "call", "run": row_fields.text_field(row, "runId"), "lane": row_fields.text_field(row, "lane"), "seq": row_fields.int_field(row, "seq"),
        "call": row_fields.text_field(row, "kind"), "tool": row_fields.text_field(row, "tool"), "title": row_fields.text_field(row, "name"),
        "request": request, "answer": row_fields.json_field(row, "valueJson"),
        "usage": used, "tree": row_fields.text_field(row, "tree"), "request_hash": row_fields.text_field(row, "requestHash"),
        "lane_hash": row_fields.text_field(row, "hash"),
    }  # fmt: skip


def _event(event: Event) -> Line:
    return {
        "kind": "event", "run": event.run, "seq": event.seq, "event": event.kind.value, "at": event.at,
        "task": event.task, "attempt": event.attempt, "data": dict(event.data),
    }  # fmt: skip


def _number(values: Mapping[str, object], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else 0
