"""Lines of a recording, made from the stored nodes of a run in the order of its events.

`docs/recordings.md` describes the lines. A missing line can be appended to the file at any time: the store has it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mimir.domain.event import Event, EventKind
from mimir.domain.evidence import PRODUCTS_TEXT
from mimir.domain.ids import PLAN_TASK, lane_id
from mimir.domain.invocation import AGENT_TEXT, PLAN_AGENTS_TEXT
from mimir.domain.json_value import as_text, as_whole_number
from mimir.domain.requirement import REQUIREMENTS_TEXT
from mimir.domain.task_states import TaskStatus
from mimir.orchestrator.patterns.step_agent import STEPS_TEXT
from mimir.scheduling.execution.preparation import AttemptStart
from mimir.store.operations import record_loading, runs
from mimir.store.protocol import ReadOps
from mimir.store.records.attempt_records import AttemptRecord
from mimir.store.records.call_records import CallRecord
from mimir.store.transcripts import shared_texts
from mimir.store.transfer import recording_rows

Line = dict[str, object]

TEXTS = (
    *("preambles", "brief", "background"),
    *(AGENT_TEXT, PLAN_AGENTS_TEXT, STEPS_TEXT, REQUIREMENTS_TEXT, PRODUCTS_TEXT),
)
"""Artifacts of a run that are used by everything after; its preambles grow."""
CALLS = (EventKind.MODEL_CALLED, EventKind.TOOL_CALLED, EventKind.TOOL_DENIED)
ATTEMPTS = (EventKind.WORK_ANSWERED, EventKind.TASK_RETRIED, EventKind.TASK_FAILED)
STOPS = (EventKind.RUN_PAUSED, EventKind.RUN_FINISHED)
STOPPED = (TaskStatus.WORKER_EXECUTING, TaskStatus.CANCELLED)
"""Statuses of an attempt that a stop interrupted, maybe before its first answer."""


@dataclass(slots=True, kw_only=True)
class ExportProgress:
    """Extent of the export of a run."""

    seq: int = 0
    """Last event."""
    checks: frozenset[str] = frozenset()
    """Check runs of the time `checks_at`."""
    checks_at: str = ""
    """Time of the last check run."""
    texts: Mapping[str, object] = field(default_factory=dict[str, object])
    """The run's texts by name, as JSON values."""


def lines(reads: ReadOps, run: str, written: ExportProgress) -> Iterator[Line]:
    """Yield the lines that are not written yet, and note them in `written`."""
    if written.seq == 0:
        pinned, plan = recording_rows.export_pinned_run(reads, run)
        yield {"kind": "run", "run": run, "pinned": pinned, "plan": plan}
    events = runs.events(reads, run, after=written.seq)
    # Whatever uses a text writes an event after it.
    if events:
        yield from _text_lines(reads, run, written)
    yield from _check_lines(reads, run, written)
    for event in events:
        yield from _lines_before(reads, event)
        yield {
            "kind": "event", "run": event.run, "seq": event.seq, "event": event.kind.value, "at": event.at,
            "task": event.task, "attempt": event.attempt, "data": dict(event.data),
        }  # fmt: skip
        written.seq = event.seq


def end_of(reads: ReadOps, run: str, *, report: str, plan: str) -> Line:
    """Return the line of a run's outcome, which a replay is compared with."""
    record = record_loading.load_run(reads, run)
    return {
        "kind": "end", "run": run, "status": record.status.value, "seal": record.seal, "report": report, "plan": plan,
        "evidence": recording_rows.export_evidence(reads, run), "verdicts": recording_rows.export_verdicts(reads, run),
        "measured": recording_rows.export_measurements(reads, run),
    }  # fmt: skip


def _text_lines(reads: ReadOps, run: str, written: ExportProgress) -> Iterator[Line]:
    for name in TEXTS:
        record = record_loading.find_json(reads, run, name)
        text = record.value.decode(object) if record else None
        if text is not None and text != written.texts.get(name):
            written.texts = {**written.texts, name: text}
            yield {"kind": "text", "run": run, "name": name, "text": text}


def _check_lines(reads: ReadOps, run: str, written: ExportProgress) -> Iterator[Line]:
    for record in record_loading.load_check_runs(reads, run, since=written.checks_at):
        # Several runs can share one time: the last time is read again.
        if record.id in written.checks:
            continue
        if record.created_at > written.checks_at:
            written.checks, written.checks_at = frozenset(), record.created_at
        written.checks |= {record.id}
        yield {
            "kind": "check", "run": run, "by": record.place, "owner": record.owner, "at": record.created_at,
            "timeout": record.timeout_seconds, "ran": record.result.decode(object),
        }  # fmt: skip


def _lines_before(reads: ReadOps, event: Event) -> Iterator[Line]:
    """Yield the lines that belong to an event: its call, the base and time of its attempt."""
    role, number = as_text(event.data.get("role")), as_whole_number(event.data.get("seq")) or 0
    if event.kind in CALLS:
        transcript = lane_id(event.run, event.task or PLAN_TASK, event.attempt, role)
        call = record_loading.find_call(reads, transcript, number)
        # A call without an outcome is repeated later, with an event of its own.
        if call is not None and call.is_done:
            yield _call_line(call, shared_texts.delta_of(reads, call))
    is_first_call = event.kind is EventKind.MODEL_CALLED and event.data.get("seq") == 0
    found: list[AttemptRecord | None] = []
    if event.task and event.attempt and (is_first_call or event.kind in ATTEMPTS):
        found.append(record_loading.find_attempt(reads, event.run, event.task, event.attempt))
    if event.kind in STOPS:
        found += record_loading.find_attempts_with_status(reads, event.run, STOPPED)
    yield from (_attempt_line(record) for record in found if record and record.start)


def _attempt_line(record: AttemptRecord) -> Line:
    return {
        "kind": "attempt", "run": record.run_id, "task": record.task_id, "attempt": record.number,
        "base": record.start.decode(AttemptStart).base_commit, "seconds": record.worker_duration,
    }  # fmt: skip


def _call_line(call: CallRecord, request: Mapping[str, object]) -> Line:
    usage = call.usage
    return {
        "kind": "call", "run": call.run_id, "lane": call.transcript, "seq": call.number, "call": call.kind, "tool": call.tool,
        "title": call.title, "request": request, "answer": call.value.mapping(),
        "usage": [usage.input_tokens, usage.output_tokens] if usage else None, "tree": call.tree,
        "request_hash": call.request_hash, "lane_hash": call.hash,
    }  # fmt: skip
