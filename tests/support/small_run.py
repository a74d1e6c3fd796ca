"""A small run, written through the store's operations without models, git or sandbox.

Four tasks: `task-0` answers without changing anything; `task-1` fails its check once, claims otherwise, and is completed on the second
try, merged; `task-2` fails; `task-3` waits for it and is blocked.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from typing import Any, Literal

from mimir.agents.circuit_breaker import Trip
from mimir.agents.context.receipt import flatten_receipt
from mimir.domain.clock import stamp
from mimir.domain.criteria_counts import count_criteria
from mimir.domain.deliverable import Deliverable
from mimir.domain.event import EventKind
from mimir.domain.evidence import CheckOutcome, CheckRun
from mimir.domain.ids import attempt_id
from mimir.domain.plan import Check, Criterion, Plan, Task
from mimir.domain.task_states import Cause, RunStatus, TaskStatus, TransitionActor
from mimir.domain.verdict import CriterionOpinion, QCAnswer, State, Verdict
from mimir.qc.checks import decision_table
from mimir.qc.evidence import seal
from mimir.qc.evidence.payloads import check_bodies, deliverable_body, run_body, verdict_body
from mimir.qc.judgement import score
from mimir.store import row_fields
from mimir.store.operations import claims, evidence, runs, worker_processes
from mimir.store.operations.worker_processes import WorkerProcess
from mimir.store.protocol import GraphStore, ReadOps, Row, WriteOps
from mimir.store.records.artifact_records import PoolCounters
from mimir.store.records.record_codec import PackedJson, encode
from mimir.store.records.task_changes import CriteriaCountsChange
from mimir.store.schema import pack
from tests.support.clock import FrozenClock
from tests.support.small_history import FakeHistory
from tests.support.small_receipt import RECEIPT
from tests.support.stored_rows import run_row, task_rows

Sealed = tuple[seal.RecordKind, Mapping[str, object]]
RUN = "run-1"
FOUND = "refills at ten tokens a second"
PROCESS = WorkerProcess(owner="me", host="here", number=1, lock_file="")


def task(id: str, **given: Any) -> Task:
    values: dict[str, Any] = {
        "title": f"Title of {id}",
        "prompt": f"Do {id}.",
        "worker_role": "Python engineer",
        "criteria": (Criterion(id="c1", text="It answers"),),
        "estimated_tool_calls": 4,
        "estimated_minutes": 10.0,
    }
    return Task(id=id, **{**values, **given})


def check(id: str = "unit", **given: Any) -> Check:
    values: dict[str, Any] = {
        "criteria": ("c1",),
        "run": ("python", "-m", "pytest", "-q", "tests/test_limiter.py"),
        "kind": "flip",
        "tests": ("tests/test_limiter.py",),
    }
    return Check(id=id, **{**values, **given})


PLAN = Plan(
    title="Rate limiter",
    request="Add a rate limiter",
    goal="No more than ten calls a second",
    tasks=(
        task("task-0", title="Environment"),
        task(
            "task-1",
            title="Token bucket",
            files=("limiter.py",),
            checks=(check(),),
            criteria=(
                Criterion(id="c1", text="Refills at the configured rate", points=Fraction(60), critical=True),
                Criterion(id="c2", text="Safe under 8 threads", points=Fraction(40)),
            ),
        ),
        task("task-2", title="Middleware", max_retries=0),
        task("task-3", title="Documentation", dependencies=("task-2",)),
    ),
)  # fmt: skip


def ran(
    exit_code: int,
    phase: Literal["before", "after", "merged", "gate"],
    tree: str,
    *,
    name: str = "unit",
    again: bool = False,
) -> CheckRun:
    text = "3 passed" if exit_code == 0 else "1 failed: test_refills"
    return CheckRun(
        check=name,
        argv=check().argv,
        phase=phase,
        tree=tree,
        exit_code=exit_code,
        seconds=0.25,
        output_hash=hashlib.sha256(text.encode()).hexdigest(),
        output_tail=text,
        sandbox="bubblewrap",
        again=again,
    )


def opinion(word: Literal["PASS", "FAIL"], number: int, feedback: str, **states: State) -> QCAnswer:
    return QCAnswer(
        verdict=word,
        score=Fraction(number),
        feedback=feedback,
        issues=() if word == "PASS" else ("It does not refill.",),
        criteria=tuple(
            CriterionOpinion(id=id, state=state, quote=FOUND if state == "passed" else "", source="answer")
            for id, state in states.items()
        ),
    )  # fmt: skip


class SmallRun:
    """Writes a run step by step; each step is one transaction, as in the engine."""

    def __init__(
        self, store: GraphStore, clock: FrozenClock, *, plan: Plan = PLAN, run: str = RUN
    ) -> None:
        self.store = store
        self.clock = clock
        self.plan = plan
        self.run = run
        self.history = FakeHistory()
        self.base_tree = self.history.tree("base")
        self.base = self.history.commit("base", self.base_tree)

    async def create(self) -> None:
        new = runs.NewRun(
            id=self.run,
            kind="execute",
            project_id="p",
            project_name="api",
            name=self.plan.title,
            request=self.plan.request,
            plan=self.plan,
            plan_path="chains/rate-limiter/chain-output.md",
            settings={},
            engine_version="0.1.0",
            base_commit=self.base,
            base_tree=self.base_tree,
        )

        def work(ops: WriteOps) -> None:
            runs.create(ops, new)
            ops.patch("Run", self.run, {"sandbox": "bubblewrap"})
            roots = [(t.id, 1.0) for t in self.plan.tasks if not t.dependencies]
            claims.release_task(ops, self.run, roots)
            worker_processes.register_process(ops, self.run, PROCESS, PoolCounters(agents=1), 3600)

        await self.store.write(work)

    async def claim(self, task: str) -> claims.Claim:
        """Begin the next attempt of a task; the others wait for this claim only."""

        def work(ops: WriteOps) -> claims.Claim:
            for row in task_rows(ops, self.run):
                chosen = row["taskId"] == task
                ops.patch("Task", str(row["id"]), {"priority": 9.0 if chosen else 1.0})
            (claim,) = claims.claim(ops, self.run, "me", lease_seconds=300, limit=1)
            assert claim.task == task
            return claim

        claim = await self.store.write(work)
        await self.note(claim, {"receiptJson": pack(RECEIPT.as_json()), **flatten_receipt(RECEIPT)})
        return claim

    async def note(self, claim: claims.Claim, values: Row) -> None:
        await self.store.write(lambda ops: ops.patch("Attempt", self.name(claim), values))

    def name(self, claim: claims.Claim) -> str:
        return attempt_id(self.run, claim.task, claim.attempt)

    async def trip(self, claim: claims.Claim) -> None:
        trip = Trip(
            kind="tool_calls", detail="all 6 tool calls are used", at=13, tool_calls=6, tool_calls_left=0,
            messages_left=5,
        )  # fmt: skip
        await self.note(claim, {"tripJson": json.dumps(asdict(trip))})

    async def work(
        self, claim: claims.Claim, answer: str, changed: tuple[str, ...] = (), **more: Any
    ) -> Deliverable:
        """Store a deliverable: `worker_completed`."""
        name = self.name(claim)
        tree = self.history.tree(name) if changed else self.base_tree
        work = Deliverable(
            answer=answer,
            base_commit=self.base,
            base_tree=self.base_tree,
            tree=tree,
            commit=self.history.commit(name, tree) if changed else "",
            changed=changed,
            tool_calls=3,
            **more,
        )
        self.clock.advance(30)
        values: Row = {"workerOutput": answer, "workerDuration": 30.0, "workerToolCalls": 3}
        await self.move(
            claim,
            TaskStatus.WORKER_COMPLETED,
            EventKind.WORK_ANSWERED,
            task=values,
            attempt={
                **values,
                "workJson": PackedJson.pack(work).text,
                "workerCompletedAt": stamp(self.clock.now()),
            },
            artifacts={"answer": answer},
        )
        return work

    async def check(
        self, claim: claims.Claim, work: Deliverable, *exits: int
    ) -> tuple[CheckOutcome, ...]:
        """Seal the deliverable and the task's checks: `qc_executing`. `exits`: before, after, and again if there was one."""
        outcomes: tuple[CheckOutcome, ...] = ()
        if exits:
            before, after, *more = exits
            again = ran(more[0], "after", work.tree, again=True) if more else None
            outcome = decision_table.decide_check(
                check(),
                ran(before, "before", work.base_tree),
                ran(after, "after", work.tree),
                again,
            )
            outcomes = (outcome,)
        delivered = deliverable_body(work.tree, work.base_tree, work.answer, work.changed)
        bodies: list[Sealed] = [("deliverable", delivered)]
        bodies.extend(("check", body) for outcome in outcomes for body in check_bodies(outcome))
        await self.move(
            claim,
            TaskStatus.QC_EXECUTING,
            EventKind.JUDGING_STARTED,
            attempt={"checksJson": PackedJson.pack(outcomes).text},
            bodies=bodies,
        )
        return outcomes

    async def judge(
        self,
        claim: claims.Claim,
        work: Deliverable,
        outcomes: Sequence[CheckOutcome],
        verdict: QCAnswer,
        unsupported: Sequence[str] = (),
    ) -> Verdict:
        """Rule on it and seal the ruling: `qc_passed` or `qc_failed`."""
        ruled = score.decide_verdict(
            score.ScoreInput(
                task=self.plan.task(claim.task),
                verdict=verdict,
                outcomes=outcomes,
                sources={"answer": f"It {FOUND}."},
                unsupported=unsupported,
            )
        )
        values: Row = {
            "qcScore": float(ruled.score),
            "qcPassed": ruled.passed,
            "qcFeedback": ruled.verdict.feedback,
            "qcIssues": list(ruled.issues),
            **encode(
                CriteriaCountsChange.of_counts(
                    count_criteria((c.state, c.basis) for c in ruled.criteria)
                )
            ),
        }
        receipt = replace(RECEIPT, role="qc", lane="lane/qc")
        await self.move(
            claim,
            TaskStatus.QC_PASSED if ruled.passed else TaskStatus.QC_FAILED,
            EventKind.VERDICT_GIVEN,
            task=values,
            attempt={
                **values,
                "judgementJson": PackedJson.pack(ruled).text,
                "qcReceiptJson": pack(receipt.as_json()),
                **flatten_receipt(receipt, "qc"),
            },
            bodies=[("verdict", verdict_body(ruled, work.tree, work.answer))],
            judgement=ruled,
        )
        return ruled

    async def complete(
        self, claim: claims.Claim, work: Deliverable, ruled: Verdict, *, merged: Sequence[int] = ()
    ) -> None:
        """Bring it onto the line. `merged`: exit codes of its check on a merged tree; none: the line had not moved."""
        name = self.name(claim)
        bodies: list[Sealed] = []
        commit, tree = work.commit, work.tree
        if merged:
            tree = self.history.tree(f"merge {name}")
            commit = self.history.commit(f"merge {name}", tree)
            runs_made = [ran(code, "merged", tree, again=n > 0) for n, code in enumerate(merged)]
            bodies = [("check", run_body(run, task=claim.task)) for run in runs_made]
        sealed = await self.store.read(lambda reads: reads.get("Attempt", name))
        assert sealed is not None
        checks = PackedJson(str(sealed["checksJson"])).decode(tuple[CheckOutcome, ...])
        await self.move(
            claim,
            TaskStatus.COMPLETED,
            EventKind.TASK_COMPLETED,
            task={
                "qcScore": float(ruled.score),
                "qcPassed": True,
                "qcFeedback": ruled.verdict.feedback,
                "filesChanged": list(work.changed),
                "integratedCommit": commit or None,
                "integratedTree": tree if commit else None,
                "acceptedAttempt": claim.attempt,
                "passedChecks": [o.check for o in checks if o.state == "passed"],
            },
            attempt={"integratedCommit": commit or None},
            data={"commit": commit},
            bodies=bodies,
            head=(commit, tree) if commit else None,
        )

    async def retry(self, claim: claims.Claim, cause: Cause, issues: Sequence[str]) -> None:
        await self.move(
            claim,
            TaskStatus.PREPARING_RETRY,
            EventKind.TASK_RETRIED,
            mover=TransitionActor.SCHEDULING,
            attempt={"endCause": cause.value, "issues": list(issues), "judged": True},
            data={"reason": cause.value, "issues": list(issues)},
        )

    async def fail(self, claim: claims.Claim, cause: Cause, issues: Sequence[str]) -> None:
        await self.move(
            claim,
            TaskStatus.FAILED,
            EventKind.TASK_FAILED,
            mover=TransitionActor.SCHEDULING,
            task={"cause": cause.value, "qcPassed": False},
            attempt={"endCause": cause.value, "issues": list(issues), "judged": True},
            data={"cause": cause.value},
        )

    async def gate(self, *exits: tuple[str, int], red: Sequence[Mapping[str, str]] = ()) -> None:
        """Seal a passage of the final gate: (task, exit code) of each run of its check."""
        chain = f"{self.run}/gate"

        def work(ops: WriteOps) -> None:
            row = run_row(ops, self.run)
            sealed = evidence.records(ops, chain)
            bodies: list[Sealed] = [
                ("check", run_body(ran(code, "gate", str(row["headTree"])), task=task))
                for task, code in exits
            ]
            bodies.append(("gate", {"tree": row["headTree"], "red": list(red)}))
            records = seal.extend(chain, sealed[-1] if sealed else None, bodies)
            evidence.append(ops, self.run, "", 0, None, chain, records)
            kind = EventKind.GATE_FAILED if red else EventKind.GATE_PASSED
            runs.append_event(ops, self.run, kind, data={"checks": len(exits), "red": list(red)})

        await self.store.write(work)

    async def end(self, outcome: RunStatus, *, red: Sequence[str] = ()) -> str:
        """Seal and end the run; its seal."""

        def look(reads: ReadOps) -> tuple[Row, str, list[tuple[str, int, str]]]:
            attempts = reads.find("Attempt", {"runId": self.run})
            chains = [
                (str(r["taskId"]), row_fields.int_field(r, "seq"), str(r["chainHash"]))
                for r in attempts
                if "chainHash" in r
            ]
            return (
                run_row(reads, self.run),
                evidence.records(reads, f"{self.run}/gate")[-1].hash,
                chains,
            )

        row, last, chains = await self.store.read(look)
        whole = seal.run_seal(last, chains)
        moved = row["head"] != row["baseCommit"]
        message = f"{self.plan.title}\n\nMimir-Run: {self.run}\nMimir-Seal: {whole}\n"
        commit = self.history.commit("final", str(row["headTree"]), message) if moved else None
        noted: Row = {
            "outcome": outcome.value, "seal": whole, "finalCommit": commit, "gateRedJson": pack(list(red)),
        }  # fmt: skip

        def work(ops: WriteOps) -> None:
            ops.patch("Run", self.run, noted)
            runs.set_status(
                ops, self.run, outcome, EventKind.RUN_FINISHED,
                {"outcome": outcome.value, "seal": whole}, expect=(RunStatus.RUNNING,),
            )  # fmt: skip

        await self.store.write(work)
        return whole

    async def move(
        self,
        claim: claims.Claim,
        to: TaskStatus,
        kind: EventKind,
        *,
        task: Row | None = None,
        attempt: Row | None = None,
        data: Mapping[str, object] | None = None,
        bodies: Sequence[Sealed] = (),
        artifacts: Mapping[str, str] | None = None,
        judgement: Verdict | None = None,
        mover: TransitionActor | None = None,
        head: tuple[str, str] | None = None,
    ) -> None:
        name = self.name(claim)
        by = mover or (
            TransitionActor.SCHEDULING if to is TaskStatus.COMPLETED else TransitionActor.MACHINE
        )

        def work(ops: WriteOps) -> None:
            if head:
                runs.advance_head(ops, self.run, str(run_row(ops, self.run)["head"]), *head)
            for suffix, text in (artifacts or {}).items():
                evidence.put_artifact(ops, f"{name}/{suffix}", self.run, suffix, text, name)
            sealed = evidence.records(ops, name)
            records = seal.extend(name, sealed[-1] if sealed else None, bodies)
            evidence.append(ops, self.run, claim.task, claim.attempt, claim.fence, name, records)
            if judgement:
                number = len(ops.neighbours(name, ["HAS_VERDICT"], "out")) + 1
                evidence.put_verdict(ops, self.run, claim.task, claim.attempt, number, judgement)
            claims.move(ops, self.run, claim.task, claim.fence, to, by, kind=kind, data=data)
            ops.patch("Task", claim.record.id, task or {})
            ops.patch("Attempt", name, attempt or {})

        await self.store.write(work)
