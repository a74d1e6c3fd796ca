"""Pause of a run in which only answers of the user can continue a task."""

from collections.abc import Sequence

from mimir.domain.call_outcome import outcome_of_closing
from mimir.domain.question import QuestionClosing
from mimir.domain.run import INPUT
from mimir.domain.task_states import TERMINAL, RunStatus, TaskStatus
from mimir.errors import Paused, StoreError
from mimir.scheduling import lifecycle
from mimir.store.operations.claim_candidates import FREE, HELD, WAITING
from mimir.store.operations.record_loading import load_run, load_tasks
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.questions import question_rows
from mimir.store.records.question_records import QuestionRecord
from mimir.store.records.task_records import TaskProgressRecord
from mimir.store.transcripts.waiting_calls import close_question

SHOWN = 5
"""Questions that a message names."""


def pause_for_input(ops: WriteOps, run: str, owner: str) -> Paused | None:
    """Pause a run whose open tasks all wait for answers; None: a task can continue.

    Claim states are read in the transaction of the pause, so no answer is missed. Questions that have expired are closed instead.

    Raises:
        StoreError: A task waits for a question that is gone.
    """
    record = load_run(ops, run)
    if record.coordinator != owner or record.status is not RunStatus.RUNNING:
        return None
    tasks = load_tasks(ops, run, TaskProgressRecord)
    # Tasks of other processes count too; an answer that has just come frees its task.
    if any(t.claim_state in (FREE, HELD) and t.status not in TERMINAL for t in tasks):
        return None
    found = [one for one in question_rows.load_open(ops, run) if one.is_blocking]
    due = expire_due(ops, run)
    waiting = [task.task_id for task in tasks if task.claim_state == WAITING]
    if due or not waiting:
        return None
    # Without this check the run would wait without end.
    if not found:
        raise StoreError(
            f"Task {waiting[0]!r} waits for a question that is not in the store.",
            next_step=f"Find the change: mimir verify {run}",
        )
    done = sum(task.status is TaskStatus.COMPLETED for task in tasks)
    paused = Paused(
        _describe(found, done, len(tasks)),
        reason=INPUT,
        next_step=answer_step(run),
    )
    # The time of this process is added when it leaves the run.
    lifecycle.write_pause(ops, record, paused, 0.0)
    return paused


def answer_step(run: str) -> str:
    """Return the next step of a run that is paused for answers."""
    return f"Answer: mimir inbox  Then continue: mimir resume {run}"


def find_due(reads: ReadOps, run: str) -> list[QuestionRecord]:
    """Return the questions that tasks wait for and whose time is over."""
    # By the store's time, as they were asked: clocks of processes may differ.
    now = reads.now()
    return [
        one
        for one in question_rows.load_open(reads, run)
        if one.is_blocking and one.expires_at and one.expires_at <= now
    ]


def expire_due(ops: WriteOps, run: str) -> int:
    """Close the questions whose time is over, with their defaults; return how many."""
    due = find_due(ops, run)
    for one in due:
        closing = QuestionClosing(state="expired", values=one.default_values, by="", transport="")
        close_question(ops, one.id, closing, outcome_of_closing(closing))
    return len(due)


def pause_planning(ops: WriteOps, run: str, owner: str) -> Paused | None:
    """Decide that a planning run pauses for an answer; None: it has come already.

    The caller writes the pause. An answer that comes between the two does no harm: a resume finds it.
    """
    found = [one for one in question_rows.load_open(ops, run) if one.is_blocking]
    lifecycle.must_lead(ops, run, owner)
    if not found:
        return None
    return Paused(
        _name_open(found),
        reason=INPUT,
        next_step=answer_step(run),
    )


def _describe(found: Sequence[QuestionRecord], done: int, tasks: int) -> str:
    return f"{_name_open(found).removesuffix('.')}; {done} of {tasks} tasks are done."


def _name_open(found: Sequence[QuestionRecord]) -> str:
    names = ", ".join(one.id for one in found[:SHOWN])
    more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    are = "1 question is" if len(found) == 1 else f"{len(found)} questions are"
    return f"{are} open ({names}{more})."
