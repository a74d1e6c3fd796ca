"""Replay of one run: the engine decides it again from recorded outcomes, in their order.

Nothing is executed. External events (a kill, a pause, a lost lease) are applied again where they were recorded.
Decisions of the engine are compared with the recording, event by event, and at the end byte by byte.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

from mimir.domain.event import Event, EventKind
from mimir.domain.json_value import as_object, as_text
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.errors import (
    AnswerError,
    ModelError,
    Paused,
    RecordingMiss,
    RejectedError,
    Waiting,
)
from mimir.orchestrator import plan_creation, run_models
from mimir.orchestrator.runs import creation, inspection
from mimir.orchestrator.runs.execution import worker_services
from mimir.orchestrator.services import ProjectServices
from mimir.qc.checks.check_runner import CheckRunner
from mimir.recordings.engine_replay import recorded_moves
from mimir.recordings.engine_replay.differences import event_label
from mimir.recordings.engine_replay.playback import PlaybackChecks, PlaybackState
from mimir.recordings.engine_replay.simulation import (
    RUN,
    Actor,
    EventCursor,
    RecordedClock,
    Simulation,
    acting_as,
)
from mimir.recordings.format.recording import RecordedRun
from mimir.reporting.summary.event_totals import REPORTERS
from mimir.scheduling import lifecycle
from mimir.scheduling.completion.run_outcome import finish_run
from mimir.scheduling.execution.attempt_runner import AttemptRunner
from mimir.scheduling.run_services import ProcessLiveness, RunServices
from mimir.scheduling.task_queries import CompletedTasks
from mimir.store.operations import claims, record_loading, runs
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.questions import question_rows
from mimir.store.records.attempt_records import AttemptRecord
from mimir.store.transcripts import call_rows
from mimir.workspace.aio import cancel_all

OWNER = "replay"
ATTEMPT_EVENTS = (
    EventKind.MODEL_CALLED, EventKind.TOOL_CALLED, EventKind.TOOL_DENIED, EventKind.BREAKER_TRIPPED,
    EventKind.QUESTION_ASKED,
    EventKind.WORK_ANSWERED, EventKind.CHECK_RUN, EventKind.JUDGING_STARTED, EventKind.VERDICT_GIVEN,
    EventKind.TASK_COMPLETED, EventKind.TASK_RETRIED, EventKind.TASK_FAILED, EventKind.WARNING,
)  # fmt: skip
END_EVENTS = (
    EventKind.CHECK_RUN, EventKind.GATE_PASSED, EventKind.GATE_FAILED, EventKind.REPORT_WRITTEN,
    EventKind.RUN_FINISHED,
)  # fmt: skip
_EXTERNAL_EVENTS = (
    EventKind.RUN_CREATED, EventKind.RUN_PAUSED, EventKind.LANE_CUT, EventKind.QUESTION_CLOSED,
    EventKind.ANSWER_REFUSED,
)  # fmt: skip
"""Events of a planning run that its own process did not write."""
STALL_SECONDS = 60.0
"""Without progress for this time, the engine waits for an outcome that is not recorded."""


@dataclass(slots=True)
class _NullLock:
    """Lock that is always free: the turns of the simulation keep the order."""

    async def __aenter__(self) -> None:
        return

    async def __aexit__(self, *_: object) -> None:
        return


@dataclass(kw_only=True)
class RunReplay:
    """One run that is replayed."""

    services: ProjectServices
    """Services over the simulation and recorded outcomes."""
    simulation: Simulation
    cursor: EventCursor
    state: PlaybackState
    releases: recorded_moves.RecordedReleases
    run_services: RunServices | None = None
    working: dict[Actor, "asyncio.Future[None]"] = field(
        default_factory=dict[Actor, "asyncio.Future[None]"]
    )
    starting: dict[Actor, str] = field(default_factory=dict[Actor, str])
    """Attempt → head that it starts from, still to come."""
    merging: dict[Actor, str] = field(default_factory=dict[Actor, str])
    """Accepted attempt → head that it conflicts with, still to come."""

    @property
    def recorded(self) -> RecordedRun:
        """Recorded run."""
        return self.cursor.recorded

    async def replay_events(self) -> None:
        """Replay all events.

        Raises:
            RecordingMiss: The engine takes another step than the recorded one, or needs an outcome that is not recorded.
        """
        await self._create()
        await self._engage()
        try:
            while (event := self.cursor.next) is not None:
                # A stalled engine waits without end: the recording is the only source of outcomes.
                async with asyncio.timeout(STALL_SECONDS):
                    await self._play(event)
        except TimeoutError:
            event = self.cursor.next
            detail = event_label(event) if event else "nothing"
            raise RecordingMiss(
                f"The engine does not reach the next recorded event: {detail}."
            ) from None
        finally:
            await self._stop()

    async def _play(self, event: Event) -> None:
        actor = owner_of(self.cursor, event)
        if actor == RUN and event.kind is EventKind.RUN_RESUMED:
            # A planning run writes this event itself, so it is started before it.
            await self._stop()
            self._begin(RUN, self._plan(event))
        elif actor == RUN and RUN not in self.working:
            # The first event of the end starts the gate: nothing else leads to it.
            self._begin(RUN, self._finish())
        if actor is not None:
            await self._act(actor, event)
            await self._ahead()
        else:
            await self._repeat(event)

    async def _repeat(self, event: Event) -> None:
        """Repeat an event that no actor of the replay writes."""
        match event.kind:
            case EventKind.TASK_READY | EventKind.TASK_BLOCKED:
                await self.releases.write(self.simulation)
            case EventKind.ATTEMPT_STARTED | EventKind.LEASE_TAKEN:
                await self._claim(event)
            case EventKind.RUN_RESUMED:
                await self._resume(event)
            case EventKind.RUN_PAUSED:
                await self._pause(event)
            case EventKind.TASK_CANCELLED:
                await self._cancel()
            case EventKind.LANE_CUT:
                await self._cut(event)
            case EventKind.QUESTION_CLOSED:
                await self._close_question(event)
            case _:
                await self._inject(event)

    async def _act(self, actor: Actor, event: Event) -> None:
        work = self.working.get(actor)
        if work is None:
            raise RecordingMiss(f"{event_label(event)} was recorded, but no attempt is active.")
        before = self.cursor.at
        await self.simulation.act(actor, work)
        if not work.done():
            return
        del self.working[actor]
        error = work.exception()
        # A task that waits is claimed again after its answer.
        if error and not isinstance(error, Waiting):
            raise error
        # Without this check, an actor that ended early would be asked for its event again and again.
        if self.cursor.at == before:
            detail = f"{event_label(event)} was recorded, but the engine ended before it."
            raise RecordingMiss(detail)

    def _begin(self, actor: Actor, job: "Awaitable[None]") -> "asyncio.Future[None]":
        with acting_as(actor):
            work = asyncio.ensure_future(job)
        self.working[actor] = work
        return work

    async def _stop(self) -> None:
        """End all work as a kill does: only the store is left."""
        jobs = list(self.working.values())
        self.working.clear()
        self.starting.clear()
        self.merging.clear()
        await cancel_all(jobs)

    async def _claim(self, event: Event) -> None:
        """Claim the recorded task for the recorded process, and start its attempt."""
        run_services = self._require_services()
        earlier = [actor for actor in self.working if actor[0] == event.task]
        await cancel_all([self.working.pop(actor) for actor in earlier])
        claim = await self.simulation.write(
            partial(recorded_moves.take, run=self.recorded.id, event=event)
        )
        actor = event.task, claim.attempt
        if isinstance(run_services.clock, RecordedClock):
            run_services.clock.restart(actor)
        record, head = await self.simulation.read(
            partial(_at_start, run=self.recorded.id, actor=actor)
        )
        self._begin(actor, self._pursuit(claim))
        # No await before it may start: with its turn it would pass that point, and act out of turn.
        facts = self.recorded.attempts.get(actor)
        if not (record and record.start) and facts and facts.base and not claim.died:
            self.starting[actor] = facts.base
        if claim.record.status is TaskStatus.QC_PASSED:
            self._will_merge(actor)
        await self._let(head)

    def _will_merge(self, actor: Actor) -> None:
        after = self.cursor.next_event_of(actor)
        onto = str(after.data.get("onto") or "") if after else ""
        # `onto` is stored only if the attempt had a merge conflict.
        if onto:
            self.merging[actor] = onto

    async def _ahead(self) -> None:
        """Let attempts read the run branch whose recorded head is the present one."""
        last = self.recorded.events[self.cursor.at - 1] if self.cursor.at else None
        if last and last.kind is EventKind.VERDICT_GIVEN and last.data.get("passed") is True:
            self._will_merge((last.task, last.attempt))
        if not self.starting and not self.merging:
            return
        await self._let(await self.simulation.read(partial(_head, run=self.recorded.id)))

    async def _let(self, head: str) -> None:
        for actor in [one for one, base in self.starting.items() if base == head]:
            del self.starting[actor]
            if actor in self.working:
                await self.simulation.let(actor, self.working[actor], "start")
        for actor in [one for one, onto in self.merging.items() if onto == head]:
            del self.merging[actor]
            if actor in self.working:
                await self.simulation.let(actor, self.working[actor], "reads")

    async def _create(self) -> None:
        await self.simulation.init()
        await self.simulation.write(partial(recorded_moves.create, recorded=self.recorded))

    async def _engage(self) -> None:
        """Take over the run as its process did; without preambles no attempt has started."""
        services, run = self.services, self.recorded.id
        # A planning run starts its services itself.
        if self.recorded.plan is None or "preambles" not in self.recorded.texts:
            return
        await self.simulation.write(partial(recorded_moves.lead, run=run, owner=OWNER))
        facts = await creation.load_pinned_run(services, run)
        run_services = RunServices(
            facts=facts,
            store=self.simulation,
            leases=self.simulation,
            clock=services.clock,
            owner=OWNER,
            process=services.process,
            owners=ProcessLiveness(owners=services.owners, host=services.process.host),
            lease_seconds=recorded_moves.LEASE_SECONDS,
            work_room=services.work_room,
            wake=services.wake,
            completions=CompletedTasks(facts.plan),
            # Turns replace the lock: a real one could block the actor that has the turn.
            integrating=cast("asyncio.Lock", _NullLock()),
            answers_wait=False,
        )
        self.run_services = run_services
        workers = replace(worker_services(self.services, run_services), checks=self._check_runner())
        self._pursuit = AttemptRunner(run_services, workers)

    def _check_runner(self) -> CheckRunner:
        return CheckRunner(self.services.history, PlaybackChecks(self.state), is_replay=True)

    def _require_services(self) -> RunServices:
        if self.run_services is None:
            raise RecordingMiss("Its preambles are not recorded, so no attempt can start.")
        return self.run_services

    async def _resume(self, event: Event) -> None:
        """Stop all work, and resume the run as another process did."""
        await self._stop()
        seconds = recorded_moves.LEASE_SECONDS
        take = partial(
            lifecycle.take_run, run=self.recorded.id, owner=OWNER, seconds=seconds, dead=()
        )
        row = await self.simulation.write(partial(take, resumed=True, models=_models(event)))
        self.services = run_models.services_for_run(self.services, row)
        await self._engage()

    async def _pause(self, event: Event) -> None:
        await self._stop()
        message = str(event.data.get("message") or "")
        paused = Paused(message, reason=str(event.data.get("reason") or ""))
        await self.simulation.write(
            partial(recorded_moves.pause, run=self.recorded.id, paused=paused)
        )

    async def _cancel(self) -> None:
        await self._stop()

        def work(ops: WriteOps) -> None:
            claims.cancel(ops, self.recorded.id)
            question_rows.withdraw_open(ops, self.recorded.id)
            data, expect = (
                {"outcome": RunStatus.CANCELLED.value},
                (RunStatus.RUNNING, RunStatus.PAUSED),
            )
            kind = EventKind.RUN_FINISHED
            runs.set_status(ops, self.recorded.id, RunStatus.CANCELLED, kind, data, expect=expect)

        await self.simulation.write(work)

    async def _cut(self, event: Event) -> None:
        """Delete the call without an outcome, if the replay has come to it."""
        lane = str(event.data.get("lane") or "")

        def work(ops: WriteOps) -> None:
            call_rows.delete_open_calls(ops, lane)
            _emit(ops, event)

        await self.simulation.write(work)

    async def _close_question(self, event: Event) -> None:
        """Close a question as it was closed, with the recorded outcome of its call."""
        await self.simulation.write(
            partial(recorded_moves.close_question, recorded=self.recorded, event=event)
        )

    async def _inject(self, event: Event) -> None:
        """Write an event that the engine does not decide."""
        await self.simulation.write(partial(_emit, event=event))

    async def _plan(self, event: Event) -> None:
        services = self.services
        record = await plan_creation.take_planning_run(
            services, self.recorded.id, _models(event) or None
        )
        # A pause is in the recording: the next event applies it. After a failure it has ended.
        with contextlib.suppress(Paused, AnswerError, ModelError, RejectedError):
            while True:
                try:
                    await plan_creation.hold_conversations(services, record)
                except Waiting:
                    # Not before its next event: the answer may come while the process lives.
                    await self.simulation.read(lambda reads: None)
                    next_event = self.cursor.next
                    if next_event and next_event.kind is EventKind.RUN_RESUMED:
                        return
                else:
                    return

    async def _finish(self) -> None:
        """Finish the run: final gate, seals, narrative, report."""
        services, run, run_services = self.services, self.recorded.id, self._require_services()
        end = await finish_run(run_services, services.history, self._check_runner())
        # Before the report, which shows times and processes.
        await self.simulation.write(partial(recorded_moves.put_measured, recorded=self.recorded))
        path, _ = await inspection.write_last_report(services, run, end.outcome)
        data = {"seal": end.seal, "commit": end.commit, "report": path}

        def work(ops: WriteOps) -> None:
            runs.append_event(ops, run, EventKind.REPORT_WRITTEN, data={"path": path})
            question_rows.withdraw_open(ops, run)
            lifecycle.end(ops, run, OWNER, end.outcome, data)

        await self.simulation.write(work)


def _emit(ops: WriteOps, event: Event) -> None:
    runs.append_event(
        ops, event.run, event.kind, task=event.task, attempt=event.attempt, data=event.data
    )


def _models(event: Event) -> Mapping[str, str]:
    """Return the models that replace pinned ones after a pause."""
    models = as_object(event.data.get("models"))
    return {role: as_text(model) for role, model in models.items()}


def _head(reads: ReadOps, run: str) -> str:
    record = record_loading.find_run(reads, run)
    return record.head if record else ""


def _at_start(reads: ReadOps, run: str, actor: Actor) -> tuple[AttemptRecord | None, str]:
    """Return an attempt, and the head of the run branch."""
    return record_loading.find_attempt(reads, run, *actor), _head(reads, run)


def owner_of(cursor: EventCursor, event: Event | None) -> Actor | None:
    """Return the actor of an event: an attempt, the end of the run (`RUN`), or None."""
    if event is None or cursor.recorded.plan is None:
        return None if event is None or event.kind in _EXTERNAL_EVENTS else RUN
    if event.kind in ATTEMPT_EVENTS and event.task and event.attempt:
        return event.task, event.attempt
    if event.kind is EventKind.MODEL_CALLED and event.data.get("role") in REPORTERS:
        return RUN
    if event.kind in END_EVENTS and event.data.get("outcome") != RunStatus.CANCELLED.value:
        return RUN
    return None
