"""Completes an accepted attempt: its place on the run's line, QC's second judgement, and the values of success."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from mimir.attempts.nodes.judge import judge_merged
from mimir.attempts.results import JUDGEMENT, Course, Work
from mimir.attempts.services import Desk
from mimir.domain.actor import on_behalf
from mimir.domain.clock import stamp
from mimir.domain.event import EventKind
from mimir.domain.evidence import CheckRun, Record
from mimir.domain.plan import Check
from mimir.domain.task_states import Cause, Status
from mimir.domain.turn_hook import give_way
from mimir.domain.verdict import Judgement
from mimir.qc.checks.regression import Accepted, told
from mimir.qc.evidence import seal
from mimir.qc.evidence.payloads import Body, run_body, verdict_body
from mimir.scheduling.completion.integration import Clash, Integrator, Line, Merged, integrate
from mimir.scheduling.completion.transition import Move, Publish
from mimir.scheduling.run_services import Crew
from mimir.store import row_fields
from mimir.store.operations import evidence, leases, runs
from mimir.store.protocol import Ops, Reads, Value
from mimir.store.schema import Label, well_formed

LEASE_POLL_SECONDS = 0.05
INTEGRATOR = "integrator"
"""Name of the lease under which one task at a time integrates; held by `process/task`."""


class Merging:
    """Brings one accepted attempt onto the line, under its task's fence."""

    def __init__(self, crew: Crew, desk: Desk, course: Course, move: Move) -> None:
        self._crew = crew
        self._desk = desk
        self._course = course
        self._move = move

    async def complete(self) -> Clash | None:
        """Complete the task, or say why it has to be tried again.

        Raises:
            LeaseLost: Another holder has the task.
            Paused: The run must stop; the accepted verdict is kept.
        """
        work, judgement = self._course.work, self._course.judgement
        if work is None or judgement is None:
            raise AssertionError("qc_passed without a deliverable and a verdict")
        if not work.commit:
            await self._completed(work, judgement, Merged(commit="", tree="", onto=""))
            return None
        mine = Accepted(
            task=self._desk.task,
            attempt=self._desk.number,
            answer=work.answer,
            passed=frozenset(o.check for o in self._course.outcomes if o.state == "passed"),
            changed=frozenset(map(well_formed, work.changed)),
            tree=work.tree,
            told=told(self._course.outcomes),
        )
        use = Integrator(
            history=self._desk.history,
            run_check=self._run_check,
            judge=self._judge,
            line=self._line,
            publish=partial(self._completed, work, judgement),
            lease=self._take_lease,
            release=self._leave_lease,
        )
        give_way()
        await self._crew.pace.land(self._desk.task.id, self._desk.number)
        async with self._crew.integrating:
            return await integrate(self._desk.task, work, mine, use)

    async def _run_check(
        self, one: Accepted, check: Check, tree: str, others: Sequence[Accepted]
    ) -> Sequence[CheckRun]:
        on_behalf(one.task.id)
        return await self._desk.checks.on_tree(one, check, tree, others, phase="merged")

    async def _judge(self, tree: str, both: Sequence[str]) -> Judgement | Cause:
        return await judge_merged(self._desk, self._course, tree, both)

    async def _line(self) -> Line:
        run = self._crew.facts.id

        def look(reads: Reads) -> Line:
            row = runs.node(reads, run)
            return Line(
                head=row_fields.text(row, "head"),
                tree=row_fields.text(row, "headTree"),
                completed=self._crew.completions.look(reads, run),
            )

        return await self._crew.store.read(look)

    async def _completed(self, work: Work, judgement: Judgement, merged: Merged) -> bool:
        """Move the head and the status together; False if the head has moved meanwhile."""
        final = merged.judgement or judgement
        records = self._sealed(work, merged)
        values = self._values(work, final, merged)
        publish = Publish(expect=merged.onto, head=merged.commit, tree=merged.tree)
        return await self._move(
            Status.COMPLETED,
            EventKind.TASK_COMPLETED,
            task=values,
            attempt={
                "judgementJson": JUDGEMENT.write(final),
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

    def _sealed(self, work: Work, merged: Merged) -> tuple[Record, ...]:
        bodies: list[tuple[seal.RecordKind, Body]] = [
            ("check", run_body(run, task=task)) for task, run in merged.runs
        ]
        if merged.judgement:
            bodies.append(("verdict", verdict_body(merged.judgement, merged.tree, work.answer)))
        chain = self._desk.records
        return seal.extend(self._desk.chain, chain[-1] if chain else None, bodies)

    def _values(self, work: Work, judgement: Judgement, merged: Merged) -> Mapping[str, Value]:
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
                leases.leave,
                run=crew.facts.id,
                name=INTEGRATOR,
                owner=f"{crew.owner}/{self._desk.task.id}",
            )
        )


def take_integration(
    ops: Ops, run: str, owner: str, task: str, *, seconds: float, dead: Collection[str]
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
    held = row_fields.text(ops.get(Label.RUN, run) or {}, INTEGRATOR)
    gone = (held,) if held.split("/", 1)[0] in dead else ()
    return leases.take(ops, run, INTEGRATOR, f"{owner}/{task}", seconds=seconds, dead=gone)
