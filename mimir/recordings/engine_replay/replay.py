"""Replays a run: the engine decides everything again, on the outcomes that were recorded, in the order in which they came about.

Nothing is executed: models, tools and checks are `served`, history answers from the recording, the store is thrown away. What the world
did to the run (a kill, a pause, a file that was applied, a lease that was taken) is done to it again where it stands in the record;
what the engine decides itself is compared with the record, event by event, and in the end byte by byte.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from mimir.domain.event import Event, EventKind
from mimir.domain.ids import attempt_id
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.errors import Paused, RecordingMiss
from mimir.orchestrator import plan_creation, run_models
from mimir.orchestrator.runs import creation, inspection
from mimir.orchestrator.services import ProjectServices
from mimir.qc.checks.check_runner import CheckRunner
from mimir.recordings.engine_replay import recorded_moves
from mimir.recordings.engine_replay.differences import event_label
from mimir.recordings.engine_replay.playback import NullCache, PlaybackChecks, PlaybackState
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
from mimir.scheduling.execution.attempt_runner import AttemptRunner, WorkerServices
from mimir.scheduling.execution.preparation import AttemptPreparer
from mimir.scheduling.run_services import ProcessLiveness, RunServices
from mimir.scheduling.task_queries import CompletedTasks
from mimir.store import row_fields
from mimir.store.operations import claims, runs
from mimir.store.protocol import ReadOps, Row, WriteOps
from mimir.store.schema import NodeLabel

OWNER = "replay"
OF_ATTEMPTS = (
    EventKind.MODEL_CALLED, EventKind.TOOL_CALLED, EventKind.TOOL_DENIED, EventKind.BREAKER_TRIPPED,
    EventKind.WORK_ANSWERED, EventKind.CHECK_RUN, EventKind.JUDGING_STARTED, EventKind.VERDICT_GIVEN,
    EventKind.TASK_COMPLETED, EventKind.TASK_RETRIED, EventKind.TASK_FAILED, EventKind.WARNING,
)  # fmt: skip
OF_THE_END = (
    EventKind.CHECK_RUN, EventKind.GATE_PASSED, EventKind.GATE_FAILED, EventKind.REPORT_WRITTEN,
    EventKind.RUN_FINISHED,
)  # fmt: skip
_NOBODYS = (EventKind.RUN_CREATED, EventKind.RUN_PAUSED, EventKind.LANE_CUT)
"""Of a planning run, whose other events are its own."""
NOTHING_SECONDS = 60.0
"""If nothing happens for so long, the engine waits for what the record does not have."""


@dataclass(slots=True)
class _NullLock:
    """Stands for a lock that nobody has to wait for: turns keep the order."""

    async def __aenter__(self) -> None:
        return

    async def __aexit__(self, *_: object) -> None:
        return


@dataclass(kw_only=True)
class RunReplay:
    """One run under way again."""

    parts: ProjectServices
    """With the stage as its store, and everything served."""
    stage: Simulation
    score: EventCursor
    served: PlaybackState
    releases: recorded_moves.RecordedReleases
    crew: RunServices | None = None
    working: dict[Actor, "asyncio.Future[None]"] = field(
        default_factory=dict[Actor, "asyncio.Future[None]"]
    )
    starting: dict[Actor, str] = field(default_factory=dict[Actor, str])
    """Attempts that begin on a head that is still to come."""
    merging: dict[Actor, str] = field(default_factory=dict[Actor, str])
    """Accepted attempts that clash with a head that is still to come."""

    @property
    def tape(self) -> RecordedRun:
        """What was recorded."""
        return self.score.tape

    async def through(self) -> None:
        """Play all events.

        Raises:
            RecordingMiss: The engine took another step than the recorded one, or wants what was not recorded.
        """
        await self._create()
        await self._engage()
        try:
            while (event := self.score.next) is not None:
                async with asyncio.timeout(NOTHING_SECONDS):
                    await self._play(event)
        except TimeoutError:
            event = self.score.next
            what = event_label(event) if event else "nothing"
            raise RecordingMiss(
                f"The engine does not come to what was recorded next: {what}."
            ) from None
        finally:
            await self._stop()

    async def _play(self, event: Event) -> None:
        actor = owner_of(self.score, event)
        if (
            actor == RUN and event.kind is EventKind.RUN_RESUMED
        ):  # of a planning run: it says so itself
            await self._stop()
            self._begin(RUN, self._plan(event))
        elif actor == RUN and RUN not in self.working:
            self._begin(RUN, self._finish())
        if actor is not None:
            await self._act(actor, event)
            await self._ahead()
            return
        match event.kind:
            case EventKind.TASK_READY | EventKind.TASK_BLOCKED:
                await self.releases.write(self.stage)
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
            case _:
                await self._inject(event)

    async def _act(self, actor: Actor, event: Event) -> None:
        work = self.working.get(actor)
        if work is None:
            raise RecordingMiss(f"{event_label(event)} was recorded, but nobody works on it.")
        before = self.score.at
        await self.stage.act(actor, work)
        if not work.done():
            return
        del self.working[actor]
        if work.exception() is not None:
            raise cast("BaseException", work.exception())
        if self.score.at == before:
            raise RecordingMiss(
                f"{event_label(event)} was recorded, but the engine ended before it."
            )

    def _begin(self, actor: Actor, job: "Awaitable[None]") -> "asyncio.Future[None]":
        with acting_as(actor):
            work = asyncio.ensure_future(job)
        self.working[actor] = work
        return work

    async def _stop(self) -> None:
        """End all work as a kill does: what is not in the store is gone."""
        jobs = list(self.working.values())
        self.working.clear()
        self.starting.clear()
        self.merging.clear()
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)

    async def _claim(self, event: Event) -> None:
        """Take the recorded task for the recorded holder, and begin to work on it."""
        crew = self._known_crew()
        for actor in [one for one in self.working if one[0] == event.task]:
            job = self.working.pop(actor)
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)
        claim = await self.stage.write(partial(recorded_moves.take, run=self.tape.id, event=event))
        actor = event.task, claim.attempt
        cast("RecordedClock", crew.clock).again(actor)
        row, head = await self.stage.read(partial(_at_start, run=self.tape.id, actor=actor))
        self._begin(actor, self._pursuit(claim))
        # Nothing is awaited before it is let start: if its turn has come it would be past that, and its next step out of turn.
        facts = self.tape.attempts.get(actor)
        if not row.get("startJson") and facts and facts.base and not claim.died:
            self.starting[actor] = facts.base
        if TaskStatus(row_fields.text_field(claim.row, "status")) is TaskStatus.QC_PASSED:
            self._will_merge(actor)
        await self._let(head)

    def _will_merge(self, actor: Actor) -> None:
        after = self.score.after(actor)
        onto = str(after.data.get("onto") or "") if after else ""
        if onto:
            self.merging[actor] = onto

    async def _ahead(self) -> None:
        """Let those read the line now whose attempt began, or clashed, on the head that it has now."""
        last = self.tape.events[self.score.at - 1] if self.score.at else None
        if last and last.kind is EventKind.VERDICT_GIVEN and last.data.get("passed") is True:
            self._will_merge((last.task, last.attempt))
        if not self.starting and not self.merging:
            return
        await self._let(await self.stage.read(partial(_head, run=self.tape.id)))

    async def _let(self, head: str) -> None:
        for actor in [one for one, base in self.starting.items() if base == head]:
            del self.starting[actor]
            if actor in self.working:
                await self.stage.let(actor, self.working[actor], "start")
        for actor in [one for one, onto in self.merging.items() if onto == head]:
            del self.merging[actor]
            if actor in self.working:
                await self.stage.let(actor, self.working[actor], "reads")

    async def _create(self) -> None:
        """Make the run as it was made; what it pinned is given."""
        tape = self.tape
        await self.stage.init()
        await self.stage.write(partial(recorded_moves.create, tape=tape))

    async def _engage(self) -> None:
        """Take the place of the process that served the run; without preambles nobody had begun to work."""
        parts, run = self.parts, self.tape.id
        if self.tape.plan is None or "preambles" not in self.tape.texts:
            return
        await self.stage.write(partial(recorded_moves.lead, run=run, owner=OWNER))
        facts = await creation.load_pinned_run(parts, run)
        crew = RunServices(
            facts=facts,
            store=self.stage,
            leases=self.stage,
            clock=parts.clock,
            owner=OWNER,
            process=parts.process,
            owners=ProcessLiveness(owners=parts.owners, host=parts.process.host),
            lease_seconds=recorded_moves.LEASE_SECONDS,
            work_room=parts.work_room,
            wake=parts.wake,
            completions=CompletedTasks(facts.plan),
            integrating=cast("asyncio.Lock", _NullLock()),
            answers_wait=False,
        )
        self.crew = crew
        self._pursuit = AttemptRunner(crew, self._tools(crew))

    def _tools(self, crew: RunServices) -> WorkerServices:
        parts = self.parts
        return WorkerServices(
            history=parts.history,
            checks=CheckRunner(parts.history, PlaybackChecks(self.served), NullCache()),
            models=parts.models,
            tools=parts.tools,
            preparer=AttemptPreparer(crew, parts.history, parts.choices["worker"], parts.redact),
            qc_choice=parts.choices["qc"],
            redact=parts.redact,
        )

    def _known_crew(self) -> RunServices:
        if self.crew is None:
            raise RecordingMiss("Its preambles were not recorded, so nobody can work.")
        return self.crew

    async def _resume(self, event: Event) -> None:
        """Kill what is under way, and go on as another process did."""
        await self._stop()
        row = await self.stage.write(
            partial(
                lifecycle.take_run,
                run=self.tape.id,
                owner=OWNER,
                seconds=recorded_moves.LEASE_SECONDS,
                dead=(),
                resumed=True,
                models=_models(event),
            )
        )
        self.parts = run_models.services_for_run(self.parts, row)
        await self._engage()

    async def _pause(self, event: Event) -> None:
        await self._stop()
        said = str(event.data.get("message") or "")
        paused = Paused(said, reason=str(event.data.get("reason") or ""))
        await self.stage.write(partial(recorded_moves.pause, run=self.tape.id, paused=paused))

    async def _cancel(self) -> None:
        await self._stop()

        def work(ops: WriteOps) -> None:
            claims.cancel(ops, self.tape.id)
            runs.set_status(
                ops,
                self.tape.id,
                RunStatus.CANCELLED,
                EventKind.RUN_FINISHED,
                {"outcome": RunStatus.CANCELLED.value},
                expect=(RunStatus.RUNNING, RunStatus.PAUSED),
            )

        await self.stage.write(work)

    async def _cut(self, event: Event) -> None:
        """Take the question away that had no answer; whether it stands here depends on how far its asker had come."""
        lane = str(event.data.get("lane") or "")

        def work(ops: WriteOps) -> None:
            rows = ops.find(NodeLabel.CALL, {"lane": lane, "done": False})
            ops.delete(NodeLabel.CALL, [str(row["id"]) for row in rows])

            _emit(ops, event)

        await self.stage.write(work)

    async def _inject(self, event: Event) -> None:
        """Let something come about that the engine does not decide."""
        await self.stage.write(partial(_emit, event=event))

    async def _plan(self, event: Event) -> None:
        with contextlib.suppress(Paused):
            await plan_creation.make_plan(self.parts, self.tape.id, models=_models(event))

    async def _finish(self) -> None:
        """Do what is done when all tasks have ended: gate, seals, prose, report."""
        parts, run, crew = self.parts, self.tape.id, self._known_crew()
        end = await finish_run(
            crew,
            parts.history,
            CheckRunner(parts.history, PlaybackChecks(self.served), NullCache()),
        )
        await self.stage.write(partial(recorded_moves.put_measured, tape=self.tape))
        path = await inspection.write_last_report(parts, run, end.outcome)
        data = {"seal": end.seal, "commit": end.commit, "report": path}

        def work(ops: WriteOps) -> None:
            runs.append_event(ops, run, EventKind.REPORT_WRITTEN, data={"path": path})
            lifecycle.end(ops, run, OWNER, end.outcome, data)

        await self.stage.write(work)


def _emit(ops: WriteOps, event: Event) -> None:
    runs.append_event(
        ops, event.run, event.kind, task=event.task, attempt=event.attempt, data=event.data
    )


def _models(event: Event) -> Mapping[str, str]:
    """Return the models that a run was gone on with in the place of those before."""
    return cast("Mapping[str, str]", event.data.get("models", {}))


def _head(reads: ReadOps, run: str) -> str:
    return row_fields.text_field(reads.get(NodeLabel.RUN, run) or {}, "head")


def _at_start(reads: ReadOps, run: str, actor: Actor) -> tuple[Row, str]:
    """Return an attempt's row, and the head of the line."""
    return reads.get(NodeLabel.ATTEMPT, attempt_id(run, *actor)) or {}, _head(reads, run)


def owner_of(score: EventCursor, event: Event | None) -> Actor | None:
    """Say whose an event is: an attempt's, the run's at its end (`RUN`), or nobody's whose decision it is (None). Pure."""
    if event is None:
        return None
    if score.tape.plan is None:
        return None if event.kind in _NOBODYS else RUN
    if event.kind in OF_ATTEMPTS and event.task and event.attempt:
        return event.task, event.attempt
    if event.kind is EventKind.MODEL_CALLED and event.data.get("role") in REPORTERS:
        return RUN
    if event.kind in OF_THE_END and event.data.get("outcome") != RunStatus.CANCELLED.value:
        return RUN
    return None
