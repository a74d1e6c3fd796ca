"""Completion of an accepted attempt: its merge and the completed task."""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial

from mimir.attempts.nodes.judge import judge_merged
from mimir.attempts.results import Judged
from mimir.attempts.services import AttemptServices
from mimir.domain.actor import on_behalf
from mimir.domain.clock import stamp
from mimir.domain.criteria_counts import count
from mimir.domain.event import EventKind
from mimir.domain.evidence import CheckRun, EvidenceRecord
from mimir.domain.plan import Check
from mimir.domain.task_states import Cause, TaskStatus
from mimir.domain.turn_hook import give_way
from mimir.domain.verdict import Verdict
from mimir.qc.checks.regression import AcceptedTask, reported_counts
from mimir.qc.evidence import seal
from mimir.qc.evidence.payloads import Body, run_body, verdict_body
from mimir.scheduling.completion.integration import (
    IntegrationServices,
    MergeCandidate,
    MergeConflict,
    RunBranch,
    integrate,
)
from mimir.scheduling.completion.transition import ClaimJournal, HeadUpdate
from mimir.scheduling.run_services import RunServices
from mimir.store.operations import leases
from mimir.store.operations.record_loading import find_run, load_run
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.records.attempt_changes import AttemptMergeChange
from mimir.store.records.record_codec import PackedJson
from mimir.store.records.task_changes import CompletionChange, CriteriaCountsChange
from mimir.store.schema import well_formed

LEASE_POLL_SECONDS = 0.05
INTEGRATOR = "integrator"
"""Lease under which one task at a time is integrated; its holder is `process/task`."""


class TaskCompletion:
    """Completes one accepted attempt, under its task's fence."""

    def __init__(
        self,
        run_services: RunServices,
        services: AttemptServices,
        state: Judged,
        journal: ClaimJournal,
    ) -> None:
        self._run_services = run_services
        self._services = services
        self._state = state
        self._journal = journal

    async def complete(self) -> MergeConflict | None:
        """Complete the task; return a conflict if it needs a retry.

        Raises:
            LeaseLost: Another process holds the task.
            Paused: The run must stop; the accepted verdict is kept.
        """
        work, outcomes = self._state.work, self._state.outcomes
        # Without changes there is nothing to merge.
        if not work.commit:
            await self._save(MergeCandidate(commit="", tree="", onto=""))
            return None
        accepted = AcceptedTask(
            task=self._services.task,
            attempt=self._services.number,
            answer=work.answer,
            passed=frozenset(self._passed_checks()),
            # As the store keeps names, so that both sides compare equal.
            changed=frozenset(map(well_formed, work.changed)),
            tree=work.tree,
            told=reported_counts(outcomes),
        )
        integration = IntegrationServices(
            history=self._services.history,
            run_check=self._run_check,
            judge=self._judge,
            load_branch=self._load_branch,
            publish=self._save,
            lease=self._take_lease,
            release=self._release_lease,
        )
        # Git and the sandbox work now, so another attempt can use the CPU.
        give_way()
        await self._run_services.pace.before_merge(self._services.task.id, self._services.number)
        async with self._run_services.integrating:
            return await integrate(self._services.task, work, accepted, integration)

    async def _run_check(
        self, accepted: AcceptedTask, check: Check, tree: str, others: Sequence[AcceptedTask]
    ) -> Sequence[CheckRun]:
        on_behalf(accepted.task.id)
        return await self._services.checks.on_tree(accepted, check, tree, others, phase="merged")

    async def _judge(self, tree: str, shared_files: Sequence[str]) -> Verdict | Cause:
        return await judge_merged(self._services, self._state, tree, shared_files)

    async def _load_branch(self) -> RunBranch:
        def load(reads: ReadOps) -> RunBranch:
            run = load_run(reads, self._run_services.facts.id)
            completed = self._run_services.completions.look(reads, run.id)
            return RunBranch(head=run.head, tree=run.head_tree, completed=completed)

        return await self._run_services.store.read(load)

    async def _save(self, merged: MergeCandidate) -> bool:
        """Move the head and the status together; False if another process moved the head."""
        work, final = self._state.work, merged.verdict or self._state.verdict
        commit, number = merged.commit or None, self._services.number
        now = stamp(self._run_services.clock.now())
        completion = CompletionChange(
            qc_score=float(final.score),
            qc_feedback=final.verdict.feedback,
            verified_at=now,
            total_attempts=number,
            qc_passed_on_attempt=number,
            retries_needed=number - 1,
            files_changed=work.changed,
            integrated_at=now,
            integrated_commit=commit,
            integrated_tree=merged.tree or None,
            accepted_attempt=number,
            passed_checks=self._passed_checks(),
        )
        counts = count((c.state, c.basis) for c in final.criteria)
        head = HeadUpdate(expect=merged.onto, head=merged.commit, tree=merged.tree)
        return await self._journal.transition(
            TaskStatus.COMPLETED,
            EventKind.TASK_COMPLETED,
            task=(completion, CriteriaCountsChange.of_counts(counts)),
            attempt=(AttemptMergeChange(verdict=PackedJson.pack(final), integrated_commit=commit),),
            data={
                "score": float(final.score),
                "commit": merged.commit,
                "changed": list(work.changed)[:200],
                "merged": bool(merged.runs),
            },
            records=self._seal(merged),
            verdict=merged.verdict,
            publish=head if merged.commit else None,
        )

    def _passed_checks(self) -> tuple[str, ...]:
        return tuple(o.check for o in self._state.outcomes if o.state == "passed")

    def _seal(self, merged: MergeCandidate) -> tuple[EvidenceRecord, ...]:
        bodies: list[tuple[seal.RecordKind, Body]] = [
            ("check", run_body(run, task=task)) for task, run in merged.runs
        ]
        if merged.verdict:
            answer = self._state.work.answer
            bodies.append(("verdict", verdict_body(merged.verdict, merged.tree, answer)))
        chain = self._services.records
        return seal.extend(self._services.chain, chain[-1] if chain else None, bodies)

    async def _take_lease(self) -> bool:
        services = self._run_services
        while not await services.store.write(  # noqa: ASYNC110  the holder may be in another process
            partial(
                take_integration,
                run=services.facts.id,
                owner=services.owner,
                task=self._services.task.id,
                seconds=services.lease_seconds,
                dead=services.owners.dead(),
            )
        ):
            await asyncio.sleep(LEASE_POLL_SECONDS)
        return True

    async def _release_lease(self) -> None:
        services = self._run_services
        owner = f"{services.owner}/{self._services.task.id}"
        release = partial(leases.release_lease, run=services.facts.id, name=INTEGRATOR, owner=owner)
        await services.store.write(release)


def take_integration(
    ops: WriteOps, run: str, owner: str, task: str, *, seconds: float, dead: Collection[str]
) -> bool:
    """Take or renew a run's integration lease for a task; False if another task holds it."""
    record = find_run(ops, run)
    held = record.integrator if record else ""
    # The holder names the task too; only its process can be dead.
    dead_holder = (held,) if held.split("/", 1)[0] in dead else ()
    return leases.acquire_lease(
        ops, run, INTEGRATOR, f"{owner}/{task}", seconds=seconds, dead=dead_holder
    )
