"""Where a run stands, as scripts and the live tree read it: `status --json`. Light: a few properties of each task, nothing else is read.

Attempts hold briefs and answers, and verdicts what QC said: megabytes in a large run. What came of the criteria stands with the task, and
the calls so far of a worker at work are counted by the store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from mimir.domain import money
from mimir.domain.clock import moment
from mimir.domain.ids import lane_id
from mimir.domain.plan import call_limit
from mimir.domain.task_states import EXECUTING, RUN_ENDED, RunStatus, TaskStatus
from mimir.errors import StoreError
from mimir.store import row_fields
from mimir.store.operations import evidence, runs
from mimir.store.protocol import ReadOps, Row, Where
from mimir.store.schema import NodeLabel

SCHEMA = 1
"""Grows with every change that could break a script; added members do not."""
_SHOWN = (
    "taskId", "title", "status", "attemptNumber", "maxRetries", "integrationRetries", "estimatedToolCalls", "workerToolCalls",
    "qcScore", "lockedBy", "expiresAt", "cause", "blockedBy", "dependencies", *evidence.NAMES,
)  # fmt: skip
"""What a status reads of a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _StatusLookup:
    """What is looked up once for all tasks."""

    run: str
    status: Mapping[str, str]
    """Task → status: for what a task waits."""
    calls: Mapping[str, int]
    """Lane → tool calls so far, of tasks whose own figure is of an earlier attempt, or not there yet."""
    now: str


def shape(reads: ReadOps, run: str, shown: RunStatus, now: datetime) -> dict[str, object]:
    """Return where a run stands, as JSON values.

    Args:
        reads: One view of the store.
        run: Its id.
        shown: What a person is told of its status: a run that no process serves is paused.
        now: For the time that a running run has taken so far.

    Raises:
        StoreError: There is no such run, or it cannot be read.
    """
    row = reads.get(NodeLabel.RUN, run)
    if row is None:
        raise StoreError(f"There is no run {run!r}.")
    rows = runs.tasks(reads, run, only=_SHOWN)
    look = _StatusLookup(
        run=run,
        status={
            row_fields.text_field(r, "taskId"): row_fields.text_field(r, "status") for r in rows
        },
        calls=_calls(reads, run, rows),
        now=reads.now(),
    )
    over = shown in RUN_ENDED or shown is RunStatus.PAUSED
    return {
        "schema": SCHEMA,
        "run": run,
        "kind": row_fields.text_field(row, "kind"),
        "status": shown.value,
        "outcome": shown.value if over else None,
        "title": row_fields.text_field(row, "title") or row_fields.text_field(row, "name"),
        "plan": row_fields.text_field(row, "planPath"),
        "reason": row_fields.text_field(row, "pauseReason"),
        "message": row_fields.text_field(row, "pauseMessage"),
        "apply": _apply(row),
        "seal": row_fields.text_field(row, "seal") if shown in RUN_ENDED else "",
        "started": row_fields.text_field(row, "createdAt"),
        "elapsed_seconds": _elapsed(row, shown, now),
        "calls": row_fields.int_field(row, "callsUsed"),
        "max_calls": row.get("maxCalls"),
        "tokens": row_fields.int_field(row, "tokensUsed"),
        "max_tokens": row.get("maxTokens"),
        **_money(row),
        "tasks": [_task(r, look) for r in rows],
    }


def _calls(reads: ReadOps, run: str, rows: Sequence[Row]) -> Mapping[str, int]:
    """Count the tool calls of the attempts that are not accepted: those of the others stand with their tasks."""
    lanes = [
        _lane(run, row) for row in rows
        if row_fields.int_field(row, "attemptNumber") and row.get("status") != TaskStatus.COMPLETED.value
    ]  # fmt: skip
    kept: Where = {"runId": run, "kind": "tool", "lane": ("in", lanes)}
    return reads.counts(NodeLabel.CALL, "lane", kept) if lanes else {}


def _lane(run: str, row: Row) -> str:
    task, attempt = row_fields.text_field(row, "taskId"), row_fields.int_field(row, "attemptNumber")
    return lane_id(run, task, attempt, "worker")


def _money(row: Row) -> dict[str, object]:
    """Return what a run has cost, as exact text; null: no prices are known. What `unpriced` models were asked is not in it."""
    most = row_fields.maybe_whole(row, "maxCost")
    return {
        "cost": money.format_money(row_fields.int_field(row, "costUsed"))
        if row.get("pricesJson")
        else None,
        "max_cost": None if most is None else money.format_money(most),
        "unpriced": row_fields.text_list_field(row, "unpriced") if row.get("pricesJson") else [],
    }


def _apply(row: Row) -> object:
    """Return how the result is brought into the person's files, as the run was begun with."""
    pinned = row_fields.json_field(row, "settingsJson").get("run")
    return cast("Mapping[str, object]", pinned).get("apply") if isinstance(pinned, dict) else None


def _task(row: Row, look: _StatusLookup) -> dict[str, object]:
    status, score = TaskStatus(row_fields.text_field(row, "status")), row.get("qcScore")
    attempt, tries = (
        row_fields.int_field(row, "attemptNumber"),
        row_fields.int_field(row, "maxRetries") + 1,
    )
    counted = look.calls.get(_lane(look.run, row)) if look.calls else None
    dependencies = row_fields.text_list_field(row, "dependencies")
    return {
        "id": row_fields.text_field(row, "taskId"),
        "title": row_fields.text_field(row, "title"),
        "status": status.value,
        "running": status in EXECUTING and _is_held(row, look.now),
        "attempts": attempt,
        "max_attempts": tries + row_fields.int_field(row, "integrationRetries"),
        "score": float(score) if isinstance(score, int | float) else None,
        "criteria": evidence.criteria_counts(row),
        "tool_calls": row_fields.int_field(row, "workerToolCalls") if counted is None else counted,
        "limit": call_limit(row_fields.maybe_whole(row, "estimatedToolCalls")),
        "cause": row_fields.text_field(row, "cause"),
        "blocked_by": row_fields.text_field(row, "blockedBy"),
        "waiting_for": _unmet(dependencies, look.status) if status is TaskStatus.PENDING else [],
        "dependencies": dependencies,
    }


def _is_held(row: Row, now: str) -> bool:
    return row_fields.text_field(row, "expiresAt") > now and bool(
        row_fields.text_field(row, "lockedBy")
    )


def _unmet(dependencies: Sequence[str], status: Mapping[str, str]) -> list[str]:
    """Return the dependencies that a pending task still waits for."""
    done = TaskStatus.COMPLETED.value
    return [d for d in dependencies if status.get(d) != done]


def _elapsed(row: Row, shown: RunStatus, now: datetime) -> float:
    """Return how long a run took, or has taken so far; for a paused one what its processes counted, if they could."""
    started, finished = (
        row_fields.text_field(row, "createdAt"),
        row_fields.text_field(row, "finishedAt"),
    )
    used = row_fields.float_field(row, "secondsUsed")
    if shown is RunStatus.PAUSED and used:
        return round(used, 3)
    end = moment(finished) if finished else now
    return round(max(0.0, (end - moment(started)).total_seconds()), 3)
