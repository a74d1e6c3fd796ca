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

from mimir.attempts.results import JUDGEMENT, WORK, Work
from mimir.domain.actor import SPEAKER, Speaker
from mimir.domain.clock import stamp
from mimir.domain.event import EventKind
from mimir.domain.evidence import CheckRun, Record
from mimir.domain.graph import TaskGraph
from mimir.domain.ids import attempt_id, task_id
from mimir.domain.plan import Plan, Task
from mimir.domain.task_states import Mover, Status
from mimir.domain.verdict import Judgement
from mimir.qc.checks.check_runner import Checks
from mimir.qc.checks.regression import Accepted
from mimir.qc.evidence import seal
from mimir.qc.evidence.payloads import Body, run_body
from mimir.scheduling.completion.final_gate import counts
from mimir.scheduling.run_services import Crew
from mimir.store import row_fields
from mimir.store.operations import claims, evidence, runs
from mimir.store.operations import evidence as tally
from mimir.store.protocol import Ops, Reads, Row, Value
from mimir.store.schema import Edge, Label
from mimir.store.transcripts import shared_texts
from mimir.workspace.git.history import History

COPIED = ("checksJson", "judgementJson", "workJson", "startJson", "receiptJson", "preambleHash")
KEPT = (
    "qcScore", "qcFeedback", "workerOutput", "workerToolCalls", "workerTokens", "workerDuration",
    "workerMessageCount", "filesChanged", "passedChecks", "qcIssues", *tally.NAMES, tally.OPEN,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A completed task of the earlier run, with its accepted attempt."""

    task: Row
    attempt: Row
    records: tuple[Record, ...]
    number: int

    @property
    def work(self) -> Work:
        """The accepted deliverable."""
        return WORK.read(row_fields.text(self.attempt, "workJson"))

    @property
    def judgement(self) -> Judgement:
        """The accepted ruling."""
        return JUDGEMENT.read(row_fields.text(self.attempt, "judgementJson"))


async def take_over(crew: Crew, history: History, checks: Checks, source_run: str) -> list[str]:
    """Complete what can be taken over; the ids of those tasks, dependencies first.

    Raises:
        UsageError: There is no such run.
        Paused: A check could not be run.
    """
    SPEAKER.set(Speaker(run=crew.facts.id))
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
        if source and await _Taking(crew, history, checks, source_run).take(task, source):
            taken.append(task.id)
    return taken


def equal_tasks(ours: Plan, theirs: Plan) -> list[Task]:
    """Return our tasks that stand in both plans with the same definition, dependencies before dependents. Pure."""
    known = {t.id: t for t in theirs.tasks}
    order = TaskGraph.from_plan(ours).topological()
    return [ours.task(id) for id in order if known.get(id) == ours.task(id)]


def _completed(reads: Reads, run: str) -> set[str]:
    done = Status.COMPLETED.value
    return {row_fields.text(r, "taskId") for r in runs.tasks(reads, run) if r.get("status") == done}


def _source(reads: Reads, run: str, task: str) -> Source | None:
    row = reads.get(Label.TASK, task_id(run, task))
    if row is None or row.get("status") != Status.COMPLETED.value:
        return None
    number = row_fields.whole(row, "acceptedAttempt")
    name = attempt_id(run, task, number)
    attempt = reads.get(Label.ATTEMPT, name)
    if attempt is None:
        return None
    return Source(
        task=row, attempt=attempt, records=tuple(evidence.records(reads, name)), number=number
    )


class _Taking:
    """Takes one task over."""

    def __init__(self, crew: Crew, history: History, checks: Checks, source_run: str) -> None:
        self._crew = crew
        self._history = history
        self._checks = checks
        self._source_run = source_run

    async def take(self, task: Task, source: Source) -> bool:
        """Take it over; False: it has to be done again."""
        run, work = self._crew.facts.id, source.work
        row = await self._crew.store.read(partial(runs.node, run=run))
        head, tree = row_fields.text(row, "head"), row_fields.text(row, "headTree")
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

    async def _run_checks(self, task: Task, source: Source, tree: str) -> list[CheckRun] | None:
        """Run the task's checks on the merged tree; None: one that counted is red."""
        mine = Accepted(
            task=task,
            attempt=source.number,
            answer=source.work.answer,
            passed=frozenset(row_fields.texts(source.task, "passedChecks")),
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
        ops: Ops,
        task: Task,
        source: Source,
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
        ops.patch(Label.TASK, task_id(run, task.id), {"attemptNumber": number})
        row = claims.check_fence(ops, run, task.id, 0)
        claims.move(
            ops,
            run,
            task.id,
            row_fields.whole(row, "fence"),
            Status.COMPLETED,
            Mover.SCHEDULING,
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

    def _copy_attempt(self, ops: Ops, task: Task, source: Source, name: str) -> None:
        run = self._crew.facts.id
        row: dict[str, Value] = {
            "id": name,
            "name": f"{task.id} attempt {source.number}",
            "runId": run,
            "taskId": task.id,
            "seq": source.number,
            "attemptNumber": source.number,
            "status": Status.COMPLETED.value,
            "takenFrom": self._source_run,
        }
        row |= {key: source.attempt[key] for key in COPIED if key in source.attempt}
        ops.upsert(Label.ATTEMPT, [row])
        if system := row_fields.mapping(source.attempt, "startJson").get("system"):
            shared_texts.carry(ops, self._source_run, run, [str(system)])
        ops.link(Edge.HAS_ATTEMPT, [(task_id(run, task.id), name)])

    def _values(self, source: Source, commit: str, tree: str) -> dict[str, Value]:
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


def _body(record: Record) -> tuple[seal.RecordKind, Body]:
    return record.kind, cast("Mapping[str, object]", json.loads(record.body))
