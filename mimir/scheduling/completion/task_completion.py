"""Completes an accepted attempt: its place on the run's line, QC's second judgement, and the values of success."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from mimir.attempts.nodes.judge import judge_merged
from mimir.attempts.results import JUDGEMENT, AttemptState, Deliverable
from mimir.attempts.services import AttemptServices
from mimir.domain.actor import act_for_task
from mimir.domain.clock import stamp
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
from mimir.scheduling.completion.transition import HeadUpdate, TransitionWriter
from mimir.scheduling.run_services import RunServices
from mimir.store import row_fields
from mimir.store.operations import evidence, leases, runs
from mimir.store.protocol import ReadOps, Value, WriteOps
from mimir.store.schema import NodeLabel, well_formed

LEASE_POLL_SECONDS = 0.05
INTEGRATOR = "integrator"
"""Name of the lease under which one task at a time integrates; held by `process/task`."""


class TaskCompletion:
    """Brings one accepted attempt onto the line, under its task's fence."""

    def __init__(
        self, crew: RunServices, desk: AttemptServices, course: AttemptState, move: TransitionWriter
    ) -> None:
        self._crew = crew
        self._desk = desk
        self._course = course
        self._move = move

    async def complete(self) -> MergeConflict | None:
        """Complete the task, or say why it has to be tried again.

        Raises:
            LeaseLost: Another holder has the task.
            Paused: The run must stop; the accepted verdict is kept.
        """
        work, judgement = self._course.work, self._course.judgement
        if work is None or judgement is None:
            raise AssertionError("qc_passed without a deliverable and a verdict")
        if not work.commit:
            await self._completed(work, judgement, MergeCandidate(commit="", tree="", onto=""))
            return None
        mine = AcceptedTask(
            task=self._desk.task,
            attempt=self._desk.number,
            answer=work.answer,
            passed=frozenset(o.check for o in self._course.outcomes if o.state == "passed"),
            changed=frozenset(map(well_formed, work.changed)),
            tree=work.tree,
            told=reported_counts(self._course.outcomes),
        )
        use = IntegrationServices(
            history=self._desk.history,
            run_check=self._run_check,
            judge=self._judge,
            line=self._line,
            publish=partial(self._completed, work, judgement),
            lease=self._take_lease,
            release=self._leave_lease,
        )
        give_way()
        await self._crew.pace.before_merge(self._desk.task.id, self._desk.number)
        async with self._crew.integrating:
            return await integrate(self._desk.task, work, mine, use)

    async def _run_check(
        self, one: AcceptedTask, check: Check, tree: str, others: Sequence[AcceptedTask]
    ) -> Sequence[CheckRun]:
        act_for_task(one.task.id)
        return await self._desk.checks.on_tree(one, check, tree, others, phase="merged")

    async def _judge(self, tree: str, both: Sequence[str]) -> Verdict | Cause:
        return await judge_merged(self._desk, self._course, tree, both)

    async def _line(self) -> RunBranch:
        run = self._crew.facts.id

        def look(reads: ReadOps) -> RunBranch:
            row = runs.node(reads, run)
            return RunBranch(
                head=row_fields.text_field(row, "head"),
                tree=row_fields.text_field(row, "headTree"),
                completed=self._crew.completions.look(reads, run),
            )

        return await self._crew.store.read(look)

    async def _completed(
        self, work: Deliverable, judgement: Verdict, merged: MergeCandidate
    ) -> bool:
        """Move the head and the status together; False if the head has moved meanwhile."""
        final = merged.judgement or judgement
        records = self._sealed(work, merged)
        values = self._values(work, final, merged)
        publish = HeadUpdate(expect=merged.onto, head=merged.commit, tree=merged.tree)
        return await self._move(
            TaskStatus.COMPLETED,
            EventKind.TASK_COMPLETED,
            task=values,
            attempt={
                "judgementJson": JUDGEMENT.encode(final),
                "integratedCommit": merged.commit or None,
            },
            data={
                "score": float(final.score),
                "commit": merged.commit,
                "changed": list(work.changed)[:200],
                "merged": bool(merged.runs),
            },
            records=records,
            judgement=merged.judgement,
            publish=publish if merged.commit else None,
        )

    def _sealed(self, work: Deliverable, merged: MergeCandidate) -> tuple[EvidenceRecord, ...]:
        bodies: list[tuple[seal.RecordKind, Body]] = [
            ("check", run_body(run, task=task)) for task, run in merged.runs
        ]
        if merged.judgement:
            bodies.append(("verdict", verdict_body(merged.judgement, merged.tree, work.answer)))
        chain = self._desk.records
        return seal.extend(self._desk.chain, chain[-1] if chain else None, bodies)

    def _values(
        self, work: Deliverable, judgement: Verdict, merged: MergeCandidate
    ) -> Mapping[str, Value]:
        now = stamp(self._crew.clock.now())
        number = self._desk.number
        return {
            "qcScore": float(judgement.score),
            "qcPassed": True,
            **evidence.properties((c.state, c.basis) for c in judgement.criteria),
            "qcFeedback": judgement.verdict.feedback,
            "verifiedAt": now,
            "totalAttempts": number,
            "qcPassedOnAttempt": number,
            "retriesNeeded": number - 1,
            "filesChanged": list(work.changed),
            "integratedAt": now,
            "integratedCommit": merged.commit or None,
            "integratedTree": merged.tree or None,
            "acceptedAttempt": number,
            "passedChecks": [o.check for o in self._course.outcomes if o.state == "passed"],
        }

    async def _take_lease(self) -> bool:
        crew = self._crew
        while not await crew.store.write(  # noqa: ASYNC110  the holder may be in another process
            partial(
                take_integration,
                run=crew.facts.id,
                owner=crew.owner,
                task=self._desk.task.id,
                seconds=crew.lease_seconds,
                dead=crew.owners.dead(),
            )
        ):
            await asyncio.sleep(LEASE_POLL_SECONDS)
        return True

    async def _leave_lease(self) -> None:
        crew = self._crew
        await crew.store.write(
            partial(
                leases.release_lease,
                run=crew.facts.id,
                name=INTEGRATOR,
                owner=f"{crew.owner}/{self._desk.task.id}",
            )
        )


def take_integration(
    ops: WriteOps, run: str, owner: str, task: str, *, seconds: float, dead: Collection[str]
) -> bool:
    """Take or renew the integration lease of a run for a task; False if another task holds it.

    Args:
        ops: The transaction.
        run: Whose line.
        owner: The process.
        task: Id in the plan.
        seconds: How long it lasts.
        dead: Processes that are known to be gone; nobody waits for one of them.
    """
    held = row_fields.text_field(ops.get(NodeLabel.RUN, run) or {}, INTEGRATOR)
    gone = (held,) if held.split("/", 1)[0] in dead else ()
    return leases.acquire_lease(ops, run, INTEGRATOR, f"{owner}/{task}", seconds=seconds, dead=gone)
