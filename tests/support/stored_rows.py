"""Stored rows of a run as tests compare them, under their stored names."""

from collections.abc import Sequence

from mimir.store import run_reading
from mimir.store.operations import record_loading
from mimir.store.protocol import ReadOps, Row


def run_row(reads: ReadOps, run: str) -> Row:
    """Return the row of a run, with its plan in `planJson` if it has one."""
    row, plan = run_reading.load_run_row(reads, run), record_loading.find_plan_text(reads, run)
    return {**row, "planJson": plan} if plan else row


def task_rows(reads: ReadOps, run: str) -> Sequence[Row]:
    """Return the rows of a run's tasks in the plan's order."""
    return reads.find("Task", {"runId": run}, order=("seq",))


def evidence_rows(reads: ReadOps, chain: str) -> Sequence[Row]:
    """Return the rows of a chain's evidence in order."""
    return reads.find("Evidence", {"chain": chain}, order=("seq",))
