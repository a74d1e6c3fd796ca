"""Journal of a claimed task: every write of its attempt, in one fenced transaction each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from mimir.attempts.journal import Changes
from mimir.domain.deliverable import Deliverable
from mimir.domain.event import EventKind
from mimir.domain.evidence import EvidenceRecord
from mimir.domain.ids import attempt_id
from mimir.domain.plan import Task
from mimir.domain.task_states import Cause, TaskStatus, TransitionActor
from mimir.domain.turn_hook import give_way
from mimir.domain.value_class import value_class
from mimir.domain.verdict import Verdict
from mimir.scheduling import retry
from mimir.scheduling.completion import attempt_outcome
from mimir.scheduling.completion.attempt_outcome import AttemptOutcome
from mimir.scheduling.run_services import RunServices
from mimir.store.deferring_store import DeferringStore
from mimir.store.operations import attempt_traces, claims, evidence, runs
from mimir.store.operations.claims import Claim
from mimir.store.operations.record_loading import load_task_attempts, save_change
from mimir.store.protocol import WriteOps
from mimir.store.records.attempt_records import AttemptRecord
from mimir.store.records.record_codec import StoredRecord
from mimir.store.records.task_changes import CompletionChange
from mimir.store.records.task_records import TaskRecord
from mimir.store.transcripts.stored_transcript import StoredTranscript

_BY_MACHINE = (
    TaskStatus.WORKER_COMPLETED,
    TaskStatus.QC_EXECUTING,
    TaskStatus.QC_PASSED,
    TaskStatus.QC_FAILED,
)


@value_class
class HeadUpdate:
    """Change of the run's head that is committed together with a status."""

    expect: str
    head: str
    tree: str


@dataclass(slots=True, kw_only=True)
class ClaimJournal:
    """Journal of one claim; implements `AttemptJournal`."""

    services: RunServices
    store: DeferringStore
    claim: Claim
    task: Task
    record: TaskRecord
    """The task when it was claimed."""
    is_new: bool
    """False: an earlier holder of the lease began this attempt."""
    records: list[EvidenceRecord] = field(default_factory=list[EvidenceRecord])
    """Evidence chain of the attempt; grows with each transition."""

    @property
    def name(self) -> str:
        """Id of the attempt's node."""
        return attempt_id(self.services.facts.id, self.claim.task, self.claim.attempt)

    async def open_transcript(self, role: str) -> StoredTranscript:
        """Open the attempt's transcript of a role, under the claim's fence."""
        return await StoredTranscript.open(
            self.store,
            run=self.services.facts.id,
            task=self.claim.task,
            attempt=self.claim.attempt,
            role=role,
            fence=self.claim.fence,
            is_new=self.is_new,
            later=self.store.later if self.services.answers_wait else None,
        )

    async def note(
        self, kind: EventKind, *changes: StoredRecord, data: Mapping[str, object]
    ) -> None:
        """Write an event and changes of the attempt; the status stays."""
        run, claim = self.services.facts.id, self.claim

        def work(ops: WriteOps) -> None:
            claims.load_claimed_task(ops, run, claim.task, claim.fence)
            if changes:
                save_change(ops, self.name, *changes)
            runs.append_event(ops, run, kind, task=claim.task, attempt=claim.attempt, data=data)

        await self.store.write(work)

    async def load_attempts(self) -> list[AttemptRecord]:
        """Load the attempts of the task, after committing the deferred writes."""
        # Deferred writes may contain values of the attempt that just ended.
        await self.store.settle()
        load = partial(load_task_attempts, run=self.services.facts.id, task=self.claim.task)
        return await self.services.store.read(load)

    async def failure_values(
        self, work: Deliverable, cause: Cause, reason: str
    ) -> tuple[Changes, Changes]:
        """Return the changes (of task, of attempt) for a task that fails without a verdict."""
        attempts = await self.load_attempts()
        end = attempt_outcome.outcome_without_verdict(work, cause, reason)
        given = attempt_outcome.retry_input(self.task, self.record, None, end)
        return self.failure_changes(attempts, end, given, cause)

    def failure_changes(
        self,
        attempts: Sequence[AttemptRecord],
        end: AttemptOutcome,
        given: retry.RetryInput,
        cause: Cause,
    ) -> tuple[Changes, Changes]:
        """Return the changes of a failed task with its report, and of its last attempt (phase 9)."""
        report = attempt_outcome.report(self.task, attempts, (self.claim.attempt, end), cause)
        return (
            (attempt_outcome.failure_change(report, cause, end, given),),
            attempt_outcome.rejected_changes(end),
        )

    async def transition(
        self,
        to: TaskStatus,
        kind: EventKind,
        *,
        task: Changes = (),
        attempt: Changes = (),
        data: Mapping[str, object] | None = None,
        records: Sequence[EvidenceRecord] = (),
        artifacts: Mapping[str, str] | None = None,
        verdict: Verdict | None = None,
        publish: HeadUpdate | None = None,
        refuse: Callable[[WriteOps], bool] | None = None,
        defer: bool = False,
    ) -> bool:
        """Change the status with all that belongs to the phase; see `AttemptJournal.transition`.

        Returns:
            False only if `publish` found that another process has moved the run's head, or `refuse` returned True.
        """
        done = to is TaskStatus.COMPLETED

        def work(ops: WriteOps) -> bool:
            run, claim = self.services.facts.id, self.claim
            if refuse and refuse(ops):
                return False
            # First: if the head has moved, nothing of this transaction is written.
            if publish and not runs.advance_head(
                ops, run, publish.expect, publish.head, publish.tree
            ):
                return False
            self._save_evidence(ops, records, artifacts or {}, verdict)
            history = self._history(ops, task, verdict, done=done) if verdict or done else ()
            claims.move(
                ops,
                run,
                claim.task,
                claim.fence,
                to,
                TransitionActor.MACHINE if to in _BY_MACHINE else TransitionActor.SCHEDULING,
                changes=(*task, *history),
                attempt_changes=attempt,
                kind=kind,
                data=data,
            )
            return True

        if defer and self.services.answers_wait:
            self.store.later(work)
            # The next records are sealed after these, before they are committed.
            self.records.extend(records)
            return True
        moved = await self._commit(work, durable=not done or self._must_be_durable(publish))
        if moved:
            self.records.extend(records)
            if to not in _BY_MACHINE:  # the coordinator does not wait for moves inside an attempt
                self.services.wake.task_moved(is_offer=to is TaskStatus.PREPARING_RETRY)
        return moved

    def _save_evidence(
        self,
        ops: WriteOps,
        records: Sequence[EvidenceRecord],
        artifacts: Mapping[str, str],
        verdict: Verdict | None,
    ) -> None:
        facts, claim = self.services.facts, self.claim
        for suffix, text in artifacts.items():
            evidence.put_artifact(ops, f"{self.name}/{suffix}", facts.id, suffix, text, self.name)
        if records:
            evidence.append(
                ops, facts.id, claim.task, claim.attempt, claim.fence, self.name, records
            )
        if verdict:
            # A merge may add a second verdict to the attempt.
            number = len(ops.neighbours(self.name, ["HAS_VERDICT"], "out")) + 1
            evidence.put_verdict(ops, facts.id, claim.task, claim.attempt, number, verdict)
            role = self.task.reviewer
            preamble = facts.preambles["qc", role]
            attempt_traces.used_preamble(ops, self.name, facts.project, "qc", role, preamble.hash)

    def _history(
        self, ops: WriteOps, task: Changes, verdict: Verdict | None, *, done: bool
    ) -> Changes:
        """Record which files the attempt left, and return the task's verdicts with this one."""
        run, claim = self.services.facts.id, self.claim
        record = claims.load_claimed_task(ops, run, claim.task, claim.fence)
        changed = [
            path for one in task if isinstance(one, CompletionChange) for path in one.files_changed
        ]
        attempt_traces.left_files(ops, run, self.name, changed)
        history = attempt_outcome.history_change(
            record, claim.attempt, verdict, now=ops.now(), is_done=done
        )
        return (history,)

    def _must_be_durable(self, publish: HeadUpdate | None) -> bool:
        """Return whether a completion must survive a power cut.

        One that changed no file may be judged again. If models answer at once, it is durable too: then all completions of a moment
        share one commit.
        """
        return publish is not None or not self.services.turns.pay

    async def _commit(self, work: Callable[[WriteOps], bool], *, durable: bool) -> bool:
        if durable:
            give_way()  # other attempts run while the disk writes
        return await self.store.write(work, durable=durable)
