"""The table of legal moves, move by move: any move outside the list is refused."""

from itertools import product

import pytest

from mimir.domain.task_states import (
    EXECUTING,
    MOVES,
    NODES,
    RUN_ENDED,
    TERMINAL,
    RunStatus,
    TaskStatus,
    TransitionActor,
    guard,
)
from mimir.errors import IllegalMove

LEGAL = {
    ("pending", "worker_executing", "worker"),
    ("pending", "completed", "scheduling"),
    ("pending", "blocked", "scheduling"),
    ("pending", "cancelled", "scheduling"),
    ("worker_executing", "worker_completed", "machine"),
    ("worker_executing", "preparing_retry", "scheduling"),
    ("worker_executing", "failed", "scheduling"),
    ("worker_executing", "cancelled", "scheduling"),
    ("worker_completed", "qc_executing", "machine"),
    ("worker_completed", "failed", "scheduling"),
    ("worker_completed", "cancelled", "scheduling"),
    ("qc_executing", "qc_passed", "machine"),
    ("qc_executing", "qc_failed", "machine"),
    ("qc_executing", "failed", "machine"),
    ("qc_executing", "failed", "scheduling"),
    ("qc_executing", "cancelled", "scheduling"),
    ("qc_passed", "completed", "scheduling"),
    ("qc_passed", "preparing_retry", "scheduling"),
    ("qc_passed", "failed", "scheduling"),
    ("qc_passed", "cancelled", "scheduling"),
    ("qc_failed", "preparing_retry", "scheduling"),
    ("qc_failed", "failed", "scheduling"),
    ("qc_failed", "cancelled", "scheduling"),
    ("preparing_retry", "worker_executing", "worker"),
    ("preparing_retry", "cancelled", "scheduling"),
}
"""(from, to, mover), written out by hand from the contract and not from the code."""

EVERY = [(at, to, mover) for at, to, mover in product(TaskStatus, TaskStatus, TransitionActor)]


@pytest.mark.parametrize(("at", "to", "mover"), sorted(LEGAL))
def test_a_listed_move_is_allowed(at: str, to: str, mover: str):
    guard(TaskStatus(at), TaskStatus(to), TransitionActor(mover))


@pytest.mark.parametrize(
    ("at", "to", "mover"),
    [(at, to, mover) for at, to, mover in EVERY if (at, to, mover) not in LEGAL],
)
def test_every_other_move_is_refused(at: TaskStatus, to: TaskStatus, mover: TransitionActor):
    with pytest.raises(IllegalMove) as refused:
        guard(at, to, mover)
    for part in (mover.value, repr(at.value), repr(to.value)):
        assert part in str(refused.value)


def test_every_status_has_a_row():
    assert set(MOVES) == set(TaskStatus)


def test_nothing_leaves_a_terminal_status():
    assert {status for status in TaskStatus if not MOVES[status]} == set(TERMINAL)


def test_every_status_can_be_reached_from_pending():
    reached = {TaskStatus.PENDING}
    while more := {to for at in reached for to in MOVES[at]} - reached:
        reached |= more
    assert reached == set(TaskStatus)


def test_every_open_status_can_be_cancelled():
    assert all(
        TaskStatus.CANCELLED in MOVES[status] for status in TaskStatus if status not in TERMINAL
    )


def test_completed_is_reached_only_past_a_passing_verdict_or_taken_over():
    assert {at for at in TaskStatus if TaskStatus.COMPLETED in MOVES[at]} == {
        TaskStatus.QC_PASSED,
        TaskStatus.PENDING,
    }


def test_machine_moves_only_from_its_own_nodes():
    moved = {
        at for at in TaskStatus for mover in MOVES[at].values() if mover is TransitionActor.MACHINE
    }
    assert moved == set(NODES)
    assert set(NODES) < set(EXECUTING)


@pytest.mark.parametrize("ended", RUN_ENDED)
def test_a_run_that_ended_is_neither_running_nor_paused(ended: RunStatus):
    assert ended not in (RunStatus.RUNNING, RunStatus.PAUSED)
    assert len(RUN_ENDED) == len(RunStatus) - 2
