"""What the scheduler did to a run, done again: made, led, released, claimed, paused. Each a write; `decide` says whether it was right."""

from collections.abc import Mapping
from typing import cast

from mimir.domain.event import Event, EventKind
from mimir.domain.ids import task_id
from mimir.domain.scheduling_command import BlockTask, ReleaseTask
from mimir.domain.task_states import TaskStatus
from mimir.errors import Paused, RecordingMiss
from mimir.recordings.engine_replay.simulation import EventCursor, Simulation
from mimir.recordings.format.recording import RecordedRun
from mimir.scheduling import lifecycle
from mimir.scheduling.decide import RunSnapshot, decide
from mimir.scheduling.priority import weights
from mimir.store import row_fields
from mimir.store.operations import claims, leases, runs
from mimir.store.operations.claims import Claim
from mimir.store.operations.runs import NewRun, RunKind
from mimir.store.protocol import Value, WriteOps
from mimir.store.schema import NodeLabel, pack

LEASE_SECONDS = 1e9
"""Nobody's lease ends by time: who lost one stands in the record."""
_STATUSES = frozenset(status.value for status in TaskStatus)
FIRST = 1e18
"""Priority of the task that is claimed next."""


def create(ops: WriteOps, tape: RecordedRun) -> None:
    """Make a run as it was made, with what it pinned and the texts that it was given."""
    pinned = tape.pinned

    def text(name: str) -> str:
        return str(pinned.get(name) or "")

    new = NewRun(
        id=tape.id,
        kind=cast("RunKind", text("kind")),
        project_id=text("projectId"),
        project_name=text("projectId"),
        name=text("name"),
        request=text("request"),
        plan=tape.plan,
        plan_path=text("planPath"),
        settings=tape.settings,
        engine_version=text("engineVersion"),
        base_commit=text("baseCommit"),
        base_tree=text("baseTree"),
        only=tuple(cast("list[str]", pinned.get("only") or ())),
        session_id=text("sessionId"),
    )
    runs.create(ops, new)
    extra: dict[str, Value] = {
        name: cast("Value", pinned[name])
        for name in (
            "sandbox",
            "userHead",
            "userBranch",
            "title",
            "goal",
            "learnedJson",
            "planRun",
            "pricesJson",
        )
        if name in pinned
    }
    ops.patch(NodeLabel.RUN, tape.id, extra)
    for name, value in tape.texts.items():
        row = {"id": f"{tape.id}#{name}", "name": name, "runId": tape.id, "kind": name, "text": pack(value)}  # fmt: skip
        ops.upsert(NodeLabel.ARTIFACT, [row])


def lead(ops: WriteOps, run: str, owner: str) -> None:
    """Become the run's coordinator."""
    leases.acquire_lease(ops, run, lifecycle.COORDINATOR, owner, seconds=LEASE_SECONDS)


class RecordedReleases:
    """What the coordinator released and blocked, decided again."""

    def __init__(self, score: EventCursor) -> None:
        self._score = score
        self._at = 0
        self._snapshot: RunSnapshot | None = None

    async def write(self, stage: Simulation) -> None:
        """Release and block what was released and blocked at once.

        Raises:
            RecordingMiss: The engine decides otherwise.
        """
        score, batch = self._score, _batch(self._score)
        decided = decide(self._standing())
        ready = {one.task for one in decided if isinstance(one, ReleaseTask)}
        doomed = {one.task: one.because for one in decided if isinstance(one, BlockTask)}
        for event in batch:
            if event.task not in (ready if event.kind is EventKind.TASK_READY else doomed):
                what = f"{event.kind.value} of {event.task}, the engine decides otherwise"
                raise RecordingMiss(what)
        # Weights may be learned from earlier runs: the priority is given, what is ready is decided.
        releases = [(e.task, _priority(e)) for e in batch if e.kind is EventKind.TASK_READY]
        blocks = [(e.task, doomed[e.task]) for e in batch if e.kind is EventKind.TASK_BLOCKED]

        def work(ops: WriteOps) -> None:
            if releases:
                claims.release_task(ops, score.tape.id, releases)
            for task, because in blocks:
                claims.block_task(ops, score.tape.id, task, because)

        await stage.write(work)

    def _standing(self) -> RunSnapshot:
        """Return where every task stands before the next event."""
        score, plan = self._score, self._score.tape.plan
        if plan is None:
            raise RecordingMiss("A planning run has no tasks.")
        if self._snapshot is None:
            self._snapshot = RunSnapshot.from_rows(plan, {}, (), weights(plan))
        for event in score.tape.events[self._at : score.at]:
            to = event.data.get("to")
            if event.kind is EventKind.TASK_READY:
                self._snapshot.note_released(event.task)
            elif event.task and isinstance(to, str):
                if to not in _STATUSES:
                    raise RecordingMiss(f"Event {event.seq} names a status that there is not.")
                self._snapshot.apply(event.task, TaskStatus(to))
        self._at = score.at
        return self._snapshot


def _priority(event: Event) -> float:
    value = event.data.get("priority")
    return float(value) if isinstance(value, int | float) else 0.0


def take(ops: WriteOps, run: str, event: Event) -> Claim:
    """Claim the recorded task for the recorded holder.

    Raises:
        RecordingMiss: The engine does not let it be claimed.
    """
    id = task_id(run, event.task)
    row = ops.get(NodeLabel.TASK, id) or {}
    before = row_fields.float_field(row, "priority")
    holder = row_fields.text_field(row, "lockedBy")
    ops.patch(NodeLabel.TASK, id, {"priority": FIRST})
    owner = str(event.data.get("owner") or "")
    taken = claims.claim(
        ops, run, owner, lease_seconds=LEASE_SECONDS, dead=(holder,) if holder else ()
    )
    if not taken or taken[0].task != event.task:
        raise RecordingMiss(f"{event.task} was claimed, but the engine has it not free")
    ops.patch(NodeLabel.TASK, id, {"priority": before})
    return taken[0]


def pause(ops: WriteOps, run: str, paused: Paused) -> None:
    """Pause a run: whoever held something of it gives it back."""
    holders = {row_fields.text_field(row, "lockedBy") for row in runs.tasks(ops, run)}
    for holder in sorted(holders - {""}):
        claims.give_back_all(ops, run, holder)
    coordinator = row_fields.text_field(ops.get(NodeLabel.RUN, run) or {}, lifecycle.COORDINATOR)
    lifecycle.pause(ops, run, coordinator, paused, 0.0)


def put_measured(ops: WriteOps, tape: RecordedRun) -> None:
    """Give a run what was measured of it: no clock runs in a replay."""
    for label, row in tape.end.measured if tape.end else ():
        known = (
            label in (NodeLabel.CALL, NodeLabel.ARTIFACT)
            or ops.get(label, str(row["id"])) is not None
        )
        if known:
            ops.upsert(label, [cast("Mapping[str, Value]", row)])


def _batch(score: EventCursor) -> list[Event]:
    """Return the events from the next on that one write of the coordinator brought about."""
    kinds = (EventKind.TASK_READY, EventKind.TASK_BLOCKED)
    first = score.next
    found: list[Event] = []
    for event in score.tape.events[score.at :]:
        if first is None or event.kind not in kinds or event.at != first.at:
            break
        found.append(event)
    return found
