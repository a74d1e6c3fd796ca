"""Details of a run, a task or an attempt for `mimir show`, from the store alone."""

from collections.abc import Mapping

from mimir.domain import money
from mimir.domain.clock import moment
from mimir.errors import UsageError
from mimir.orchestrator.runs.listing import match_id
from mimir.orchestrator.runs.subjects import Subject
from mimir.reporting import details
from mimir.store.operations.record_loading import (
    load_check_runs,
    load_task_attempts,
    load_tasks,
)
from mimir.store.protocol import ReadOps, Where
from mimir.store.records.call_records import CallOverviewRecord
from mimir.store.records.task_records import TaskRecord
from mimir.store.run_reading import find_records, load_run


def show_task(reads: ReadOps, subject: Subject) -> Mapping[str, object]:
    """Return a task, or one attempt of it, as JSON values."""
    run, task = subject.run, subject.task
    record = next(one for one in load_tasks(reads, run, TaskRecord) if one.task_id == task)
    attempts = load_task_attempts(reads, run, task)
    if subject.attempt:
        one = next(one for one in attempts if one.number == subject.attempt)
        return details.describe_attempt(record, one)
    return details.describe_task(record, attempts)


def list_calls(reads: ReadOps, subject: Subject) -> list[Mapping[str, object]]:
    """Return the model and tool calls of a subject in the order of their transcripts."""
    task: Where = {"task": subject.task} if subject.task else {}
    attempt: Where = {"attempt": subject.attempt} if subject.attempt else {}
    where: Where = {"runId": subject.run, **task, **attempt}
    return [
        _call(one) for one in find_records(reads, CallOverviewRecord, where, order=("lane", "seq"))
    ]


def _call(call: CallOverviewRecord) -> Mapping[str, object]:
    seconds = None
    if call.started_at and call.finished_at:
        seconds = round((moment(call.finished_at) - moment(call.started_at)).total_seconds(), 3)
    return {
        "task": call.task,
        "attempt": call.attempt,
        "role": call.role,
        "call": call.number,
        "kind": call.kind,
        "tool": call.tool,
        "title": call.title,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "cost": None if call.cost is None else money.format_money(call.cost),
        "seconds": seconds,
        "done": call.is_done,
    }


def list_outputs(reads: ReadOps, subject: Subject, check: str) -> list[Mapping[str, object]]:
    """Return the runs of a check with the kept end of their output, oldest first.

    Raises:
        UsageError: The subject has no such check.
    """
    runs = [
        (record, record.check_run())
        for record in load_check_runs(reads, subject.run)
        if _belongs(record.place, subject)
    ]
    titles = {result.check: "" for _, result in runs}
    found = match_id(check, titles, "checks")
    if not found:
        known = ", ".join(titles) or "none ran yet"
        raise UsageError(f"There is no check {check[:80]!r} here.", next_step=f"Checks: {known}.")
    return [
        details.describe_check_run(result, record.place)
        for record, result in runs
        if result.check == found
    ]


def _belongs(place: str, subject: Subject) -> bool:
    """Return whether a check run belongs to a subject; a place is `TASK/ATTEMPT OWNER`."""
    attempt, _, owner = place.partition(" ")
    if not subject.task or subject.task != (owner or attempt.partition("/")[0]):
        return not subject.task
    return subject.attempt == 0 or attempt == f"{subject.task}/{subject.attempt}"


def find_trees(reads: ReadOps, subject: Subject) -> tuple[str, str]:
    """Return the trees before and after the work of a subject; empty: nothing was delivered."""
    if not subject.task:
        run = load_run(reads, subject.run)
        return run.base_tree, run.head_tree
    attempts = load_task_attempts(reads, subject.run, subject.task)
    wanted = [one for one in attempts if subject.attempt in (0, one.number)]
    # Without a number: the accepted attempt is the newest one with a deliverable.
    delivered = [trees for one in wanted if (trees := details.trees_of(one))]
    return delivered[-1] if delivered else ("", "")
