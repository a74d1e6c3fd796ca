"""Runner of one claimed task: its attempt, then the merge, a retry or the failure."""

import asyncio
import contextlib
import shutil
from collections.abc import Callable
from functools import partial

from mimir.agents.circuit_breaker import Trip
from mimir.attempts import machine
from mimir.attempts.results import (
    AttemptRejection,
    AttemptState,
    Checking,
    Judged,
    Judging,
    Working,
    answered_change,
)
from mimir.attempts.services import AttemptServices, ModelChoice, ModelSource, RoleTools
from mimir.domain.actor import CURRENT_ACTOR, Actor
from mimir.domain.clock import stamp
from mimir.domain.deliverable import Deliverable
from mimir.domain.event import EventKind
from mimir.domain.evidence import CheckOutcome
from mimir.domain.message import CallContext
from mimir.domain.task_states import Cause, TaskStatus
from mimir.domain.turn_hook import YIELD_TURN
from mimir.domain.value_class import value_class
from mimir.domain.verdict import Verdict
from mimir.errors import MimirError, Waiting
from mimir.qc.checks.check_runner import CheckRunner
from mimir.scheduling import retry
from mimir.scheduling.completion import attempt_outcome
from mimir.scheduling.completion.attempt_outcome import AttemptOutcome
from mimir.scheduling.completion.task_completion import complete_task
from mimir.scheduling.completion.transition import ClaimJournal
from mimir.scheduling.cpu_turns import CpuTurn, TurnTakingModels
from mimir.scheduling.execution.pinned_preambles import load_preambles
from mimir.scheduling.execution.preparation import AttemptPreparer, TaskView
from mimir.scheduling.run_services import RunServices
from mimir.store.deferring_store import DeferringStore
from mimir.store.operations import evidence
from mimir.store.operations.claims import Claim
from mimir.store.protocol import ReadOps
from mimir.store.records.attempt_records import AttemptRecord
from mimir.workspace.aio import to_thread_shielded
from mimir.workspace.git.history import GitHistory
from mimir.workspace.shared_checkouts import SharedCheckouts

_FEW = 20
"""Dependencies that one brief read can load; each is loaded with its answer."""


@value_class
class WorkerServices:
    """Services that all attempts of this process share."""

    history: GitHistory
    checks: CheckRunner
    models: ModelSource
    tools: RoleTools
    preparer: AttemptPreparer
    qc_choice: ModelChoice
    redact: Callable[[str], str]


@value_class
class ClaimedTask:
    """A claimed task with its stored state."""

    claim: Claim
    view: TaskView
    attempt: AttemptRecord | None
    """None: damaged store; the claim creates the node."""
    journal: ClaimJournal


class AttemptRunner:
    """Callable that runs a claim to the task's next resting status."""

    def __init__(self, services: RunServices, worker: WorkerServices) -> None:
        self._services = services
        self._worker = worker
        self._directory = services.work_room / services.facts.id
        shared = self._directory / ".lent" / services.owner
        self._checkouts = SharedCheckouts(worker.history, shared)

    async def __call__(self, claim: Claim) -> None:
        """Bring the task to its next resting status; an exception leaves it in its phase.

        Raises:
            Paused: The run must stop; the phase is kept.
            LeaseLost: Another process holds the task.
            Waiting: It waits for an answer; the lease is released.
        """
        # Calls and check runs of shared services are recorded for this attempt.
        CURRENT_ACTOR.set(
            Actor(run=self._services.facts.id, task=claim.task, attempt=claim.attempt)
        )
        turn, order = CpuTurn(self._services.turns), self._services.pace
        YIELD_TURN.set(turn.yield_turn)
        try:
            await order.before_start(claim.task, claim.attempt)
            await turn.acquire()
            claimed = await self._load(claim)
            try:
                await self._run(claimed, turn)
            except BaseException:
                # The cost of an answer is recorded, if the store can be written.
                with contextlib.suppress(MimirError):
                    await asyncio.shield(claimed.journal.store.settle())
                raise
            await claimed.journal.store.settle()
        finally:
            turn.yield_turn()
            order.done(claim.task, claim.attempt)

    async def _load(self, claim: Claim) -> ClaimedTask:
        facts, task = self._services.facts, self._services.facts.tasks[claim.task]
        # The coordinator may be another process, which pinned them after this one loaded the run.
        if not facts.has_preambles(task):
            pinned = await self._services.store.read(partial(load_preambles, run=facts.id))
            facts.preambles.update(pinned)

        def load(reads: ReadOps) -> ClaimedTask:
            view = TaskView.look(reads, facts, task)
            attempt = next((one for one in view.attempts if one.number == claim.attempt), None)
            is_new = attempt is None or not attempt.start
            journal = ClaimJournal(
                services=self._services,
                store=DeferringStore(self._services.store),
                claim=claim,
                task=task,
                record=claim.record,
                is_new=is_new,
            )
            # A new attempt has no evidence, so the store is not asked.
            if not is_new:
                journal.records += evidence.records(reads, journal.name)
            return ClaimedTask(claim=claim, view=view, attempt=attempt, journal=journal)

        return await self._services.store.read(load, brief=len(task.dependencies) <= _FEW)

    async def _run(self, claimed: ClaimedTask, turn: CpuTurn) -> None:
        claim = claimed.claim
        # The attempt is not resumed: each of its holders died.
        if claim.died:
            issue = "The process that worked on it died three times in a row without any progress."
            end = AttemptOutcome(cause=Cause.WORKER_DIED, issues=(issue,), judged=False)
            await self._retry_or_fail(claimed, end)
            return
        services = await self._attempt_services(claimed, turn)
        self._services.pace.started(claim.task, claim.attempt)
        try:
            state = await machine.run_attempt(
                _load_state(claimed.journal.record.status, claimed.attempt),
                partial(machine.advance_attempt, services),
            )
        except Waiting:
            # The answer may come in days: its attempt restores the recorded tree.
            await _remove_workspace(services)
            raise
        await self._complete(claimed, services, state)
        await _remove_workspace(services)

    async def _complete(
        self, claimed: ClaimedTask, services: AttemptServices, state: AttemptState
    ) -> None:
        """Complete the task, or retry or fail it."""
        base = services.start.base_tree
        match state:
            case Judged() if state.verdict.passed:
                conflict = await complete_task(self._services, services, state, claimed.journal)
                if conflict is not None:
                    end = attempt_outcome.outcome_of_conflict(state, conflict, base)
                    await self._retry_or_fail(claimed, end)
            case Judged() | AttemptRejection():
                end = attempt_outcome.outcome_of_rejection(state, base)
                await self._retry_or_fail(claimed, end)
            case _:
                return  # without a verdict, the machine itself failed the task

    async def _attempt_services(self, claimed: ClaimedTask, turn: CpuTurn) -> AttemptServices:
        services, worker, claim = self._services, self._worker, claimed.claim
        journal, attempt, facts = claimed.journal, claimed.attempt, services.facts
        start = await worker.preparer.start(
            journal.task, claim, attempt, claimed.view, journal.store.later
        )
        return AttemptServices(
            facts=facts,
            task=journal.task,
            number=claim.attempt,
            fence=claim.fence,
            start=start,
            directory=self._directory / claim.task / f"{claim.attempt}.{claim.fence}",
            checkouts=self._checkouts,
            context=CallContext(
                project=facts.project,
                run=facts.id,
                task=claim.task,
                attempt=claim.attempt,
                role="worker",
            ),
            history=worker.history,
            checks=worker.checks,
            models=TurnTakingModels(worker.models, turn),
            tools=worker.tools,
            clock=services.clock,
            journal=journal,
            records=journal.records,
            artifacts=claimed.view.artifacts,
            redact=worker.redact,
            qc_choice=worker.qc_choice,
            related=claimed.view.related,
            is_new=journal.is_new,
            recorded_trip=attempt.trip.decode(Trip) if attempt and attempt.trip else None,
        )

    async def _retry_or_fail(self, claimed: ClaimedTask, end: AttemptOutcome) -> None:
        """Prepare a retry or fail the task, as `retry.decide` decides."""
        journal, number = claimed.journal, claimed.claim.attempt
        attempts = await journal.load_attempts()
        previous = attempt_outcome.find_judged_before(attempts, number)
        given = attempt_outcome.retry_input(journal.task, journal.record, previous, end)
        decision = retry.decide(given)
        now = stamp(self._services.clock.now())
        data: dict[str, object] = {"issues": list(end.issues)[:20]}
        if end.onto:  # a replay tries the same merge again
            data["onto"] = end.onto
        # An attempt that was rejected at its answer has not stored the answer yet.
        answered = () if end.effort is None else (answered_change(end.answer, end.effort, now),)
        artifacts = {"answer": end.answer} if answered and end.answer else None
        if decision.retry:
            change = attempt_outcome.retry_change(number, end, given, now)
            await journal.transition(
                TaskStatus.PREPARING_RETRY,
                EventKind.TASK_RETRIED,
                task=(*answered, change),
                attempt=attempt_outcome.rejected_changes(end),
                artifacts=artifacts,
                data={"reason": end.cause.value, **data},
            )
            return
        task, attempt = journal.failure_changes(attempts, end, given, decision.cause)
        await journal.transition(
            TaskStatus.FAILED,
            EventKind.TASK_FAILED,
            task=(*answered, *task),
            attempt=attempt,
            artifacts=artifacts,
            data={"cause": decision.cause.value, **data},
        )


async def _remove_workspace(services: AttemptServices) -> None:
    # A workspace is created for the first effect only.
    if services.directory.exists():
        await to_thread_shielded(shutil.rmtree, services.directory, ignore_errors=True)


def _load_state(status: TaskStatus, attempt: AttemptRecord | None) -> AttemptState:
    """Return the state in which an attempt resumes.

    Raises:
        StoreError: The results of an earlier phase cannot be read.
    """
    if attempt is None or status is TaskStatus.WORKER_EXECUTING:
        return Working()
    work = attempt.deliverable.decode(Deliverable)
    if status is TaskStatus.WORKER_COMPLETED:
        return Checking(work=work)
    outcomes = attempt.check_outcomes.decode(tuple[CheckOutcome, ...])
    if status is TaskStatus.QC_EXECUTING:
        return Judging(work=work, outcomes=outcomes)
    return Judged(work=work, outcomes=outcomes, verdict=attempt.verdict.decode(Verdict))
