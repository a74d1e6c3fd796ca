"""Where a run stands, as scripts and the live tree read it: `status --json`. Light: task rows and sealed verdicts, no attempt is read.

Attempts hold briefs and answers, megabytes in a large run. What a status says of criteria is in the sealed verdicts anyway, and the
calls so far of a worker at work are counted by the store.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from mimir.agents.breaker import Breaker
from mimir.domain import money
from mimir.domain.attempt import EXECUTING, RUN_ENDED, RunStatus, Status
from mimir.domain.clock import moment
from mimir.domain.ids import lane_id
from mimir.errors import StoreError
from mimir.reporting.pieces.bodies import members
from mimir.reporting.pieces.counts import NO_CRITERIA, Counts, count
from mimir.store import fields, runs
from mimir.store.proof import record_of
from mimir.store.protocol import Reads, Row, Where
from mimir.store.schema import Label

SCHEMA = 1
"""Grows with every change that could break a script; added members do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What is looked up once for all tasks."""

    run: str
    status: Mapping[str, str]
    """Task → status: for what a task waits."""
    counts: Mapping[str, Counts]
    """Task → its criteria, as last judged."""
    calls: Mapping[str, int]
    """Lane → tool calls so far, of tasks whose own figure is of an earlier attempt, or not there yet."""
    now: str


def shape(reads: Reads, run: str, shown: RunStatus, now: datetime) -> dict[str, object]:
    """Return where a run stands, as JSON values.

    Args:
        reads: One view of the store.
        run: Its id.
        shown: What a person is told of its status: a run that no process serves is paused.
        now: For the time that a running run has taken so far.

    Raises:
        StoreError: There is no such run, or it cannot be read.
    """
    row = reads.get(Label.RUN, run)
    if row is None:
        raise StoreError(f"There is no run {run!r}.")
    rows = runs.tasks(reads, run)
    look = _Look(
        run=run,
        status={fields.text(r, "taskId"): fields.text(r, "status") for r in rows},
        counts=_judged(reads.find(Label.EVIDENCE, {"runId": run, "kind": "verdict"})),
        calls=_calls(reads, run, rows),
        now=reads.now(),
    )
    over = shown in RUN_ENDED or shown is RunStatus.PAUSED
    return {
        "schema": SCHEMA,
        "run": run,
        "kind": fields.text(row, "kind"),
        "status": shown.value,
        "outcome": shown.value if over else None,
        "title": fields.text(row, "title") or fields.text(row, "name"),
        "plan": fields.text(row, "planPath"),
        "reason": fields.text(row, "pauseReason"),
        "message": fields.text(row, "pauseMessage"),
        "apply": _apply(row),
        "seal": fields.text(row, "seal") if shown in RUN_ENDED else "",
        "started": fields.text(row, "createdAt"),
        "elapsed_seconds": _elapsed(row, shown, now),
        "calls": fields.whole(row, "callsUsed"),
        "max_calls": row.get("maxCalls"),
        "tokens": fields.whole(row, "tokensUsed"),
        "max_tokens": row.get("maxTokens"),
        **_money(row),
        "tasks": [_task(r, look) for r in rows],
    }


def _calls(reads: Reads, run: str, rows: Sequence[Row]) -> Mapping[str, int]:
    """Count the tool calls of the attempts that are not accepted: those of the others stand with their tasks."""
    lanes = [
        _lane(run, row) for row in rows
        if fields.whole(row, "attemptNumber") and row.get("status") != Status.COMPLETED.value
    ]  # fmt: skip
    kept: Where = {"runId": run, "kind": "tool", "lane": ("in", lanes)}
    return reads.counts(Label.CALL, "lane", kept) if lanes else {}


def _lane(run: str, row: Row) -> str:
    task, attempt = fields.text(row, "taskId"), fields.whole(row, "attemptNumber")
    return lane_id(run, task, attempt, "worker")


def _money(row: Row) -> dict[str, object]:
    """Return what a run has cost, as exact text; null: no prices are known. What `unpriced` models were asked is not in it."""
    most = fields.maybe_whole(row, "maxCost")
    return {
        "cost": money.shown(fields.whole(row, "costUsed")) if row.get("pricesJson") else None,
        "max_cost": None if most is None else money.shown(most),
        "unpriced": fields.texts(row, "unpriced") if row.get("pricesJson") else [],
    }


def _apply(row: Row) -> object:
    """Return how the result is brought into the person's files, as the run was begun with."""
    pinned = fields.mapping(row, "settingsJson").get("run")
    return cast("Mapping[str, object]", pinned).get("apply") if isinstance(pinned, dict) else None


def _task(row: Row, look: _Look) -> dict[str, object]:
    id, status = fields.text(row, "taskId"), Status(fields.text(row, "status"))
    attempt = fields.whole(row, "attemptNumber")
    counted = look.calls.get(_lane(look.run, row))
    limit = Breaker.for_estimate(fields.maybe_whole(row, "estimatedToolCalls")).limit
    score = row.get("qcScore")
    held = fields.text(row, "expiresAt") > look.now and bool(fields.text(row, "lockedBy"))
    return {
        "id": id,
        "title": fields.text(row, "title"),
        "status": status.value,
        "running": held and status in EXECUTING,
        "attempts": attempt,
        "max_attempts": fields.whole(row, "maxRetries")
        + 1
        + fields.whole(row, "integrationRetries"),
        "score": float(score) if isinstance(score, int | float) else None,
        "criteria": look.counts.get(id, NO_CRITERIA).as_json(),
        "tool_calls": fields.whole(row, "workerToolCalls") if counted is None else counted,
        "limit": limit,
        "cause": fields.text(row, "cause"),
        "blocked_by": fields.text(row, "blockedBy"),
        "waiting_for": _waiting_for(row, status, look.status),
        "dependencies": fields.texts(row, "dependencies"),
    }


def _waiting_for(row: Row, status: Status, others: Mapping[str, str]) -> list[str]:
    """Return the dependencies that a pending task still waits for."""
    if status is not Status.PENDING:
        return []
    done = Status.COMPLETED.value
    return [d for d in fields.texts(row, "dependencies") if others.get(d, "") != done]


def _judged(rows: Iterable[Row]) -> Mapping[str, Counts]:
    """Return what the newest sealed verdict of each task says of its criteria."""
    newest: dict[str, tuple[tuple[int, int], Row]] = {}
    for row in rows:
        task, attempt = _whose(row)
        place = (attempt, fields.whole(row, "seq"))
        if task not in newest or newest[task][0] < place:
            newest[task] = (place, row)
    return {task: _counts(row) for task, (_, row) in newest.items()}


def _whose(row: Row) -> tuple[str, int]:
    """Return task and attempt of a chain `run/task/attempt`; ids of tasks may hold a slash, attempts do not."""
    chain = fields.text(row, "chain").removeprefix(f"{fields.text(row, 'runId')}/")
    task, _, attempt = chain.rpartition("/")
    return task, int(attempt) if attempt.isdecimal() else 0


def _counts(row: Row) -> Counts:
    criteria = members(record_of(row)).get("criteria")
    if not isinstance(criteria, list):
        return NO_CRITERIA
    items = cast("Sequence[object]", criteria)
    given = [cast("Mapping[str, object]", item) for item in items if isinstance(item, dict)]
    return count((str(item.get("state")), str(item.get("basis"))) for item in given)


def _elapsed(row: Row, shown: RunStatus, now: datetime) -> float:
    """Return how long a run took, or has taken so far; for a paused one what its processes counted, if they could."""
    started, finished = fields.text(row, "createdAt"), fields.text(row, "finishedAt")
    used = fields.number(row, "secondsUsed")
    if shown is RunStatus.PAUSED and used:
        return round(used, 3)
    end = moment(finished) if finished else now
    return round(max(0.0, (end - moment(started)).total_seconds()), 3)
