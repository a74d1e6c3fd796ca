"""Stored ledger of a run, and the notes that result from its edits."""

from collections.abc import Collection, Sequence
from datetime import datetime

from mimir.domain.clock import stamp
from mimir.domain.criteria_counts import CriteriaCounts
from mimir.domain.event import EventKind
from mimir.domain.invocation import LedgerExcerpt
from mimir.domain.json_value import as_text
from mimir.domain.question_states import OPEN
from mimir.domain.task_states import EXECUTING, RUN_ENDED, RunStatus, TaskStatus
from mimir.orchestrator.delegation.handoffs import add_handoff, find_handoff
from mimir.orchestrator.patterns.ledger import (
    ArchivedRun,
    Ledger,
    LedgerEdits,
    LedgerLearning,
    LedgerTask,
    learning_id,
    one_line,
)
from mimir.reporting.summary.state_triangle import load_triangle, select_noting
from mimir.store.operations import memory, runs
from mimir.store.operations.record_loading import find_latest_run
from mimir.store.operations.runs import RunKind
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.records.question_records import QuestionRecord
from mimir.store.records.run_records import NoteRecord, RunOverviewRecord, RunRecord
from mimir.store.records.task_records import TaskStatusRecord
from mimir.store.run_reading import NEWEST_FIRST, find_records, load_run

MAX_GOAL = 2_000
"""Characters of the goal that an invoked agent is shown."""
MAX_LINES = 20
"""Decisions, and lines of the hand-off, that it is shown."""
MOST_LEARNINGS = 20
MOST_ARCHIVED = 5
_LEARNED = ("learning", "lesson", "note", "decision")
_KINDS = {"lesson": "Correction", "decision": "Decision"}
_PHASES = {"interviewer": "1", "spec_writer": "2", "oracle": "3"}
_PLANNING = "4"


def read_ledger(
    reads: ReadOps, project: str, run: str, dead: Collection[str], now: datetime
) -> Ledger:
    """Return the ledger of a run.

    Raises:
        UsageError: There is no such run.
    """
    record = load_run(reads, run)
    shown = record.shown_status(reads.now(), dead)
    tasks = find_records(reads, TaskStatusRecord, {"runId": run}, order=("seq",))
    done = [task.task_id for task in tasks if task.status is TaskStatus.COMPLETED]
    questions = find_records(reads, QuestionRecord, {"runId": run}, order=("createdAt", "id"))
    waiting = {one.task: one.id for one in questions if one.is_blocking and one.state == OPEN}
    noting = select_noting((one.task_id, one.tools, one.attempt_number) for one in tasks)
    triangle = load_triangle(reads, record, questions, noting, tasks=len(tasks))
    return Ledger(
        run=run,
        session=record.session_id or "-",
        status=shown.value,
        phase=_find_phase(reads, record, shown),
        progress=f"{len(done)}/{len(tasks)}",
        updated=stamp(now),
        title=one_line(record.display_title) or run,
        tasks=tuple(
            _task(task, waiting.get(task.task_id, ""), _find_stuck(task, reads.now(), dead))
            for task in tasks
        ),
        direction=tuple(map(one_line, triangle.direction)),
        assumptions=tuple(map(one_line, triangle.assumptions)),
        decisions=tuple(map(one_line, triangle.decisions)),
        learnings=tuple(list_learnings(reads, project)),
        handoff=_keep_texts(
            f"done: {', '.join(done)}" if done else "",
            f"next: {_next_step(record, shown, tasks)}",
            *(f"open: {id} of {task}; mimir answer {id}" for task, id in waiting.items()),
            *(f"from the user: {one_line(note.text)}" for note in find_handoff(reads, project)),
        ),
        archive=tuple(_archive(reads, project, run)),
    )


def read_handoff(
    reads: ReadOps, project: str, run: str, dead: Collection[str], now: datetime
) -> str:
    """Return the hand-off of a run in one line, without the command that continues the run."""
    found = read_ledger(reads, project, run, dead, now).handoff
    return "; ".join(one for one in found if not one.startswith("next: "))


def read_excerpt(reads: ReadOps, project: str, caller: str, now: datetime) -> LedgerExcerpt | None:
    """Return goal, decisions and hand-off of the work that an invocation belongs to.

    Args:
        reads: One view of the store.
        project: Id of the project.
        caller: Run whose agent spawns the agent. Empty: the last executed plan counts.
        now: Time of the ledger.
    """
    kinds: tuple[RunKind, ...] = ("execute",)
    above = (
        load_run(reads, caller)
        if caller
        else find_latest_run(reads, project_id=project, kinds=kinds)
    )
    if above is None:
        return None
    ledger = read_ledger(reads, project, above.id, (), now)
    return LedgerExcerpt(
        run=above.id,
        goal=one_line(above.goal or above.request or above.display_title)[:MAX_GOAL],
        decisions=ledger.decisions[:MAX_LINES],
        # Hand-offs of the user are notes of the memory, which the agent is given too.
        handoff=tuple(
            one for one in ledger.handoff if not one.startswith(("next: ", "from the user: "))
        )[:MAX_LINES],
        is_parent=bool(caller),
    )


def list_learnings(reads: ReadOps, project: str) -> list[LedgerLearning]:
    """Return the newest accepted notes of a project, oldest first."""
    notes = [
        note
        for kind in _LEARNED
        for note in find_records(
            reads,
            NoteRecord,
            {"projectId": project, "kind": kind, "state": "accepted"},
            order=("-createdAt", "id"),
            limit=MOST_LEARNINGS,
        )
    ]
    # Each kind is limited on its own: the newest of all are among them.
    newest = sorted(notes, key=lambda note: (note.created_at, note.id))[-MOST_LEARNINGS:]
    return [
        LedgerLearning(
            id=learning_id(note.id),
            kind=_KINDS.get(note.kind, "Pattern"),
            text=one_line(note.text)[:300],
            run=note.run_id,
        )
        for note in newest
        if one_line(note.text)
    ]


def synchronize(ops: WriteOps, project: str, edits: LedgerEdits) -> None:
    """Store the edits of a user: new notes, rejected notes, a hand-off."""
    for kind, text in edits.added:
        stored = {"Correction": "lesson", "Decision": "decision"}.get(kind, "learning")
        memory.add(ops, project, text[:80], text, kind=stored)
    removed = {learning.id for learning in edits.removed}
    # The file holds short ids, so the notes are found by theirs.
    for note in find_records(ops, NoteRecord, {"projectId": project, "state": "accepted"}):
        if learning_id(note.id) in removed:
            memory.rule(ops, project, note.id, "rejected")
    if edits.handoff:
        add_handoff(ops, project, "\n".join(edits.handoff))


def _find_stuck(task: TaskStatusRecord, now: str, dead: Collection[str]) -> str:
    """Return since when a task is held by no live process; empty: it is not stuck."""
    is_lost = bool(task.locked_by) and (task.expires_at <= now or task.locked_by in dead)
    # The end of the lease: at the latest then another process takes it over.
    return min(task.expires_at, now) if is_lost and task.status in EXECUTING else ""


def _task(task: TaskStatusRecord, question: str, stuck: str) -> LedgerTask:
    # The form of these lines has no title.
    if task.status in (TaskStatus.FAILED, TaskStatus.BLOCKED, TaskStatus.CANCELLED):
        cause = task.cause or task.blocked_by or "no cause"
        return LedgerTask(id=task.task_id, state=task.status.value, detail=one_line(cause))
    state, detail = "pending", ""
    if task.status is TaskStatus.COMPLETED:
        score = "" if task.qc_score is None else f"score {float(task.qc_score):g}"
        state, detail = "completed", ", ".join(filter(None, (score, _basis(task.criteria))))
    elif question:
        state, detail = "needs_input", question
    elif stuck:
        state, detail = "stuck", f"since {stuck[11:16]}"
    elif task.status in EXECUTING:
        state, detail = "running", f"attempt {task.attempt_number}"
    role = "validator" if task.status is TaskStatus.QC_EXECUTING else "executor"
    title = one_line(task.title) or task.task_id
    return LedgerTask(id=task.task_id, title=title, role=role, state=state, detail=detail)


def _basis(criteria: CriteriaCounts) -> str:
    """Return the basis of the decided criteria: the weakest basis counts."""
    # A completed task with an open criterion ends its run with gaps.
    if criteria.open:
        return "unverified"
    if criteria.judged:
        return "judged"
    # An answer of an agent and a todo have no criteria.
    return "executed" if criteria.executed else "not proven"


def _find_phase(reads: ReadOps, record: RunRecord, shown: RunStatus) -> str:
    """Return the step of pattern `sdd`; in planning, that of the agent called last."""
    if record.kind == "plan":
        calls = runs.events(reads, record.id, kinds=(EventKind.MODEL_CALLED,))
        return _PHASES.get(as_text(calls[-1].data.get("role")), _PLANNING) if calls else _PLANNING
    return "6" if shown in RUN_ENDED else "running"


def _next_step(record: RunRecord, shown: RunStatus, tasks: Sequence[TaskStatusRecord]) -> str:
    if shown in RUN_ENDED:
        return f"mimir report {record.id}"
    left = [task.task_id for task in tasks if task.status is not TaskStatus.COMPLETED]
    if shown is RunStatus.PAUSED:
        return f"mimir resume {record.id}"
    return f"{len(left)} tasks are left: {', '.join(left[:5])}" if left else "the final gate"


def _archive(reads: ReadOps, project: str, run: str) -> list[ArchivedRun]:
    # One more than is shown: the run of this ledger may be among them.
    newest = find_records(
        reads,
        RunOverviewRecord,
        {
            "projectId": project,
            "kind": "execute",
            "status": ("in", [status.value for status in RUN_ENDED]),
        },
        order=NEWEST_FIRST,
        limit=MOST_ARCHIVED + 1,
    )
    ended = [one for one in newest if one.id != run]
    return [
        ArchivedRun(
            title=one_line(one.display_title) or one.id,
            outcome=one.status.value,
            date=one.finished_at[:10],
            run=one.id,
        )
        for one in ended[:MOST_ARCHIVED]
    ]


def _keep_texts(*texts: str) -> tuple[str, ...]:
    return tuple(text for text in texts if text)
