"""Recorded steps of the scheduler as writes: create, lead, release, claim, pause.

`decide` checks each release.
"""

from typing import get_args

from mimir.domain.call_outcome import CallOutcome
from mimir.domain.event import Event, EventKind
from mimir.domain.json_value import as_member, as_number, as_text, is_object
from mimir.domain.question import QuestionClosing
from mimir.domain.question_states import QuestionState
from mimir.domain.scheduling_command import BlockTask, ReleaseTask
from mimir.domain.task_states import TaskStatus
from mimir.errors import Paused, RecordingMiss
from mimir.recordings.engine_replay.differences import event_label
from mimir.recordings.engine_replay.simulation import EventCursor, Simulation
from mimir.recordings.format.recording import RecordedRun
from mimir.scheduling import lifecycle
from mimir.scheduling.decide import RunSnapshot, decide
from mimir.scheduling.priority import weights
from mimir.store.operations import claims, leases, record_loading
from mimir.store.operations.claims import Claim
from mimir.store.protocol import WriteOps
from mimir.store.records.question_records import QuestionRecord
from mimir.store.records.task_records import TaskStatusRecord
from mimir.store.run_reading import load_record
from mimir.store.transcripts import waiting_calls
from mimir.store.transfer import recording_rows

LEASE_SECONDS = 1e9
"""No lease ends by time: the recording names the lost ones."""
_STATUSES = frozenset(status.value for status in TaskStatus)
FIRST = 1e18
"""Priority of the task that is claimed next."""


def create(ops: WriteOps, recorded: RecordedRun) -> None:
    """Create a run as it was created, with its pinned values and texts."""
    recording_rows.create_recorded_run(
        ops,
        recorded.id,
        pinned=recorded.pinned,
        plan=recorded.plan,
        settings=recorded.settings,
        texts=recorded.texts,
    )


def lead(ops: WriteOps, run: str, owner: str) -> None:
    """Take the coordinator lease of the run."""
    leases.acquire_lease(ops, run, lifecycle.COORDINATOR, owner, seconds=LEASE_SECONDS)


class RecordedReleases:
    """Releases and blocks of the coordinator, decided again."""

    def __init__(self, cursor: EventCursor) -> None:
        self._cursor = cursor
        self._at = 0
        self._snapshot: RunSnapshot | None = None

    async def write(self, simulation: Simulation) -> None:
        """Write the tasks that were released and blocked together.

        Raises:
            RecordingMiss: The engine decides differently.
        """
        cursor, batch = self._cursor, _batch(self._cursor)
        decided = decide(self._load_snapshot())
        ready = {one.task for one in decided if isinstance(one, ReleaseTask)}
        doomed = {one.task: one.because for one in decided if isinstance(one, BlockTask)}
        for event in batch:
            if event.task not in (ready if event.kind is EventKind.TASK_READY else doomed):
                detail = f"{event.kind.value} of {event.task}, the engine decides differently"
                raise RecordingMiss(detail)
        # Weights may be learned from earlier runs: the priority is given, and the engine decides the ready tasks.
        releases = [(e.task, _priority(e)) for e in batch if e.kind is EventKind.TASK_READY]
        blocks = [(e.task, doomed[e.task]) for e in batch if e.kind is EventKind.TASK_BLOCKED]

        def work(ops: WriteOps) -> None:
            if releases:
                claims.release_task(ops, cursor.recorded.id, releases)
            for task, because in blocks:
                claims.block_task(ops, cursor.recorded.id, task, because)

        await simulation.write(work)

    def _load_snapshot(self) -> RunSnapshot:
        """Return the status of every task before the next event."""
        cursor, plan = self._cursor, self._cursor.recorded.plan
        if plan is None:
            raise RecordingMiss("A planning run has no tasks.")
        if self._snapshot is None:
            self._snapshot = RunSnapshot.from_rows(plan, {}, (), weights(plan))
        for event in cursor.recorded.events[self._at : cursor.at]:
            to = event.data.get("to")
            if event.kind is EventKind.TASK_READY:
                self._snapshot.note_released(event.task)
            elif event.task and isinstance(to, str):
                if to not in _STATUSES:
                    raise RecordingMiss(f"Event {event.seq} has an unknown status.")
                self._snapshot.apply(event.task, TaskStatus(to))
        self._at = cursor.at
        return self._snapshot


def _priority(event: Event) -> float:
    return float(as_number(event.data.get("priority")) or 0.0)


def take(ops: WriteOps, run: str, event: Event) -> Claim:
    """Claim the recorded task for the recorded process.

    Raises:
        RecordingMiss: The engine does not allow the claim.
    """
    task = record_loading.find_task(ops, run, event.task)
    holder = task.locked_by if task else ""
    # The claim takes the task of the highest priority: for its time, that is the recorded one.
    claims.set_priority(ops, run, event.task, FIRST)
    taken = claims.claim(
        ops,
        run,
        as_text(event.data.get("owner")),
        lease_seconds=LEASE_SECONDS,
        dead=(holder,) if holder else (),
    )
    if not taken or taken[0].task != event.task:
        raise RecordingMiss(f"{event.task} was claimed, but in the engine it cannot be claimed")
    claims.set_priority(ops, run, event.task, task.priority if task else 0.0)
    return taken[0]


def close_question(ops: WriteOps, recorded: RecordedRun, event: Event) -> None:
    """Close a question with its recorded answer.

    Raises:
        RecordingMiss: It was not asked, or the outcome of its call is not recorded.
    """
    question = load_record(ops, QuestionRecord, as_text(event.data.get("question")))
    if question is None:
        raise RecordingMiss(f"{event_label(event)}: this question was not asked")
    if as_text(event.data.get("replacedBy")):
        waiting_calls.replace_question(
            ops,
            question,
            as_text(event.data.get("subjectHash")),
            as_text(event.data.get("text")),
        )
        return
    call = recorded.lanes.get(question.transcript, {}).get(question.number)
    if call is None and question.is_blocking:
        raise RecordingMiss(f"{event_label(event)}: the outcome of its call is not recorded")
    # A recording may be edited: another state or answer is never trusted.
    values, state = event.data.get("answer"), as_text(event.data.get("state"))
    closing = QuestionClosing(
        state=as_member(state, get_args(QuestionState)) or "withdrawn",
        values=values if is_object(values) else None,
        by=as_text(event.data.get("by")),
        transport=as_text(event.data.get("transport")),
    )
    waiting_calls.close_question(
        ops, question.id, closing, call.outcome if call else CallOutcome(value={})
    )


def pause(ops: WriteOps, run: str, paused: Paused) -> None:
    """Pause a run: every process gives its leases back."""
    tasks = record_loading.load_tasks(ops, run, TaskStatusRecord)
    # Sorted: a set has another order in each process.
    for holder in sorted({task.locked_by for task in tasks} - {""}):
        claims.give_back_all(ops, run, holder)
    record = record_loading.find_run(ops, run)
    lifecycle.pause(ops, run, record.coordinator if record else "", paused, 0.0)


def put_measured(ops: WriteOps, recorded: RecordedRun) -> None:
    """Write the measurements of a run: no clock runs in a replay."""
    recording_rows.import_measurements(ops, recorded.end.measured if recorded.end else ())


def _batch(cursor: EventCursor) -> list[Event]:
    """Return the next events that one write of the coordinator made."""
    kinds = (EventKind.TASK_READY, EventKind.TASK_BLOCKED)
    first = cursor.next
    found: list[Event] = []
    for event in cursor.recorded.events[cursor.at :]:
        if first is None or event.kind not in kinds or event.at != first.at:
            break
        found.append(event)
    return found
