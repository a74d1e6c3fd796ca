"""Stored invocation as its validation reads it: work, tool log, accepted checks."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from mimir.agents.tool_log import ToolLogEntry
from mimir.attempts.agent_answers.stored_tool_log import load_tool_log
from mimir.domain.deliverable import Deliverable
from mimir.domain.invocation import AGENT_TEXT, PinnedDefinition
from mimir.domain.json_value import JsonObject
from mimir.domain.plan import Task
from mimir.domain.task_states import RUN_ENDED, TaskStatus
from mimir.domain.value_class import value_class
from mimir.domain.verdict import CriterionResult, Verdict
from mimir.errors import UsageError
from mimir.orchestrator.delegation.stored_response import load_response
from mimir.qc.checks.regression import AcceptedTask
from mimir.scheduling.task_queries import load_accepted_task
from mimir.store.operations.record_loading import (
    decode_plan,
    find_json,
    load_run_with_plan,
    load_task_attempts,
    load_tasks,
)
from mimir.store.protocol import ReadOps, Where
from mimir.store.records.run_records import RunOverviewRecord, RunRecord
from mimir.store.records.task_records import AcceptedTaskRecord
from mimir.store.run_reading import find_records


@value_class
class StoredInvocation:
    """Stored form of an invocation that has ended."""

    run: RunRecord
    task: Task
    response: JsonObject
    definition: PinnedDefinition | None
    """None: it is not stored."""
    work: Deliverable | None
    """Accepted or last deliverable. None: the agent has delivered nothing."""
    criteria: Sequence[CriterionResult]
    """As the last verdict decided them."""
    accepted: AcceptedTask | None
    """None: the task is not completed."""
    tool_log: Mapping[int, ToolLogEntry]
    """Calls of the agent from its transcript."""
    refinements_left: int

    @property
    def tree(self) -> str:
        """Tree of the result; empty: there is none."""
        own = self.work.tree if self.work else ""
        return self.run.head_tree if self.run.has_merged else own


def load_invocation(
    reads: ReadOps, run: str, dead: Collection[str], now: datetime, refinements: int
) -> StoredInvocation:
    """Load an invocation that has ended; `refinements` are allowed for each task.

    Raises:
        UsageError: The run is no invocation, or has not ended.
    """
    record = load_run_with_plan(reads, run)
    if record.kind != "agent":
        raise UsageError(
            f"{run} is not an invocation.", next_step=f"Read its report: mimir report {run}"
        )
    shown = record.shown_status(reads.now(), dead)
    if shown not in RUN_ENDED:
        raise UsageError(
            f"{run} has not ended: it is {shown.value}.", next_step=f"See: mimir status {run}"
        )
    (task,) = decode_plan(record).tasks
    stored = load_tasks(reads, run, AcceptedTaskRecord)[0]
    attempts = load_task_attempts(reads, run, task.id)
    number = stored.accepted_attempt or len(attempts)
    last = next((one for one in attempts if one.number == number), None)
    pinned = find_json(reads, run, AGENT_TEXT)
    is_done = stored.status is TaskStatus.COMPLETED
    return StoredInvocation(
        run=record,
        task=task,
        response=load_response(reads, run, shown, now, ()),
        definition=pinned.value.decode(tuple[PinnedDefinition, ...])[0] if pinned else None,
        work=last.deliverable.decode(Deliverable) if last and last.deliverable else None,
        criteria=last.verdict.decode(Verdict).criteria if last and last.verdict else (),
        accepted=load_accepted_task(reads, task, stored) if is_done else None,
        tool_log=load_tool_log(reads, run, task.id, number),
        refinements_left=refinements - _count_refinements(reads, record),
    )


def _count_refinements(reads: ReadOps, run: RunRecord) -> int:
    """Count the refinements of the first run of a chain."""
    where: Where = {"projectId": run.project_id, "kind": "agent", "sessionId": run.session_id}
    refines = {one.id: one.refines for one in find_records(reads, RunOverviewRecord, where)}

    def find_origin(id: str) -> str:
        # A damaged store may hold a circle.
        seen: set[str] = set()
        while refines.get(id) and id not in seen:
            seen.add(id)
            id = refines[id]
        return id

    origin = find_origin(run.id)
    return sum(1 for id in refines if id != origin and find_origin(id) == origin)
