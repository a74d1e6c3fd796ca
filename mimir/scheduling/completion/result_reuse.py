"""`--from RUN`: completed tasks of an earlier run are taken over where nothing that decides them has changed.

Definition and dependencies must be equal, and the dependencies taken over too. The deliverable is merged onto the new line and its checks
run there; on a conflict or a red check the task stays pending. Attempt, verdict and evidence are copied under the new run's ids and sealed
again: a chain belongs to its attempt by name. `takenFrom` names the source.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from mimir.attempts.results import JUDGEMENT, WORK, Deliverable
from mimir.domain.actor import CURRENT_ACTOR, Actor
from mimir.domain.clock import stamp
from mimir.domain.event import EventKind
from mimir.domain.evidence import CheckRun, EvidenceRecord
from mimir.domain.graph import TaskGraph
from mimir.domain.ids import attempt_id, task_id
from mimir.domain.plan import Plan, Task
from mimir.domain.task_states import TaskStatus, TransitionActor
from mimir.domain.verdict import Verdict
from mimir.qc.checks.check_runner import CheckRunner
from mimir.qc.checks.regression import AcceptedTask
from mimir.qc.evidence import seal
from mimir.qc.evidence.payloads import Body, run_body
from mimir.scheduling.completion.final_gate import counts
from mimir.scheduling.run_services import RunServices
from mimir.store import row_fields
from mimir.store.operations import claims, evidence, runs
from mimir.store.operations import evidence as tally
from mimir.store.protocol import ReadOps, Row, Value, WriteOps
from mimir.store.schema import EdgeType, NodeLabel
from mimir.store.transcripts import shared_texts
from mimir.workspace.git.history import GitHistory

COPIED = ("checksJson", "judgementJson", "workJson", "startJson", "receiptJson", "preambleHash")
KEPT = (
    "qcScore", "qcFeedback", "workerOutput", "workerToolCalls", "workerTokens", "workerDuration",
    "workerMessageCount", "filesChanged", "passedChecks", "qcIssues", *tally.NAMES, tally.OPEN,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ReusableTask:
    """A completed task of the earlier run, with its accepted attempt."""

    task: Row
    attempt: Row
    records: tuple[EvidenceRecord, ...]
    number: int

    @property
    def work(self) -> Deliverable:
        """The accepted deliverable."""
        return WORK.decode(row_fields.text_field(self.attempt, "workJson"))

    @property
    def judgement(self) -> Verdict:
        """The accepted ruling."""
        return JUDGEMENT.decode(row_fields.text_field(self.attempt, "judgementJson"))


async def take_over(
    crew: RunServices, history: GitHistory, checks: CheckRunner, source_run: str
) -> list[str]:
    """Complete what can be taken over; the ids of those tasks, dependencies first.

    Raises:
        UsageError: There is no such run.
        Paused: A check could not be run.
    """
    CURRENT_ACTOR.set(Actor(run=crew.facts.id))
    before = await crew.store.read(partial(runs.get, run=source_run))
    theirs = runs.plan_of(before)
    done = await crew.store.read(partial(_completed, run=crew.facts.id))
    taken: list[str] = []
    for task in equal_tasks(crew.facts.plan, theirs):
        if task.id in done:
            taken.append(task.id)
            continue
        if not set(task.dependencies) <= set(taken):
            continue
        source = await crew.store.read(partial(_source, run=source_run, task=task.id))
        if source and await _TaskReuse(crew, history, checks, source_run).take(task, source):
            taken.append(task.id)
    return taken


def equal_tasks(ours: Plan, theirs: Plan) -> list[Task]:
    """Return our tasks that stand in both plans with the same definition, dependencies before dependents. Pure."""
    known = {t.id: t for t in theirs.tasks}
    order = TaskGraph.from_plan(ours).topological()
    return [ours.task(id) for id in order if known.get(id) == ours.task(id)]


def _completed(reads: ReadOps, run: str) -> set[str]:
    done = TaskStatus.COMPLETED.value
    return {
        row_fields.text_field(r, "taskId")
        for r in runs.tasks(reads, run)
        if r.get("status") == done
    }


def _source(reads: ReadOps, run: str, task: str) -> ReusableTask | None:
    row = reads.get(NodeLabel.TASK, task_id(run, task))
    if row is None or row.get("status") != TaskStatus.COMPLETED.value:
        return None
    number = row_fields.int_field(row, "acceptedAttempt")
    name = attempt_id(run, task, number)
    attempt = reads.get(NodeLabel.ATTEMPT, name)
    if attempt is None:
        return None
    return ReusableTask(
        task=row, attempt=attempt, records=tuple(evidence.records(reads, name)), number=number
    )


class _TaskReuse:
    """Takes one task over."""

    def __init__(
        self, crew: RunServices, history: GitHistory, checks: CheckRunner, source_run: str
    ) -> None:
        self._crew = crew
        self._history = history
        self._checks = checks
        self._source_run = source_run

    async def take(self, task: Task, source: ReusableTask) -> bool:
        """Take it over; False: it has to be done again."""
        run, work = self._crew.facts.id, source.work
        row = await self._crew.store.read(partial(runs.node, run=run))
        head, tree = row_fields.text_field(row, "head"), row_fields.text_field(row, "headTree")
        commit, merged_tree = "", tree
        if work.commit:
            merge = await self._history.merge(tree, work.tree, work.base_tree)
            if merge.conflicts:
                return False
            merged_tree = merge.tree
        seen = await self._run_checks(task, source, merged_tree)
        if seen is None:
            return False
        if merged_tree != tree:
            message = f"{task.id}: {task.title}\n\nMimir-Taken-From: {self._source_run}\n"
            commit = await self._history.commit(merged_tree, [head], message)
        return await self._crew.store.write(
            partial(
                self._write, task=task, source=source, seen=seen, move=(head, commit, merged_tree)
            )
        )

    async def _run_checks(
        self, task: Task, source: ReusableTask, tree: str
    ) -> list[CheckRun] | None:
        """Run the task's checks on the merged tree; None: one that counted is red."""
        mine = AcceptedTask(
            task=task,
            attempt=source.number,
            answer=source.work.answer,
            passed=frozenset(row_fields.text_list_field(source.task, "passedChecks")),
        )
        seen: list[CheckRun] = []
        for check in task.checks:
            ran = await self._checks.on_tree(mine, check, tree, (), phase="merged")
            seen += ran
            if counts(mine, check) and not ran[-1].green:
                return None
        return seen

    def _write(
        self,
        ops: WriteOps,
        task: Task,
        source: ReusableTask,
        seen: Sequence[CheckRun],
        move: tuple[str, str, str],
    ) -> bool:
        """Copy, seal and complete in one transaction; False: the head has moved."""
        run, number = self._crew.facts.id, source.number
        head, commit, tree = move
        if commit and not runs.advance_head(ops, run, head, commit, tree):
            return False
        name = attempt_id(run, task.id, number)
        self._copy_attempt(ops, task, source, name)
        ops.patch(NodeLabel.TASK, task_id(run, task.id), {"attemptNumber": number})
        row = claims.check_fence(ops, run, task.id, 0)
        claims.move(
            ops,
            run,
            task.id,
            row_fields.int_field(row, "fence"),
            TaskStatus.COMPLETED,
            TransitionActor.SCHEDULING,
            props=self._values(source, commit, tree),
            kind=EventKind.TASK_COMPLETED,
            data={"takenFrom": self._source_run, "commit": commit},
        )
        evidence.put_artifact(ops, f"{name}/answer", run, "answer", source.work.answer, name)
        evidence.put_verdict(ops, run, task.id, number, 1, source.judgement)
        bodies: list[tuple[seal.RecordKind, Body]] = [_body(r) for r in source.records]
        merged: list[tuple[seal.RecordKind, Body]] = [
            ("check", run_body(one, task=task.id)) for one in seen
        ]
        evidence.append(
            ops, run, task.id, number, None, name, seal.extend(name, None, bodies + merged)
        )
        return True

    def _copy_attempt(self, ops: WriteOps, task: Task, source: ReusableTask, name: str) -> None:
        run = self._crew.facts.id
        row: dict[str, Value] = {
            "id": name,
            "name": f"{task.id} attempt {source.number}",
            "runId": run,
            "taskId": task.id,
            "seq": source.number,
            "attemptNumber": source.number,
            "status": TaskStatus.COMPLETED.value,
            "takenFrom": self._source_run,
        }
        row |= {key: source.attempt[key] for key in COPIED if key in source.attempt}
        ops.upsert(NodeLabel.ATTEMPT, [row])
        if system := row_fields.json_field(source.attempt, "startJson").get("system"):
            shared_texts.carry(ops, self._source_run, run, [str(system)])
        ops.link(EdgeType.HAS_ATTEMPT, [(task_id(run, task.id), name)])

    def _values(self, source: ReusableTask, commit: str, tree: str) -> dict[str, Value]:
        now = stamp(self._crew.clock.now())
        values: dict[str, Value] = {key: source.task[key] for key in KEPT if key in source.task}
        return values | {
            "qcPassed": True,
            "verifiedAt": now,
            "integratedAt": now,
            "integratedCommit": commit or None,
            "integratedTree": tree if commit else None,
            "acceptedAttempt": source.number,
            "totalAttempts": source.number,
            "takenFrom": self._source_run,
        }


def _body(record: EvidenceRecord) -> tuple[seal.RecordKind, Body]:
    return record.kind, cast("Mapping[str, object]", json.loads(record.body))
