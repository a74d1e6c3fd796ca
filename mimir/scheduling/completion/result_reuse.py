"""Reuse of unchanged, completed tasks of an earlier run (`--from RUN`).

Definition and dependencies must be equal, and the dependencies reused too. The deliverable is merged onto the new run branch and its
checks run there; after a conflict or a red check the task stays pending. Attempt, verdict and evidence are copied and sealed again
under the new ids, because a chain belongs to its attempt by name.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from mimir.attempts.results import Deliverable
from mimir.attempts.services import AttemptStart
from mimir.domain.actor import CURRENT_ACTOR, Actor
from mimir.domain.clock import stamp
from mimir.domain.evidence import CheckRun, EvidenceRecord, RecordKind
from mimir.domain.graph import TaskGraph
from mimir.domain.ids import attempt_id
from mimir.domain.json_value import as_object
from mimir.domain.plan import Plan, Task
from mimir.domain.task_states import TaskStatus
from mimir.domain.verdict import Verdict
from mimir.qc.checks.check_runner import CheckRunner
from mimir.qc.checks.regression import AcceptedTask
from mimir.qc.evidence import seal
from mimir.qc.evidence.payloads import Body, run_body
from mimir.scheduling.completion.final_gate import counts
from mimir.scheduling.run_services import RunServices
from mimir.store.operations import claims, evidence, record_loading, runs
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.records.task_changes import ReuseChange
from mimir.store.records.task_records import TaskProgressRecord
from mimir.store.transcripts import shared_texts
from mimir.workspace.git.history import GitHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class ReusableTask:
    """A completed task of the earlier run, with its accepted attempt."""

    number: int
    """Number of the accepted attempt."""
    work: Deliverable
    verdict: Verdict
    passed_checks: tuple[str, ...]
    system_text: str
    """Name of the text that its brief shares with others. Empty: none."""
    records: tuple[EvidenceRecord, ...]


async def take_over(
    services: RunServices, history: GitHistory, checks: CheckRunner, source_run: str
) -> list[str]:
    """Reuse the completed tasks that did not change; return their ids, dependencies first.

    Raises:
        UsageError: There is no such run.
        Paused: A check could not be run.
    """
    CURRENT_ACTOR.set(Actor(run=services.facts.id))
    source_plan = record_loading.decode_plan(
        await services.store.read(partial(record_loading.load_run_with_plan, run=source_run))
    )
    done = await services.store.read(partial(_load_completed, run=services.facts.id))
    reused: list[str] = []
    for task in equal_tasks(services.facts.plan, source_plan):
        # Reused before a crash of this process.
        if task.id in done:
            reused.append(task.id)
            continue
        # A dependency that is done again may leave another base.
        if not set(task.dependencies) <= set(reused):
            continue
        source = await services.store.read(partial(_load_reusable, run=source_run, task=task.id))
        if source and await _TaskReuse(services, history, checks, source_run).reuse(task, source):
            reused.append(task.id)
    return reused


def equal_tasks(plan: Plan, source_plan: Plan) -> list[Task]:
    """Return the tasks that both plans define alike, dependencies before dependents."""
    known = {task.id: task for task in source_plan.tasks}
    order = TaskGraph.from_plan(plan).topological()
    return [plan.task(id) for id in order if known.get(id) == plan.task(id)]


def _load_completed(reads: ReadOps, run: str) -> set[str]:
    tasks = record_loading.load_tasks(reads, run, TaskProgressRecord)
    return {task.task_id for task in tasks if task.status is TaskStatus.COMPLETED}


def _load_reusable(reads: ReadOps, run: str, task: str) -> ReusableTask | None:
    record = record_loading.find_task(reads, run, task)
    if record is None or record.status is not TaskStatus.COMPLETED:
        return None
    number = record.accepted_attempt
    attempt = record_loading.find_attempt(reads, run, task, number)
    if attempt is None:
        return None
    return ReusableTask(
        number=number,
        work=attempt.deliverable.decode(Deliverable),
        verdict=attempt.verdict.decode(Verdict),
        passed_checks=record.passed_checks,
        system_text=attempt.start.decode(AttemptStart).system if attempt.start else "",
        records=tuple(evidence.records(reads, attempt.id)),
    )


class _TaskReuse:
    """Reuses one task."""

    def __init__(
        self, services: RunServices, history: GitHistory, checks: CheckRunner, source_run: str
    ) -> None:
        self._services = services
        self._history = history
        self._checks = checks
        self._source_run = source_run

    async def reuse(self, task: Task, source: ReusableTask) -> bool:
        """Complete the task with the earlier result; False if it must be done again."""
        work = source.work
        run = await self._services.store.read(
            partial(record_loading.load_run, run=self._services.facts.id)
        )
        tree = run.head_tree
        if work.commit:
            merge = await self._history.merge(run.head_tree, work.tree, work.base_tree)
            if merge.conflicts:
                return False
            tree = merge.tree
        check_runs = await self._run_checks(task, source, tree)
        if check_runs is None:
            return False
        commit = ""
        if tree != run.head_tree:
            message = f"{task.id}: {task.title}\n\nMimir-Taken-From: {self._source_run}\n"
            commit = await self._history.commit(tree, [run.head], message)
        now = stamp(self._services.clock.now())
        change = ReuseChange(
            verified_at=now,
            integrated_at=now,
            integrated_commit=commit or None,
            integrated_tree=tree if commit else None,
            accepted_attempt=source.number,
            total_attempts=source.number,
            taken_from=self._source_run,
        )
        save = partial(
            self._save,
            task=task,
            source=source,
            check_runs=check_runs,
            change=change,
            head=run.head,
        )
        return await self._services.store.write(save)

    async def _run_checks(
        self, task: Task, source: ReusableTask, tree: str
    ) -> list[CheckRun] | None:
        """Run the task's checks on the merged tree; None if one that counts is red."""
        accepted = AcceptedTask(
            task=task,
            attempt=source.number,
            answer=source.work.answer,
            passed=frozenset(source.passed_checks),
        )
        check_runs: list[CheckRun] = []
        for check in task.checks:
            ran = await self._checks.on_tree(accepted, check, tree, (), phase="merged")
            check_runs += ran
            if counts(accepted, check) and not ran[-1].green:
                return None
        return check_runs

    def _save(
        self,
        ops: WriteOps,
        task: Task,
        source: ReusableTask,
        check_runs: Sequence[CheckRun],
        change: ReuseChange,
        head: str,
    ) -> bool:
        """Copy, seal and complete in one transaction; False if the head has moved."""
        run, number = self._services.facts.id, source.number
        commit, tree = change.integrated_commit or "", change.integrated_tree or ""
        if commit and not runs.advance_head(ops, run, head, commit, tree):
            return False
        # The copied brief names a text that the source run keeps.
        if source.system_text:
            shared_texts.carry(ops, self._source_run, run, [source.system_text])
        claims.complete_reused_task(ops, run, task.id, change, commit=commit)
        name = attempt_id(run, task.id, number)
        evidence.put_artifact(ops, f"{name}/answer", run, "answer", source.work.answer, name)
        evidence.put_verdict(ops, run, task.id, number, 1, source.verdict)
        # Sealed again: the seal of a record covers the name of its chain.
        bodies: list[tuple[RecordKind, Body]] = [
            *((one.kind, as_object(json.loads(one.body))) for one in source.records),
            *(("check", run_body(check_run, task=task.id)) for check_run in check_runs),
        ]
        records = seal.extend(name, None, bodies)
        evidence.append(ops, run, task.id, number, None, name, records)
        return True
