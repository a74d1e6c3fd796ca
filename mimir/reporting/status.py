"""State of a run as scripts and the live view read it: `status --json`.

It reads a few properties of each task. Attempts and verdicts would be megabytes in a large run.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from mimir.domain import money
from mimir.domain.agent import ASK_TOOL, NOTE_TOOL
from mimir.domain.clock import moment
from mimir.domain.ids import lane_id
from mimir.domain.json_value import as_object, as_objects
from mimir.domain.question_states import OPEN
from mimir.domain.run import INPUT
from mimir.domain.task_states import (
    EXECUTING,
    RUN_ENDED,
    RunStatus,
    TaskStatus,
    shown_state,
)
from mimir.domain.tool_call_limit import call_limit
from mimir.domain.value_class import value_class
from mimir.errors import StoreError
from mimir.store import run_reading
from mimir.store.protocol import ReadOps
from mimir.store.records.run_records import RunRecord
from mimir.store.records.task_records import TaskStatusRecord

SCHEMA = 1
"""Grows with every change that could break a script; added members do not."""


def read_status(
    reads: ReadOps, run: str, dead: Collection[str], now: datetime
) -> Mapping[str, object]:
    """Return the status of a run, as `shape`; `dead` are owners whose process is dead."""
    shown = run_reading.load_run(reads, run).shown_status(reads.now(), dead)
    return shape(reads, run, shown, now)


@value_class
class _StatusLookup:
    """Facts that are looked up once for all tasks."""

    run: str
    status: Mapping[str, TaskStatus]
    """Task → status."""
    calls: Mapping[str, int]
    """Transcript → tool calls so far, of tasks that are not completed."""
    now: str
    is_read_only: bool
    """True: the tasks have no criteria."""
    is_todo_list: bool = False


def shape(reads: ReadOps, run: str, shown: RunStatus, now: datetime) -> dict[str, object]:
    """Return the state of a run as JSON values.

    Args:
        reads: One view of the store.
        run: Its id.
        shown: Status for the user: a running run that no process serves is paused.
        now: For the elapsed time of a running run.

    Raises:
        StoreError: There is no such run, or it cannot be read.
    """
    record = run_reading.load_record(reads, RunRecord, run)
    if record is None:
        raise StoreError(f"There is no run {run!r}.")
    tasks = run_reading.find_records(reads, TaskStatusRecord, {"runId": run}, order=("seq",))
    lookup = _StatusLookup(
        run=run,
        status={task.task_id: task.status for task in tasks},
        calls=_count_open_calls(reads, run, tasks),
        now=reads.now(),
        is_read_only=record.is_read_only,
        is_todo_list=record.is_todo_list,
    )
    asked = _shape_questions(reads, record, tasks)
    state = shown_state(shown, is_read_only=record.is_read_only)
    has_stopped = shown in RUN_ENDED or shown is RunStatus.PAUSED
    return {
        "schema": SCHEMA,
        "run": run,
        "kind": record.kind,
        "status": state,
        "outcome": state if has_stopped else None,
        "title": record.display_title,
        "plan": record.plan_path,
        "reason": record.pause_reason,
        "message": _message(record, as_objects(asked.get("questions"))),
        "broken_checks": list(record.broken_checks) if shown in RUN_ENDED else [],
        "apply": as_object(record.settings.mapping().get("run")).get("apply"),
        "seal": record.seal if shown in RUN_ENDED else "",
        "started": record.created_at,
        "elapsed_seconds": _elapsed_seconds(record, shown, now),
        "calls": record.calls_used,
        "max_calls": record.max_calls,
        "tokens": record.tokens_used,
        "max_tokens": record.max_tokens,
        # Without prices the cost is unknown, not zero; calls of `unpriced` models are not in it.
        "cost": money.format_money(record.cost_used) if record.prices or record.cost_used else None,
        "max_cost": None if record.max_cost is None else money.format_money(record.max_cost),
        "unpriced": list(record.unpriced) if record.prices else [],
        "tasks": [_task(task, lookup) for task in tasks],
        **_date_of_prices(record),
        **({"read_only": True} if record.is_read_only else {}),
        **({"todo_list": True} if record.is_todo_list else {}),
        **({"queued": True} if record.is_queued else {}),
        **asked,
    }


def _shape_questions(
    reads: ReadOps, record: RunRecord, tasks: Sequence[TaskStatusRecord]
) -> Mapping[str, object]:
    """Return questions and state triangle as members of the status; empty: there are none."""
    may_note = any(ASK_TOOL in one.tools or NOTE_TOOL in one.tools for one in tasks)
    if not (may_note or run_reading.has_questions(reads, record.id)):
        return {}
    # Most runs have neither; a look at them need not wait for these imports.
    from mimir.reporting.questions import shape_questions

    return shape_questions(reads, record, tasks)


def _message(record: RunRecord, questions: Sequence[Mapping[str, object]]) -> str:
    """Return why a run is paused, with the answers that came since."""
    if record.is_todo_list and record.status not in RUN_ENDED:
        return "Clients of the server work on this todo list; the items that they mark as done are not proven."
    # The stored message is that of the pause: it names questions that may be answered by now.
    is_answered = bool(questions) and all(one["state"] != OPEN for one in questions)
    if record.pause_reason == INPUT and is_answered:
        return "Every question is answered; the run can continue."
    return record.pause_message


def _date_of_prices(record: RunRecord) -> Mapping[str, object]:
    date = money.date_of_prices(record.prices.mapping()) if record.prices else ""
    return {"prices_as_of": date} if date else {}


def _count_open_calls(
    reads: ReadOps, run: str, tasks: Sequence[TaskStatusRecord]
) -> Mapping[str, int]:
    """Count the tool calls of attempts that are not accepted; a completed task stores its own."""
    transcripts = [
        _transcript(run, task)
        for task in tasks
        if task.attempt_number and task.status is not TaskStatus.COMPLETED
    ]
    return run_reading.count_tool_calls(reads, transcripts, run=run)


def _transcript(run: str, task: TaskStatusRecord) -> str:
    return lane_id(run, task.task_id, task.attempt_number, "worker")


def _task(task: TaskStatusRecord, lookup: _StatusLookup) -> dict[str, object]:
    # The task stores the calls of its last answer: a working attempt has newer ones.
    calls = lookup.calls.get(_transcript(lookup.run, task)) if lookup.calls else None
    unmet = [d for d in task.dependencies if lookup.status.get(d) is not TaskStatus.COMPLETED]
    is_held = task.status in EXECUTING and task.is_held_at(lookup.now)
    # The phase of a todo is kept when its lock ends, but no client works on it.
    is_free = lookup.is_todo_list and task.status in EXECUTING and not is_held
    status = TaskStatus.PENDING if is_free else task.status
    return {
        "id": task.task_id,
        "title": task.title,
        "status": shown_state(status, is_read_only=lookup.is_read_only),
        "running": is_held,
        "attempts": task.attempt_number,
        "max_attempts": task.max_retries + 1 + task.integration_retries,
        "score": None if lookup.is_read_only or task.qc_score is None else float(task.qc_score),
        "criteria": task.criteria.as_json(),
        "checks": list(task.check_results),
        "tool_calls": task.worker_tool_calls if calls is None else calls,
        "limit": call_limit(task.estimated_tool_calls),
        "cause": task.cause,
        "blocked_by": task.blocked_by,
        **({"question": task.waits_for} if task.waits_for else {}),
        "waiting_for": unmet if task.status is TaskStatus.PENDING else [],
        "dependencies": list(task.dependencies),
    }


def _elapsed_seconds(record: RunRecord, shown: RunStatus, now: datetime) -> float:
    """Return the time that a run took so far; for a paused run, as its processes counted it."""
    # A pause takes no time: the clock of a paused run shows the sum of its processes.
    if shown is RunStatus.PAUSED and record.seconds_used:
        return round(record.seconds_used, 3)
    end = moment(record.finished_at) if record.finished_at else now
    return round(max(0.0, (end - moment(record.created_at)).total_seconds()), 3)
