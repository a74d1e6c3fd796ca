"""Inputs of the metrics, counted by the store; `docs/metrics.md` has a query for each."""

import json
from collections.abc import Sequence
from itertools import groupby

from mimir.domain.clock import moment
from mimir.domain.event import EventKind
from mimir.domain.ids import PLAN_TASK, lane_id
from mimir.domain.json_value import as_object, as_objects, as_text
from mimir.reporting.summary.metrics import MetricInputs
from mimir.reporting.summary.proofs import members
from mimir.store.operations import record_loading
from mimir.store.protocol import ReadOps
from mimir.store.records.artifact_records import ProcessRecord
from mimir.store.records.call_records import CallRecord
from mimir.store.records.run_records import RunRecord

SEARCHES = (
    "memory_search_nodes", "memory_query_nodes", "memory_get_node", "memory_get_neighbors",
    "memory_get_subgraph",
)  # fmt: skip
TASK_ENDS = (
    EventKind.TASK_COMPLETED, EventKind.TASK_FAILED, EventKind.TASK_BLOCKED, EventKind.TASK_CANCELLED,
)  # fmt: skip


def count_metric_inputs(
    reads: ReadOps, run: RunRecord, pm_calls: Sequence[CallRecord]
) -> MetricInputs:
    """Count the inputs that do not follow from tasks; `pm_calls`: of the plan's PM."""
    events = record_loading.count_events(reads, run.id)
    retrieved, used = _count_retrieved(reads, [run.id, run.plan_run])
    processes = record_loading.load_processes(reads, run.id)
    end = record_loading.find_last_event_time(reads, run.id, TASK_ENDS)
    return MetricInputs(
        pm_seconds=_duration(pm_calls),
        claims_granted=events.get(EventKind.ATTEMPT_STARTED.value, 0)
        + events.get(EventKind.LEASE_TAKEN.value, 0),
        claims_empty=run.claims_empty,
        questions=events.get(EventKind.QUESTION_ASKED.value, 0),
        red_tasks=_count_red_tasks(reads, run.id),
        retrieved=retrieved,
        used=used,
        served_seconds=sum(_served_seconds(process, end) for process in processes),
    )


def load_pm_calls(reads: ReadOps, run: RunRecord) -> list[CallRecord]:
    """Load the calls of the PM that made a run's plan; none if the user wrote it."""
    planning = run.id if run.kind == "plan" else run.plan_run
    # The PM has one transcript: its planning run has one attempt.
    transcript = lane_id(planning, PLAN_TASK, 1, "pm")
    return record_loading.load_calls(reads, transcript) if planning else []


def _duration(calls: Sequence[CallRecord]) -> float | None:
    starts = [call.started_at for call in calls if call.started_at]
    ends = [call.finished_at for call in calls if call.finished_at]
    if not starts or not ends:
        return None
    return round((moment(max(ends)) - moment(min(starts))).total_seconds(), 3)


def _count_red_tasks(reads: ReadOps, run: str) -> int | None:
    """Count the tasks with a red check at the last final gate; None if no gate was sealed."""
    record = record_loading.find_last_gate_record(reads, run)
    if record is None:
        return None
    return len({str(red.get("task")) for red in as_objects(members(record).get("red"))})


def _served_seconds(process: ProcessRecord, end: str) -> float:
    """Return the time of a process's agents until the last task ended.

    A lost process counts until the end of its lease. Later writes of a process change nothing, so a report is always the same.
    """
    # Times are ISO-8601 of one form, so they compare as texts.
    left = min(end, process.left_at or process.until)
    if not process.since or left <= process.since:
        return 0.0
    return process.agents * (moment(left) - moment(process.since)).total_seconds()


def _count_retrieved(reads: ReadOps, runs: Sequence[str]) -> tuple[int, int]:
    """Count the nodes that memory tools returned, and those named in a later answer."""
    calls = record_loading.load_tool_calls(reads, [run for run in runs if run], SEARCHES)
    retrieved = used = 0
    for transcript, searches in groupby(calls, key=lambda call: call.transcript):
        first: dict[str, int] = {}
        for call in searches:
            for node in _found_nodes(call):
                first.setdefault(node, call.number)
        if not first:  # no node was found: its answers need not be loaded
            continue
        answers = record_loading.load_calls(reads, transcript, kind="model")
        retrieved += len(first)
        used += sum(
            any(answer.number > number and node in answer.value.text for answer in answers)
            for node, number in first.items()
        )
    return retrieved, used


def _found_nodes(call: CallRecord) -> list[str]:
    """Return the ids of the nodes in a memory tool's answer; none if it is an error message."""
    try:
        answer: object = json.loads(str(call.value.mapping().get("text")))
    except ValueError:
        return []
    ids = (as_text(node.get("id")) for node in as_objects(as_object(answer).get("nodes")))
    return [id for id in ids if id]
