"""Statuses of a task and the one table of legal transitions. Pure.

The attempt machine, the guard of the store and the diagram in the documents are made from `MOVES`.
"""

from collections.abc import Mapping
from enum import StrEnum

from mimir.errors import IllegalMove


class TaskStatus(StrEnum):
    """Status of a task."""

    PENDING = "pending"
    WORKER_EXECUTING = "worker_executing"
    WORKER_COMPLETED = "worker_completed"
    QC_EXECUTING = "qc_executing"
    QC_PASSED = "qc_passed"
    QC_FAILED = "qc_failed"
    PREPARING_RETRY = "preparing_retry"
    COMPLETED = "completed"
    FAILED = "failed"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"


class TransitionActor(StrEnum):
    """The part that makes a transition."""

    WORKER = "worker"
    MACHINE = "machine"
    SCHEDULING = "scheduling"
    """The lease holder after the machine, or the coordinator."""


class Cause(StrEnum):
    """Cause of a task without completion, or of a rejected attempt."""

    QC_REJECTED = "qc_rejected"
    CHECK_FAILED = "check_failed"
    SILENT_NO_OP = "silent_no_op"
    REFUSED_DELIVERABLE = "refused_deliverable"
    INVALID_ANSWER = "invalid_answer"
    MODEL_ERROR = "model_error"
    PROGRAM_ERROR = "program_error"
    TIME = "time"
    NO_PROGRESS = "no_progress"
    CRITERIA_IMPOSSIBLE = "criteria_impossible"
    UNVERIFIABLE = "unverifiable"
    QC_UNAVAILABLE = "qc_unavailable"
    INTEGRATION = "integration"
    REJECTED = "rejected"
    WORKER_DIED = "worker_died"
    DEPENDENCY = "dependency"
    CANCELLED = "cancelled"


S = TaskStatus

# Statuses during an attempt; with a live lease the task is "running".
EXECUTING = (S.WORKER_EXECUTING, S.WORKER_COMPLETED, S.QC_EXECUTING, S.QC_PASSED, S.QC_FAILED)
# Nodes of the attempt machine; the others are its exits.
NODES = (S.WORKER_EXECUTING, S.WORKER_COMPLETED, S.QC_EXECUTING)
TERMINAL = (S.COMPLETED, S.FAILED, S.BLOCKED, S.CANCELLED)

_M, _S, _W = TransitionActor.MACHINE, TransitionActor.SCHEDULING, TransitionActor.WORKER

# `MOVES[from][to]` is the part that makes the transition; anything else is illegal.
MOVES: Mapping[TaskStatus, Mapping[TaskStatus, TransitionActor]] = {
    S.PENDING: {S.WORKER_EXECUTING: _W, S.COMPLETED: _S, S.BLOCKED: _S, S.CANCELLED: _S},
    S.WORKER_EXECUTING: {
        S.WORKER_COMPLETED: _M,
        S.PREPARING_RETRY: _S,
        S.FAILED: _S,
        S.CANCELLED: _S,
    },
    S.WORKER_COMPLETED: {S.QC_EXECUTING: _M, S.FAILED: _S, S.CANCELLED: _S},
    S.QC_EXECUTING: {S.QC_PASSED: _M, S.QC_FAILED: _M, S.FAILED: _M, S.CANCELLED: _S},
    S.QC_PASSED: {S.COMPLETED: _S, S.PREPARING_RETRY: _S, S.FAILED: _S, S.CANCELLED: _S},
    S.QC_FAILED: {S.PREPARING_RETRY: _S, S.FAILED: _S, S.CANCELLED: _S},
    # A retry is claimed like a new task.
    S.PREPARING_RETRY: {S.WORKER_EXECUTING: _W, S.CANCELLED: _S},
    S.COMPLETED: {},
    S.FAILED: {},
    S.BLOCKED: {},
    S.CANCELLED: {},
}


def guard(at: TaskStatus, to: TaskStatus, mover: TransitionActor) -> None:
    """Raise IllegalMove unless the table allows this transition to this actor."""
    allowed = MOVES[at].get(to)
    # A lost process (`worker_died`) ends any executing status, also `qc_executing`.
    died = at in EXECUTING and to is S.FAILED and mover is TransitionActor.SCHEDULING
    if allowed is None or (allowed is not mover and not died):
        raise IllegalMove(f"{mover.value} may not move a task from {at.value!r} to {to.value!r}.")


class RunStatus(StrEnum):
    """Status of a run; `paused` and the last four are its outcomes."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    COMPLETED_WITH_GAPS = "completed_with_gaps"
    FAILED = "failed"
    CANCELLED = "cancelled"


ANSWERED = "answered"
"""Displayed instead of `completed` where nothing decided the result."""

RUN_ENDED = (
    RunStatus.COMPLETED,
    RunStatus.COMPLETED_WITH_GAPS,
    RunStatus.FAILED,
    RunStatus.CANCELLED,
)


def shown_state(status: TaskStatus | RunStatus, *, is_read_only: bool) -> str:
    """Return the displayed word of a status: read-only work is answered, never completed."""
    is_done = status in (TaskStatus.COMPLETED, RunStatus.COMPLETED)
    return ANSWERED if is_done and is_read_only else status
