"""Loading of a stored run for its summary in batches, never all attempts in memory.

Stored values are taken as they are: `reporting.audit` verifies them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mimir.agents.circuit_breaker import Trip
from mimir.agents.context import receipt
from mimir.domain import money
from mimir.domain.deliverable import Deliverable
from mimir.domain.event import EventKind
from mimir.domain.evidence import CheckOutcome, EvidenceRecord
from mimir.domain.ids import lane_id
from mimir.domain.question import describe_values
from mimir.domain.requirement import REQUIREMENTS_TEXT, Requirement
from mimir.domain.task_states import RunStatus
from mimir.domain.text_hash import hash_text
from mimir.domain.verdict import Verdict
from mimir.reporting.summary.event_totals import EventTotals, total_events
from mimir.reporting.summary.metric_inputs import count_metric_inputs, load_pm_calls
from mimir.reporting.summary.run_data import (
    AttemptData,
    ReportedQuestion,
    RunData,
    TaskData,
)
from mimir.reporting.summary.state_triangle import find_noting, is_shown, load_triangle
from mimir.reporting.summary.summary import RunSummary, summarise
from mimir.store import run_reading
from mimir.store.operations import record_loading, runs
from mimir.store.protocol import ReadOps
from mimir.store.questions import question_rows
from mimir.store.records.attempt_records import AttemptRecord
from mimir.store.records.question_records import QuestionRecord
from mimir.store.records.run_records import RunRecord
from mimir.store.records.task_records import TaskRecord

COUNTED_EVENTS = (
    EventKind.RUN_CREATED, EventKind.RUN_PAUSED, EventKind.RUN_RESUMED, EventKind.PREAMBLE_MADE,
    EventKind.TASK_BLOCKED, EventKind.TASK_CANCELLED, EventKind.ATTEMPT_STARTED, EventKind.MODEL_CALLED,
    EventKind.TOOL_DENIED, EventKind.LANE_CUT, EventKind.TASK_COMPLETED, EventKind.TASK_RETRIED,
    EventKind.TASK_FAILED, EventKind.GATE_PASSED, EventKind.GATE_FAILED, EventKind.APPLIED, EventKind.WARNING,
)  # fmt: skip
"""Events that a report counts or lists."""
_STOPPED = (EventKind.TASK_FAILED, EventKind.TASK_BLOCKED)


def load_summary(reads: ReadOps, run: str, outcome: RunStatus | None = None) -> RunSummary:
    """Return the summary of a run, with one batch of tasks in memory at a time.

    Args:
        reads: One view of the store.
        run: Id.
        outcome: As in `summarise`.

    Raises:
        UsageError: The run does not exist.
        StoreError: A stored record cannot be read; `mimir verify` names it.
    """
    return summarise(_load_run(reads, run), outcome, tasks=_iterate_tasks(reads, run))


def gather(reads: ReadOps, run: str) -> RunData:
    """Return a run with all of its tasks.

    Raises:
        UsageError: The run does not exist.
        StoreError: A stored record cannot be read; `mimir verify` names it.
    """
    return replace(_load_run(reads, run), tasks=tuple(_iterate_tasks(reads, run)))


def _load_run(reads: ReadOps, run: str) -> RunData:
    """Return a run without its tasks."""
    totals = total_events(runs.each_event(reads, run, COUNTED_EVENTS))
    # A plan may be megabytes: it is needed only for the tasks that a failure blocks.
    is_plan_needed = any(event.kind in _STOPPED for event in totals.listed)
    load = record_loading.load_run_with_plan if is_plan_needed else record_loading.load_run
    record = load(reads, run)
    pm_calls = load_pm_calls(reads, record)
    questions = question_rows.load_of_run(reads, run)
    triangle = load_triangle(
        reads, record, questions, find_noting(reads, run), tasks=record.task_count
    )
    data = _run_data(record, totals)
    return replace(
        data,
        plan=record_loading.decode_plan(record) if record.plan else None,
        gate_evidence=record_loading.load_evidence(reads, [data.gate]).get(data.gate, ()),
        questions=tuple(map(_reported_question, questions)),
        triangle=triangle if is_shown(triangle, record, questions) else None,
        requirements=_load_requirements(reads, run) if record.plan_run else (),
        measured=count_metric_inputs(reads, record, pm_calls),
        pm_context=tuple(
            (call.finished_at, call.input_tokens)
            for call in pm_calls
            if call.kind == "model" and call.finished_at
        ),
    )


def _load_requirements(reads: ReadOps, run: str) -> tuple[Requirement, ...]:
    saved = record_loading.find_json(reads, run, REQUIREMENTS_TEXT)
    return saved.value.decode(tuple[Requirement, ...]) if saved else ()


def _reported_question(one: QuestionRecord) -> ReportedQuestion:
    values, default = one.values, one.default_values
    return ReportedQuestion(
        id=one.id,
        task=one.task,
        attempt=one.attempt,
        title=one.name,
        state=one.state,
        blocking=one.is_blocking,
        answer="" if values is None else describe_values(values),
        default="" if default is None else describe_values(default),
        by=one.answered_by,
        transport=one.transport,
        asked_at=one.created_at,
        closed_at=one.closed_at,
    )


def _run_data(record: RunRecord, totals: EventTotals) -> RunData:
    return RunData(
        id=record.id,
        kind=record.kind,
        title=record.display_title,
        request=record.request,
        goal=record.goal,
        plan_path=record.plan_path,
        status=record.status,
        is_read_only=record.is_read_only,
        created_at=record.created_at,
        engine_version=record.engine_version,
        sandbox=record.sandbox,
        controls=record.controls,
        base_commit=record.base_commit,
        head=record.head,
        final_commit=record.final_commit,
        result_branch=record.result_branch,
        seal=record.seal,
        gate_red=record.gate_red.texts(),
        pause_reason=record.pause_reason,
        pause_message=record.pause_message,
        prices_as_of=money.date_of_prices(record.prices.mapping()) if record.prices else "",
        plan=None,
        events=tuple(totals.listed),
        totals=totals,
    )


def _iterate_tasks(reads: ReadOps, run: str) -> Iterator[TaskData]:
    """Yield the tasks in the order of the plan."""
    for batch in runs.in_batches(record_loading.iterate_tasks(reads, run, TaskRecord)):
        # Without a name for the tasks of a batch, they are freed before the next one is read.
        yield from _load_batch(reads, run, batch)


def _load_batch(reads: ReadOps, run: str, batch: Sequence[TaskRecord]) -> Sequence[TaskData]:
    keys = [(task.task_id, task.attempt_number) for task in batch]
    records = list(record_loading.iterate_attempts(reads, run, keys, AttemptRecord))
    ids = [record.id for record in records]
    # One query for a batch: one for each attempt would be thousands in a large run.
    evidence = record_loading.load_evidence(reads, ids)
    answers = {
        answer.id: hash_text(answer.text) for answer in record_loading.iterate_answers(reads, ids)
    }
    transcripts = {r.id: lane_id(run, r.task_id, r.number, "worker") for r in records}
    unanswered = [transcripts[record.id] for record in records if not record.deliverable]
    # A call that a pause interrupted is repeated later: it does not count yet.
    calls = run_reading.count_tool_calls(reads, unanswered, done_only=True)
    attempts: dict[str, list[AttemptData]] = {}
    for record in records:
        attempt = replace(
            load_attempt(record, calls.get(transcripts[record.id], 0), evidence),
            answer_hash=answers.get(f"{record.id}/answer", ""),
        )
        attempts.setdefault(record.task_id, []).append(attempt)
    return [_task_data(task, attempts.get(task.task_id, ())) for task in batch]


def _task_data(record: TaskRecord, attempts: Sequence[AttemptData]) -> TaskData:
    return TaskData(
        id=record.task_id,
        node=record.id,
        title=record.title,
        status=record.status,
        cause=record.cause,
        blocked_by=record.blocked_by,
        made=record.attempt_number,
        accepted=record.accepted_attempt,
        score=_as_float(record.qc_score),
        feedback=record.qc_feedback,
        max_retries=record.max_retries,
        integration_retries=record.integration_retries,
        estimated_tool_calls=record.estimated_tool_calls,
        files_changed=record.files_changed,
        commit=record.integrated_commit,
        taken_from=record.taken_from,
        dependencies=record.dependencies,
        held_seconds=record.held_seconds,
        attempts=tuple(attempts),
        is_read_only=record.is_read_only,
    )


def load_attempt(
    record: AttemptRecord, calls: int, evidence: Mapping[str, tuple[EvidenceRecord, ...]]
) -> AttemptData:
    """Return an attempt; `calls`: tool calls of its worker, if it has not answered."""
    deliverable = record.deliverable.decode(Deliverable) if record.deliverable else None
    verdict = record.verdict.decode(Verdict) if record.verdict else None
    outcomes = record.check_outcomes
    return AttemptData(
        id=record.id,
        number=record.number,
        cause=record.end_cause,
        issues=record.issues,
        # The node of an accepted attempt has no score of its own.
        score=float(verdict.score) if verdict else _as_float(record.score),
        tool_calls=deliverable.tool_calls if deliverable else calls,
        seconds=_as_float(record.worker_duration),
        # The tool logs of a whole run would take much memory.
        work=replace(deliverable, ledger=(), cited_arguments=()) if deliverable else None,
        outcomes=outcomes.decode(tuple[CheckOutcome, ...]) if outcomes else (),
        judgement=verdict,
        trip=record.trip.decode(Trip) if record.trip else None,
        receipts=tuple(
            receipt.receipt_totals(packed.mapping())
            for packed in (record.receipt, record.qc_receipt)
            if packed
        ),
        evidence=evidence.get(record.id, ()),
        is_rejected=record.judged,
        is_reused=bool(record.taken_from),
        given_tokens=record.context_tokens + record.qc_context_tokens,
        available_tokens=record.context_tokens_available + record.qc_context_tokens_available,
        pieces=tuple(
            (hash, int(tokens))
            for text in (*record.context_pieces, *record.qc_context_pieces)
            # Stored as one text, because a property is a list of texts or numbers.
            for hash, tokens in [text.split(" ", 1)]
        ),
        started_at=record.worker_start_time,
        answered_at=record.worker_completed_at,
    )


def _as_float(value: float | None) -> float | None:
    # A whole number is stored as such, but the report always shows a score as a float.
    return None if value is None else float(value)
