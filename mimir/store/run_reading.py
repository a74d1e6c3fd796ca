"""Reads of runs and records without the imports of the operations that change runs."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from mimir.domain.question_states import OPEN
from mimir.domain.task_states import TaskStatus
from mimir.errors import UsageError
from mimir.store.protocol import ReadOps, Row, Where
from mimir.store.records.record_codec import StoredRecord, decode, decode_all, selection
from mimir.store.records.run_records import RunOverviewRecord, RunRecord
from mimir.store.schema import NodeLabel

R = TypeVar("R", bound=StoredRecord)

NEWEST_FIRST = ("-createdAt", "-seq")


def load_record(reads: ReadOps, kind: type[R], id: str) -> R | None:
    """Load one record by the id of its node; None if there is none."""
    row = reads.get(kind.label, id)
    return None if row is None else decode(kind, row)


def find_records(
    reads: ReadOps,
    kind: type[R],
    where: Where,
    *,
    order: Sequence[str] = (),
    limit: int | None = None,
) -> list[R]:
    """Load the records that match; `where` and `order` use stored names."""
    rows = reads.find(kind.label, where, order=order, limit=limit, only=selection(kind))
    return decode_all(kind, rows)


def load_run(reads: ReadOps, run: str) -> RunRecord:
    """Load a run without its plan."""
    return decode(RunRecord, load_run_row(reads, run))


def load_run_row(reads: ReadOps, run: str) -> Row:
    """Load the properties of a run."""
    row = reads.get(NodeLabel.RUN, run)
    if row is not None:
        return row
    # A mistyped id is the usual cause.
    ids = [str(one["id"]) for one in reads.find(NodeLabel.RUN, {}, order=NEWEST_FIRST)]
    near = difflib.get_close_matches(run, ids, n=3, cutoff=0.5) or ids[:3]
    step = f"Nearest: {', '.join(near)}." if near else "No run was made here yet: `mimir execute`."
    raise UsageError(f"There is no run {run[:80]!r}.", next_step=step)


def count_tool_calls(
    reads: ReadOps, transcripts: Collection[str], *, run: str = "", done_only: bool = False
) -> dict[str, int]:
    """Count the tool calls of transcripts; one without any is left out."""
    if not transcripts:
        return {}
    in_run: Where = {"runId": run} if run else {}
    done: Where = {"done": True} if done_only else {}
    where: Where = {**in_run, "lane": ("in", list(transcripts)), "kind": "tool", **done}
    return reads.counts(NodeLabel.CALL, "lane", where)


def load_run_overviews(reads: ReadOps, project_id: str) -> list[RunOverviewRecord]:
    """Load the overviews of a project's runs, newest first."""
    where: Where = {"projectId": project_id}
    return find_records(reads, RunOverviewRecord, where, order=NEWEST_FIRST)


def count_completed_tasks(reads: ReadOps) -> Mapping[str, int]:
    """Count the completed tasks by run; a run without any is left out."""
    return reads.counts(NodeLabel.TASK, "runId", {"status": TaskStatus.COMPLETED.value})


def has_questions(reads: ReadOps, run: str) -> bool:
    """Return whether a question was asked in a run."""
    return bool(reads.find(NodeLabel.QUESTION, {"runId": run}, limit=1, only=("id",)))


def count_open_questions(reads: ReadOps, project_id: str) -> Mapping[str, int]:
    """Count the open questions of a project by run; a run without any is left out."""
    return reads.counts(NodeLabel.QUESTION, "runId", {"projectId": project_id, "state": OPEN})


def count_model_calls(reads: ReadOps, run: str) -> Mapping[str, int]:
    """Count the model calls of a run by task; its own agents count as `PLAN_TASK`."""
    return reads.counts(NodeLabel.CALL, "task", {"runId": run, "kind": "model"})
