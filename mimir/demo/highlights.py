"""What the demo was made to show, found in what the store holds of the run: what went wrong on the way, and was caught. Pure."""

import re
from collections.abc import Iterator

from mimir.demo.narration import Line, failed, judged_again, quote, shared, trouble
from mimir.domain.evidence import Record
from mimir.domain.task_states import Status
from mimir.reporting.summary.run_data import AttemptData, RunData, TaskData

_CLAIM = re.compile(r"\btests? pass", re.IGNORECASE)


def moments(data: RunData) -> list[Line]:
    """Return them task by task; empty where nothing went wrong."""
    return [line for task in data.tasks for line in _of(task, data)]


def _of(task: TaskData, data: RunData) -> Iterator[Line]:
    for attempt in task.attempts:
        for said in _of_attempt(task, attempt):
            yield Line(who=task.id, said=said)
    accepted = next((a for a in task.attempts if a.number == task.accepted), None)
    both = shared(task, data)
    if accepted and both and judged_again(accepted, data):
        other, path = both[0]
        yield Line(
            who=task.id,
            said=f"and {other} changed {path} at the same time: merged, checked and judged again.",
        )


def _of_attempt(task: TaskData, attempt: AttemptData) -> Iterator[str]:
    red = failed(attempt)
    if red:
        claim = attempt.work.answer if attempt.work else ""
        if _CLAIM.search(claim):
            yield f"claimed {quote(claim)}; the engine ran them: exit {red[0].after.exit_code}. Caught."
        if task.status is Status.COMPLETED and task.accepted > attempt.number:
            yield (
                f"attempt {attempt.number} failed its check: {trouble(red[0].after)}; "
                f"attempt {task.accepted} was shown that and passed."
            )
    if attempt.trip and task.accepted == attempt.number:
        yield f"its breaker tripped: {attempt.trip.detail}; what it had made by then passed."


def counted(data: RunData) -> str:
    """Return in a line what was proven, and by how much."""
    done = sum(task.status is Status.COMPLETED for task in data.tasks)
    attempts = sum(len(task.attempts) for task in data.tasks)
    records: list[Record] = [record for chain in data.evidence.values() for record in chain]
    ran = sum(record.kind == "check" for record in records)
    return (
        f"{done} of {len(data.tasks)} tasks completed in {attempts} attempts; "
        f"{ran} runs of checks, {len(records)} sealed records"
    )
