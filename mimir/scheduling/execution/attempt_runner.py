"""Sees one claimed task through to its next resting status: attempt, then integration, retry or failure, all under the claim's fence."""

import asyncio
import contextlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from mimir.agents.circuit_breaker import Trip
from mimir.attempts import machine
from mimir.attempts.nodes.work import nodes
from mimir.attempts.results import JUDGEMENT, OUTCOMES, TRIP, WORK, AttemptState, Deliverable
from mimir.attempts.services import AttemptServices, ModelChoice, ModelSource, Props, RoleTools
from mimir.domain.actor import CURRENT_ACTOR, Actor
from mimir.domain.clock import stamp
from mimir.domain.event import EventKind
from mimir.domain.evidence import EvidenceRecord
from mimir.domain.ids import attempt_id
from mimir.domain.message import CallContext
from mimir.domain.plan import Task
from mimir.domain.task_states import Cause, TaskStatus
from mimir.domain.turn_hook import YIELD_TURN
from mimir.errors import MimirError
from mimir.qc.checks.check_runner import CheckRunner
from mimir.scheduling import retry
from mimir.scheduling.completion import attempt_outcome
from mimir.scheduling.completion.task_completion import TaskCompletion
from mimir.scheduling.completion.transition import TransitionWriter
from mimir.scheduling.cpu_turns import CpuTurn, TurnTakingModels
from mimir.scheduling.execution.preparation import AttemptPreparer, TaskView
from mimir.scheduling.run_services import RunServices
from mimir.scheduling.task_queries import load_attempts
from mimir.store import row_fields
from mimir.store.deferring_store import DeferringStore
from mimir.store.operations import claims, evidence, runs
from mimir.store.operations.claims import Claim
from mimir.store.protocol import ReadOps, Row, WriteOps
from mimir.store.schema import pack
from mimir.store.transcripts.stored_transcript import StoredTranscript
from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.git.history import GitHistory
from mimir.workspace.shared_checkouts import SharedCheckouts

_FEW = 20
"""Dependencies that are looked at in a moment; each is read with its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerServices:
    """What attempts of this process work with."""

    history: GitHistory
    checks: CheckRunner
    models: ModelSource
    tools: RoleTools
    preparer: AttemptPreparer
    qc_choice: ModelChoice
    redact: Callable[[str], str]


@dataclass(slots=True)
class ClaimedTask:
    """One claimed task with what is known of it; `records` grows as the chain does."""

    claim: Claim
    task: Task
    row: Row
    attempt_row: Row
    around: TaskView
    store: DeferringStore
    models: ModelSource
    records: list[EvidenceRecord] = field(default_factory=list[EvidenceRecord])

    @property
    def is_new(self) -> bool:
        """True: nobody has begun this attempt."""
        return not row_fields.text_field(self.attempt_row, "startJson")


class AttemptRunner:
    """Callable that sees a claim through."""

    def __init__(self, crew: RunServices, tools: WorkerServices) -> None:
        self._crew = crew
        self._tools = tools
        self._room = crew.work_room / crew.facts.id
        self._lending = SharedCheckouts(tools.history, self._room / ".lent" / crew.owner)

    async def __call__(self, claim: Claim) -> None:
        """Bring the task to its next resting status, or leave it in its phase by an exception.

        Raises:
            Paused: The run must stop; the phase is kept.
            LeaseLost: Another holder has the task.
        """
        CURRENT_ACTOR.set(Actor(run=self._crew.facts.id, task=claim.task, attempt=claim.attempt))
        turn, pace = CpuTurn(self._crew.turns), self._crew.pace
        YIELD_TURN.set(turn.yield_turn)
        try:
            await pace.before_start(claim.task, claim.attempt)
            await turn.acquire()
            await self._pursue(claim, turn)
        finally:
            turn.yield_turn()
            pace.done(claim.task, claim.attempt)

    async def _pursue(self, claim: Claim, turn: CpuTurn) -> None:
        held = await self._hold(claim, turn)
        try:
            await self._see_through(held)
        except BaseException:
            with contextlib.suppress(MimirError):  # what an answer has cost is kept, if it can be
                await asyncio.shield(held.store.settle())
            raise
        await held.store.settle()

    async def _see_through(self, held: ClaimedTask) -> None:
        claim = held.claim
        if claim.died:
            await self._died(held)
            return
        desk = await self._desk(held)
        self._crew.pace.started(claim.task, claim.attempt)
        status, course = await machine.run_attempt(
            TaskStatus(row_fields.text_field(claim.row, "status")),
            _course(held.attempt_row),
            nodes(desk),
        )
        await self._settle(held, desk, status, course)
        if desk.where.exists():
            await to_thread_shielded(shutil.rmtree, desk.where, ignore_errors=True)

    async def _settle(
        self, held: ClaimedTask, desk: AttemptServices, status: TaskStatus, course: AttemptState
    ) -> None:
        match status:
            case TaskStatus.QC_PASSED:
                clash = await TaskCompletion(self._crew, desk, course, self._mover(held)).complete()
                if clash is not None:
                    await self._again(
                        held,
                        attempt_outcome.outcome_of_conflict(course, clash, desk.start.base_tree),
                    )
            case TaskStatus.WORKER_EXECUTING | TaskStatus.QC_FAILED:
                await self._again(
                    held, attempt_outcome.outcome_of_rejection(course, desk.start.base_tree)
                )
            case _:
                return  # the machine ended the task itself

    async def _hold(self, claim: Claim, turn: CpuTurn) -> ClaimedTask:
        facts = self._crew.facts
        task, name = facts.tasks[claim.task], attempt_id(facts.id, claim.task, claim.attempt)

        def look(reads: ReadOps) -> ClaimedTask:
            around = TaskView.look(reads, facts, task)
            held = ClaimedTask(
                claim=claim,
                task=task,
                row=claim.row,
                attempt_row=next((row for row in around.attempts if row.get("id") == name), None)
                or {},
                around=around,
                store=DeferringStore(self._crew.store),
                models=TurnTakingModels(self._tools.models, turn),
            )
            if not held.is_new:
                held.records += evidence.records(reads, name)
            return held

        return await self._crew.store.read(look, brief=len(task.dependencies) <= _FEW)

    async def _desk(self, held: ClaimedTask) -> AttemptServices:
        crew, claim = self._crew, held.claim
        start = await self._tools.preparer.start(
            held.task, claim, held.attempt_row, held.around, held.store.later
        )
        where = self._room / claim.task / f"{claim.attempt}.{claim.fence}"
        return AttemptServices(
            facts=crew.facts,
            task=held.task,
            number=claim.attempt,
            fence=claim.fence,
            start=start,
            where=where,
            lending=self._lending,
            context=CallContext(
                project=crew.facts.project,
                run=crew.facts.id,
                task=claim.task,
                attempt=claim.attempt,
                role="worker",
            ),
            history=self._tools.history,
            checks=self._tools.checks,
            models=held.models,
            tools=self._tools.tools,
            clock=crew.clock,
            open_lane=partial(self._lane, held),
            move=self._mover(held),
            note=partial(self._note, held),
            last_words=partial(self._last_words, held),
            records=held.records,
            artifacts=held.around.artifacts,
            redact=self._tools.redact,
            qc_choice=self._tools.qc_choice,
            related=held.around.related,
            is_new=held.is_new,
            recorded_trip=_trip(held.attempt_row),
        )

    async def _lane(self, held: ClaimedTask, role: str) -> StoredTranscript:
        claim = held.claim
        return await StoredTranscript.open(
            held.store,
            run=self._crew.facts.id,
            task=claim.task,
            attempt=claim.attempt,
            role=role,
            fence=claim.fence,
            is_new=held.is_new,
            later=held.store.later if self._crew.answers_wait else None,
        )

    async def _note(
        self,
        held: ClaimedTask,
        kind: EventKind | None,
        *,
        attempt: Props,
        data: Mapping[str, object] | None = None,
    ) -> None:
        run, claim = self._crew.facts.id, held.claim

        def work(ops: WriteOps) -> None:
            claims.check_fence(ops, run, claim.task, claim.fence)
            ops.patch("Attempt", attempt_id(run, claim.task, claim.attempt), attempt)
            if kind:
                runs.append_event(ops, run, kind, task=claim.task, attempt=claim.attempt, data=data)

        await held.store.write(work)

    def _mover(self, held: ClaimedTask) -> TransitionWriter:
        return TransitionWriter(self._crew, held.store, held.claim, held.records)

    async def _again(self, held: ClaimedTask, end: attempt_outcome.AttemptOutcome) -> None:
        """Prepare a retry or fail the task, as `retry.decide` says."""
        crew, claim = self._crew, held.claim
        await held.store.settle()
        attempts = await crew.store.read(partial(load_attempts, run=crew.facts.id, task=claim.task))
        standing = attempt_outcome.retry_input(
            held.task, held.row, attempt_outcome.judged_before(attempts, claim.attempt), end
        )
        follows = retry.decide(standing)
        now = stamp(crew.clock.now())
        move = self._mover(held)
        work = attempt_outcome.work_values(end, now)
        answer = {"answer": end.answer} if work and end.answer else None
        if follows.retry:
            await move(
                TaskStatus.PREPARING_RETRY,
                EventKind.TASK_RETRIED,
                task=work | attempt_outcome.retry_values(claim.attempt, end, standing, now),
                attempt=attempt_outcome.attempt_values(end),
                artifacts=answer,
                data={"reason": end.cause.value, "issues": list(end.issues)[:20]} | _onto(end),
            )
            return
        task, attempt = _failed(held, attempts, end, standing, follows.cause)
        await move(
            TaskStatus.FAILED,
            EventKind.TASK_FAILED,
            task={**work, **task},
            attempt=attempt,
            artifacts=answer,
            data={"cause": follows.cause.value, "issues": list(end.issues)[:20]} | _onto(end),
        )

    async def _last_words(
        self, held: ClaimedTask, work: Deliverable, cause: Cause, why: str
    ) -> tuple[Props, Props]:
        crew, claim = self._crew, held.claim
        await held.store.settle()
        attempts = await crew.store.read(partial(load_attempts, run=crew.facts.id, task=claim.task))
        end = attempt_outcome.outcome_of_rejection(
            AttemptState(work=work, failure=cause), work.base_tree
        )
        end = replace(end, issues=(why,))
        return _failed(
            held, attempts, end, attempt_outcome.retry_input(held.task, held.row, None, end), cause
        )

    async def _died(self, held: ClaimedTask) -> None:
        end = attempt_outcome.AttemptOutcome(
            cause=Cause.WORKER_DIED,
            issues=(
                "The process that worked on it died three times in a row without any progress.",
            ),
            judged=False,
        )
        await self._again(held, end)


def _failed(
    held: ClaimedTask,
    attempts: Sequence[Row],
    end: attempt_outcome.AttemptOutcome,
    standing: retry.RetryInput,
    cause: Cause,
) -> tuple[Props, Props]:
    """Return the values of phase 9: of the task with its failure report, and of the attempt that ended it."""
    report = attempt_outcome.report(held.task, attempts, (held.claim.attempt, end), cause)
    values = attempt_outcome.failure_values(pack(asdict(report)), end, standing, report.timeline)
    return values | {"cause": cause.value}, attempt_outcome.attempt_values(end)


def _onto(end: attempt_outcome.AttemptOutcome) -> dict[str, object]:
    """Name the head that an attempt clashed with, so that a replay tries the same merge."""
    return {"onto": end.onto} if end.onto else {}


def _course(row: Row) -> AttemptState:
    course = AttemptState()
    if work := row_fields.text_field(row, "workJson"):
        course = replace(course, work=WORK.decode(work))
    if outcomes := row_fields.text_field(row, "checksJson"):
        course = replace(course, outcomes=OUTCOMES.decode(outcomes))
    if judgement := row_fields.text_field(row, "judgementJson"):
        course = replace(course, judgement=JUDGEMENT.decode(judgement))
    return course


def _trip(row: Row) -> Trip | None:
    text = row_fields.text_field(row, "tripJson")
    return TRIP.decode(text) if text else None
