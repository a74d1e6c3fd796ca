"""Reuse of unchanged, completed tasks of an earlier run (`--from RUN`).

Definition and dependencies must be equal, and the dependencies reused too. The deliverables are merged onto the new run branch, and the
checks of all run on the last tree, with controls if its base is another one. After a conflict or a red check a task stays pending. Attempt,
verdict and evidence are copied and sealed again under the new ids, because a chain belongs to its attempt by name.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from mimir.attempts.services import AttemptStart
from mimir.domain.actor import CURRENT_ACTOR, Actor
from mimir.domain.clock import stamp
from mimir.domain.deliverable import Deliverable
from mimir.domain.evidence import CheckRun, EvidenceRecord, RecordKind
from mimir.domain.graph import TaskGraph
from mimir.domain.ids import attempt_id
from mimir.domain.json_value import as_object
from mimir.domain.plan import Check, Plan, Task
from mimir.domain.task_states import TaskStatus
from mimir.domain.value_class import value_class
from mimir.domain.verdict import Verdict
from mimir.qc.checks.check_runner import CheckRunner
from mimir.qc.checks.regression import AcceptedTask
from mimir.qc.controls.control_case import ControlCase
from mimir.qc.evidence import seal
from mimir.qc.evidence.payloads import Body, run_body
from mimir.scheduling.completion.final_gate import counts
from mimir.scheduling.run_services import RunServices
from mimir.store.operations import claims, evidence, record_loading, runs
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.records.task_changes import ReuseChange
from mimir.store.records.task_records import TaskProgressRecord
from mimir.store.schema import well_formed
from mimir.store.transcripts import shared_texts
from mimir.workspace.aio import await_all
from mimir.workspace.git.history import GitHistory


@value_class
class ReusableTask:
    """A completed task of the earlier run, with its accepted attempt."""

    task: Task
    number: int
    """Number of the accepted attempt."""
    work: Deliverable
    verdict: Verdict
    passed_checks: tuple[str, ...]
    system_text: str
    """Name of the text that its brief shares with others. Empty: none."""
    records: tuple[EvidenceRecord, ...]


@value_class
class _MergedResult:
    source: ReusableTask
    commit: str
    """Empty: its result changes nothing."""
    tree: str
    """Of the results merged up to here."""


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
    # Reused before a crash of this process.
    done = await services.store.read(partial(_load_completed, run=services.facts.id))
    equal = equal_tasks(services.facts.plan, source_plan)
    sources = await services.store.read(
        partial(_load_reusable, run=source_run, tasks=[one for one in equal if one.id not in done])
    )
    reuse = _TaskReuse(services, history, checks, source_run, done)
    await reuse.reuse(sources)
    return [task.id for task in equal if task.id in reuse.reused]


def equal_tasks(plan: Plan, source_plan: Plan) -> list[Task]:
    """Return the tasks that both plans define alike, dependencies before dependents."""
    known = {task.id: task for task in source_plan.tasks}
    order = TaskGraph.from_plan(plan).topological()
    return [plan.task(id) for id in order if known.get(id) == plan.task(id)]


def _load_completed(reads: ReadOps, run: str) -> set[str]:
    tasks = record_loading.load_tasks(reads, run, TaskProgressRecord)
    return {task.task_id for task in tasks if task.status is TaskStatus.COMPLETED}


def _load_reusable(reads: ReadOps, run: str, tasks: Sequence[Task]) -> list[ReusableTask]:
    found: list[ReusableTask] = []
    for task in tasks:
        record = record_loading.find_task(reads, run, task.id)
        if record is None or record.status is not TaskStatus.COMPLETED:
            continue
        number = record.accepted_attempt
        attempt = record_loading.find_attempt(reads, run, task.id, number)
        if attempt is None:
            continue
        source = ReusableTask(
            task=task,
            number=number,
            work=attempt.deliverable.decode(Deliverable),
            verdict=attempt.verdict.decode(Verdict),
            passed_checks=record.passed_checks,
            system_text=attempt.start.decode(AttemptStart).system if attempt.start else "",
            records=tuple(evidence.records(reads, attempt.id)),
        )
        found.append(source)
    return found


class _TaskReuse:
    """Reuses tasks of one run."""

    def __init__(
        self,
        services: RunServices,
        history: GitHistory,
        checks: CheckRunner,
        source_run: str,
        reused: set[str],
    ) -> None:
        self._services = services
        self._history = history
        self._checks = checks
        self._source_run = source_run
        self.reused = reused
        """Ids of the tasks that need no work."""

    async def reuse(self, sources: Sequence[ReusableTask]) -> None:
        """Complete tasks with their earlier results; the others stay pending.

        One tree contains all results: a tree for each would cost a run of the suite for each. If a check is red, each half is tried.
        """
        run = await self._services.store.read(
            partial(record_loading.load_run, run=self._services.facts.id)
        )
        merges = await self._merge(sources, run.head, run.head_tree)
        if not merges:
            return
        tree = merges[-1].tree
        known = {path for one in merges for path in one.source.work.changed}
        ran = await await_all(
            [self._run_checks(one.source, tree, run.head_tree, known) for one in merges]
        )
        green = [one for one in ran if one is not None]
        if len(green) == len(merges):
            save = partial(self._save_all, head=run.head, merges=merges, check_runs=green)
            if await self._services.store.write(save):
                self.reused.update(one.source.task.id for one in merges)
        elif len(sources) > 1:
            middle = len(sources) // 2
            await self.reuse(sources[:middle])
            await self.reuse(sources[middle:])

    async def _merge(
        self, sources: Sequence[ReusableTask], head: str, tree: str
    ) -> list[_MergedResult]:
        """Merge one after another; leave out conflicts and the tasks that depend on them."""
        merges: list[_MergedResult] = []
        reused = set(self.reused)
        for source in sources:
            work, task = source.work, source.task
            # A dependency that is done again may leave another base.
            if not set(task.dependencies) <= reused:
                continue
            before = tree
            if work.commit:
                merge = await self._history.merge(tree, work.tree, work.base_tree)
                if merge.conflicts:
                    continue
                tree = merge.tree
            commit = ""
            if tree != before:
                message = f"{task.id}: {task.title}\n\nMimir-Taken-From: {self._source_run}\n"
                commit = head = await self._history.commit(tree, [head], message)
            merges.append(_MergedResult(source=source, commit=commit, tree=tree))
            reused.add(task.id)
        return merges

    async def _run_checks(
        self, source: ReusableTask, tree: str, base: str, known: Collection[str]
    ) -> list[CheckRun] | None:
        """Run a task's checks on the merged tree; None if one that counts is red, or cannot fail.

        `known` paths changed by reuse: of another one, the earlier controls say nothing.
        """
        accepted = AcceptedTask(
            task=source.task,
            attempt=source.number,
            answer=source.work.answer,
            passed=frozenset(source.passed_checks),
        )
        new = await self._history.diff_trees(source.work.tree, tree)
        is_other_base = any(well_formed(one.path) not in known for one in new)
        check_runs: list[CheckRun] = []
        for check in source.task.checks:
            ran = await self._checks.on_tree(accepted, check, tree, (), phase="merged")
            check_runs += ran
            if not counts(accepted, check):
                continue
            if not ran[-1].green:
                return None
            if is_other_base and await self._cannot_fail(accepted, check, source, ran[-1], base):
                return None
        return check_runs

    async def _cannot_fail(
        self, accepted: AcceptedTask, check: Check, source: ReusableTask, run: CheckRun, base: str
    ) -> bool:
        """True if a check stays green with changed expectations; they are those of a new base."""
        before = (await self._checks.on_tree(accepted, check, base, (), phase="merged"))[-1]
        case = ControlCase(
            check=check,
            kind=check.kind or ("hold" if before.green else "flip"),
            before=before,
            after=replace(run, phase="after"),
            base_tree=base,
            changed=source.work.changed,
            answer=accepted.answer,
        )
        control = (await self._checks.control(case)).control
        return control is not None and control.state == "insensitive"

    def _save_all(
        self,
        ops: WriteOps,
        head: str,
        merges: Sequence[_MergedResult],
        check_runs: Sequence[Sequence[CheckRun]],
    ) -> bool:
        """Save in one transaction, as one tree proves all; False if the head has moved."""
        last = next((one for one in reversed(merges) if one.commit), None)
        run = self._services.facts.id
        if last and not runs.advance_head(ops, run, head, last.commit, last.tree):
            return False
        for merged, ran in zip(merges, check_runs, strict=True):
            self._save(ops, merged, ran)
        return True

    def _save(self, ops: WriteOps, merged: _MergedResult, check_runs: Sequence[CheckRun]) -> None:
        """Copy, seal and complete."""
        source, run = merged.source, self._services.facts.id
        number, task = source.number, source.task.id
        now = stamp(self._services.clock.now())
        change = ReuseChange(
            verified_at=now,
            integrated_at=now,
            integrated_commit=merged.commit or None,
            integrated_tree=merged.tree if merged.commit else None,
            accepted_attempt=number,
            total_attempts=number,
            taken_from=self._source_run,
        )
        # The copied brief names a text that the source run keeps.
        if source.system_text:
            shared_texts.carry(ops, self._source_run, run, [source.system_text])
        claims.complete_reused_task(ops, run, task, change, commit=merged.commit)
        name = attempt_id(run, task, number)
        evidence.put_artifact(ops, f"{name}/answer", run, "answer", source.work.answer, name)
        evidence.put_verdict(ops, run, task, number, 1, source.verdict)
        # Sealed again: the seal of a record covers the name of its chain.
        bodies: list[tuple[RecordKind, Body]] = [
            *((one.kind, as_object(json.loads(one.body))) for one in source.records),
            *(("check", run_body(check_run, task=task)) for check_run in check_runs),
        ]
        records = seal.extend(name, None, bodies)
        evidence.append(ops, run, task, number, None, name, records)
