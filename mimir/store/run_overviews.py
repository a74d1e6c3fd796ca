"""Overviews of runs for lists, without the imports of the operations that change runs."""

from collections.abc import Mapping

from mimir.domain.task_states import TaskStatus
from mimir.store.protocol import ReadOps
from mimir.store.records.record_codec import decode_all, selection
from mimir.store.records.run_records import RunOverviewRecord
from mimir.store.schema import NodeLabel


def load_run_overviews(reads: ReadOps, project_id: str) -> list[RunOverviewRecord]:
    """Load the overviews of a project's runs, newest first."""
    where, only = {"projectId": project_id}, selection(RunOverviewRecord)
    rows = reads.find(NodeLabel.RUN, where, order=("-createdAt", "-seq"), only=only)
    return decode_all(RunOverviewRecord, rows)


def count_completed_tasks(reads: ReadOps) -> Mapping[str, int]:
    """Count the completed tasks by run; a run without any is left out."""
    return reads.counts(NodeLabel.TASK, "runId", {"status": TaskStatus.COMPLETED.value})


def count_model_calls(reads: ReadOps, run: str) -> Mapping[str, int]:
    """Count the model calls of a run by task; its own agents count as `PLAN_TASK`."""
    return reads.counts(NodeLabel.CALL, "task", {"runId": run, "kind": "model"})
