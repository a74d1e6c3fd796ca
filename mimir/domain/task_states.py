"""Statuses of a task and the one table of legal moves.

The attempt machine, the store's guard and the diagram in the docs are made from `MOVES`. An illegal move raises and changes nothing.
"""

from collections.abc import Mapping
from enum import StrEnum

from mimir.errors import IllegalMove


class TaskStatus(StrEnum):
    """Where a task stands."""

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
    """Who may make a move."""

    WORKER = "worker"
    """The claim."""
    MACHINE = "machine"
    """A node of the attempt machine."""
    SCHEDULING = "scheduling"
    """The lease's holder after the machine, or the coordinator."""


class Cause(StrEnum):
    """Why a task ended without being completed, or why an attempt was rejected."""

    QC_REJECTED = "qc_rejected"
    CHECK_FAILED = "check_failed"
    SILENT_NO_OP = "silent_no_op"
    REFUSED_DELIVERABLE = "refused_deliverable"
    INVALID_ANSWER = "invalid_answer"
    MODEL_ERROR = "model_error"
    NO_PROGRESS = "no_progress"
    CRITERIA_IMPOSSIBLE = "criteria_impossible"
    UNVERIFIABLE = "unverifiable"
    QC_UNAVAILABLE = "qc_unavailable"
    INTEGRATION = "integration"
    WORKER_DIED = "worker_died"
    DEPENDENCY = "dependency"
    CANCELLED = "cancelled"


S = TaskStatus

EXECUTING = (S.WORKER_EXECUTING, S.WORKER_COMPLETED, S.QC_EXECUTING, S.QC_PASSED, S.QC_FAILED)
"""Phases in which an attempt is under way; with a live lease the task is "running"."""
NODES = (S.WORKER_EXECUTING, S.WORKER_COMPLETED, S.QC_EXECUTING)
"""Phases that are nodes of the attempt machine; the others are its exits."""
TERMINAL = (S.COMPLETED, S.FAILED, S.BLOCKED, S.CANCELLED)
CLAIMABLE = (S.PENDING, S.PREPARING_RETRY, *EXECUTING)

_OPEN = (S.PENDING, *EXECUTING, S.PREPARING_RETRY)
_M, _S, _W = TransitionActor.MACHINE, TransitionActor.SCHEDULING, TransitionActor.WORKER

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
    S.PREPARING_RETRY: {S.WORKER_EXECUTING: _W, S.CANCELLED: _S},
    S.COMPLETED: {},
    S.FAILED: {},
    S.BLOCKED: {},
    S.CANCELLED: {},
}
"""`MOVES[from][to]` is who makes the move; what is not there is illegal. `worker_died` (scheduling) may end any executing phase, also `qc_executing`."""


def guard(at: TaskStatus, to: TaskStatus, mover: TransitionActor) -> None:
    """Allow a move or refuse it.

    Raises:
        IllegalMove: The table has no such move, or not by this mover.
    """
    allowed = MOVES[at].get(to)
    died = at in EXECUTING and to is S.FAILED and mover is TransitionActor.SCHEDULING
    if allowed is None or (allowed is not mover and not died):
        raise IllegalMove(f"{mover.value} may not move a task from {at.value!r} to {to.value!r}.")


class RunStatus(StrEnum):
    """Where a run stands; the last four are its outcomes together with `paused`."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    COMPLETED_WITH_GAPS = "completed_with_gaps"
    FAILED = "failed"
    CANCELLED = "cancelled"


RUN_ENDED = (
    RunStatus.COMPLETED,
    RunStatus.COMPLETED_WITH_GAPS,
    RunStatus.FAILED,
    RunStatus.CANCELLED,
)
