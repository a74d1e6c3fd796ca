"""Highlights of the demo: mistakes of its models that the engine caught."""

import re
from collections.abc import Iterator

from mimir.demo.narration import (
    NarrationLine,
    find_error_line,
    find_failed_checks,
    find_shared_files,
    quote,
    was_judged_again,
)
from mimir.domain.task_states import TaskStatus
from mimir.reporting.summary.run_data import AttemptData, RunData, TaskData

# The false claim of task-1.4 in the model script.
_CLAIM = re.compile(r"\btests? pass", re.IGNORECASE)


def find_highlights(data: RunData) -> list[NarrationLine]:
    """Return the highlights by task; empty if nothing went wrong."""
    return [
        NarrationLine(subject=task.id, text=text)
        for task in data.tasks
        for text in _task_highlights(task, data)
    ]


def _task_highlights(task: TaskData, data: RunData) -> Iterator[str]:
    for attempt in task.attempts:
        yield from _attempt_highlights(task, attempt)
    accepted = next((a for a in task.attempts if a.number == task.accepted), None)
    shared = find_shared_files(task, data)
    if accepted and shared and was_judged_again(accepted):
        other, path = shared[0]
        yield f"changed {path} at the same time as {other}; merged, checked and judged again."


def _attempt_highlights(task: TaskData, attempt: AttemptData) -> Iterator[str]:
    red = find_failed_checks(attempt)
    if red:
        claim = attempt.work.answer if attempt.work else ""
        if _CLAIM.search(claim):
            code = red[0].after.exit_code
            yield f"claimed {quote(claim)}; the engine ran the tests: exit code {code}."
        if task.status is TaskStatus.COMPLETED and task.accepted > attempt.number:
            yield (
                f"attempt {attempt.number} failed its check: {find_error_line(red[0].after)}; "
                f"attempt {task.accepted} received this output and passed."
            )
    if attempt.trip and task.accepted == attempt.number:
        yield f"its circuit breaker tripped: {attempt.trip.detail}; its work up to then passed."


def proof_line(data: RunData) -> str:
    """Return the amount of proof in one line."""
    done = sum(task.status is TaskStatus.COMPLETED for task in data.tasks)
    attempts = sum(len(task.attempts) for task in data.tasks)
    chains = [attempt.evidence for task in data.tasks for attempt in task.attempts]
    records = [record for chain in (*chains, data.gate_evidence) for record in chain]
    check_runs = sum(record.kind == "check" for record in records)
    return (
        f"{done} of {len(data.tasks)} tasks completed in {attempts} attempts; "
        f"{check_runs} check runs, {len(records)} sealed records"
    )
