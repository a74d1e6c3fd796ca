"""What the demo was made to show, found in what the store holds of the run: what went wrong on the way, and was caught. Pure."""

import re
from collections.abc import Iterator

from mimir.demo.narration import (
    NarrationLine,
    find_failed_checks,
    find_shared_files,
    judged_again,
    quote,
    trouble,
)
from mimir.domain.evidence import EvidenceRecord
from mimir.domain.task_states import TaskStatus
from mimir.reporting.summary.run_data import AttemptData, RunData, TaskData

_CLAIM = re.compile(r"\btests? pass", re.IGNORECASE)


def find_highlights(data: RunData) -> list[NarrationLine]:
    """Return them task by task; empty where nothing went wrong."""
    return [line for task in data.tasks for line in _of(task, data)]


def _of(task: TaskData, data: RunData) -> Iterator[NarrationLine]:
    for attempt in task.attempts:
        for said in _of_attempt(task, attempt):
            yield NarrationLine(who=task.id, said=said)
    accepted = next((a for a in task.attempts if a.number == task.accepted), None)
    both = find_shared_files(task, data)
    if accepted and both and judged_again(accepted):
        other, path = both[0]
        yield NarrationLine(
            who=task.id,
            said=f"and {other} changed {path} at the same time: merged, checked and judged again.",
        )


def _of_attempt(task: TaskData, attempt: AttemptData) -> Iterator[str]:
    red = find_failed_checks(attempt)
    if red:
        claim = attempt.work.answer if attempt.work else ""
        if _CLAIM.search(claim):
            yield f"claimed {quote(claim)}; the engine ran them: exit {red[0].after.exit_code}. Caught."
        if task.status is TaskStatus.COMPLETED and task.accepted > attempt.number:
            yield (
                f"attempt {attempt.number} failed its check: {trouble(red[0].after)}; "
                f"attempt {task.accepted} was shown that and passed."
            )
    if attempt.trip and task.accepted == attempt.number:
        yield f"its breaker tripped: {attempt.trip.detail}; what it had made by then passed."


def proof_line(data: RunData) -> str:
    """Return in a line what was proven, and by how much."""
    done = sum(task.status is TaskStatus.COMPLETED for task in data.tasks)
    attempts = sum(len(task.attempts) for task in data.tasks)
    chains = [attempt.evidence for task in data.tasks for attempt in task.attempts]
    chains.append(data.gate_evidence)
    records: list[EvidenceRecord] = [record for chain in chains for record in chain]
    ran = sum(record.kind == "check" for record in records)
    return (
        f"{done} of {len(data.tasks)} tasks completed in {attempts} attempts; "
        f"{ran} runs of checks, {len(records)} sealed records"
    )
