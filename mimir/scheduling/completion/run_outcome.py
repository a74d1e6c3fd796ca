"""Outcome of a run: the final gate, the seals, and the status that follows from them."""

from collections.abc import Collection, Iterator, Sequence
from functools import partial

from mimir.attempts.services import PinnedRun
from mimir.domain import ids
from mimir.domain.actor import CURRENT_ACTOR, Actor, act_for_task
from mimir.domain.deliverable import Deliverable
from mimir.domain.event import EventKind
from mimir.domain.evidence import (
    CheckRun,
    EvidenceRecord,
    RecordKind,
    describe_broken_check,
)
from mimir.domain.plan import Check, Plan
from mimir.domain.question import describe_unanswered, is_unanswered
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.domain.value_class import value_class
from mimir.qc.checks.check_runner import CheckRunner
from mimir.qc.checks.regression import AcceptedTask
from mimir.qc.evidence import seal
from mimir.qc.evidence.payloads import Body, facts_hash, run_body
from mimir.qc.scope.test_owners import find_pending_tests
from mimir.scheduling import lifecycle
from mimir.scheduling.completion.final_gate import (
    FailedGateCheck,
    GateResult,
    MergeStep,
    describe_restored_files,
    pass_through,
)
from mimir.scheduling.run_services import RunServices
from mimir.scheduling.task_queries import load_accepted_task
from mimir.store.operations import evidence, record_loading, runs
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.questions import question_rows
from mimir.store.records.attempt_records import AttemptSummaryRecord
from mimir.store.records.record_codec import PackedJson
from mimir.store.records.run_changes import RunSealChange
from mimir.store.records.run_records import RunRecord
from mimir.store.records.task_records import AcceptedTaskRecord, EndedTaskRecord
from mimir.store.sealing.run_facts import Facts, has_record_form, load_facts
from mimir.workspace.git.history import GitHistory


@value_class
class RunOutcome:
    """End of a run: its outcome, with the reason."""

    outcome: RunStatus
    seal: str
    commit: str
    """Final commit, with the seal in its message. Empty: nothing was merged."""
    tree: str
    red: tuple[str, ...]
    """Red checks on the final tree, in words."""
    broken: tuple[str, ...] = ()
    """Broken checks of completed tasks, in words."""
    unanswered: tuple[str, ...] = ()
    """Questions of completed tasks that expired without an answer, in words."""
    branch: str = ""
    """Branch of the final commit. Empty: none."""


@value_class
class _OutcomeInput:
    """One view of a run whose tasks have all ended."""

    run: RunRecord
    tasks: Sequence[EndedTaskRecord]
    """In the plan's order."""
    accepted: Sequence[AcceptedTask]
    chains: Sequence[tuple[str, int, str]]
    """(task, attempt, last hash) of every attempt with evidence."""
    sealed: Sequence[EvidenceRecord]
    """Records of a gate that passed before a crash."""
    order: Sequence[str]
    """Completed tasks in merge order. Empty: no task has a check."""
    unanswered: Sequence[str]
    """Questions of completed tasks that expired without an answer, in words."""
    facts: Facts | None
    """Facts that the gate seals. None: the run has an older form of seals."""


def gate_chain(run: str) -> str:
    """Return the name of the final gate's evidence chain."""
    return f"{run}/gate"


async def finish_run(services: RunServices, history: GitHistory, checks: CheckRunner) -> RunOutcome:
    """Run the final gate, seal the run and decide its outcome; the run does not end yet.

    Raises:
        Paused: A check could not be run.
    """
    run = services.facts.id
    CURRENT_ACTOR.set(Actor(run=run))
    found = await services.store.read(partial(_load_input, run=run, plan=services.facts.plan))
    gate = await _run_gate(checks, services.facts, found)
    await _publish_failed_deliverables(services, history, found.tasks)
    broken = tuple(_describe_broken(found.accepted))
    outcome = decide_outcome(found.tasks, red=bool(gate.red), gaps=bool(broken or found.unanswered))
    records = await _seal_gate(services, gate, found, outcome)
    last = records[-1].hash if records else seal.first_link(gate_chain(run))
    # The seal covers the last record of every chain, so no record can change unnoticed.
    run_seal = seal.run_seal(last, found.chains)
    red = tuple(_describe(check) for check in gate.red)
    commit, branch = await _final_commit(services, history, found.run, run_seal)
    change = RunSealChange(
        outcome=outcome.value,
        seal=run_seal,
        final_commit=commit or None,
        gate_red=PackedJson.pack(red),
        broken_checks=broken or None,
        result_branch=None if branch == ids.branch(run) else branch,
    )
    save = partial(_save_seal, run=run, owner=services.owner, change=change)
    await services.store.write(save, durable=found.run.has_merged)
    tree = found.run.head_tree
    return RunOutcome(
        outcome=outcome,
        seal=run_seal,
        commit=commit,
        tree=tree,
        red=red,
        broken=broken,
        unanswered=tuple(found.unanswered),
        branch=branch or "",
    )


def decide_outcome(tasks: Sequence[EndedTaskRecord], *, red: bool, gaps: bool = False) -> RunStatus:
    """Decide the outcome of a run whose tasks have all ended.

    Args:
        tasks: Tasks of the run.
        red: Whether the final gate is red.
        gaps: Whether a check of a completed task is broken, or its question had no answer.
    """
    statuses = {task.status for task in tasks}
    if TaskStatus.CANCELLED in statuses:
        return RunStatus.CANCELLED
    if red or statuses != {TaskStatus.COMPLETED}:
        return RunStatus.FAILED
    # A criterion without proof is no failure, but the run is not complete either.
    has_gaps = gaps or any(task.criteria_open for task in tasks)
    return RunStatus.COMPLETED_WITH_GAPS if has_gaps else RunStatus.COMPLETED


async def _run_gate(checks: CheckRunner, facts: PinnedRun, found: _OutcomeInput) -> GateResult:
    async def run_check(
        accepted: AcceptedTask, check: Check, tree: str, others: Sequence[AcceptedTask]
    ) -> Sequence[CheckRun]:
        act_for_task(accepted.task.id)
        done = [one.task.id for one in found.accepted]
        pending = find_pending_tests(facts.plan, accepted.task, done, facts.base_tree)
        return await checks.on_tree(
            accepted,
            check,
            tree,
            others,
            phase="gate",
            pending=pending,
            controlled=facts.controls != "never",
        )

    trees = {task.task_id: task.integrated_tree for task in found.tasks}
    merges = [MergeStep(task=task, tree=trees[task]) for task in found.order if trees.get(task)]
    return await pass_through(found.accepted, merges, found.run.head_tree, run_check)


async def _seal_gate(
    services: RunServices, gate: GateResult, found: _OutcomeInput, outcome: RunStatus
) -> tuple[EvidenceRecord, ...]:
    """Seal the gate's result; after a crash it follows the records that were sealed before."""
    run, chain = services.facts.id, gate_chain(services.facts.id)
    bodies: list[tuple[RecordKind, Body]] = [
        ("check", run_body(check_run, task=task)) for task, check_run in gate.runs
    ]
    red = [{"task": r.task, "check": r.check, "merge": r.merge} for r in gate.red]
    # The seal of the run covers the gate, and so the facts that a reader relies on.
    facts = {"facts": facts_hash({**found.facts, "outcome": outcome.value})} if found.facts else {}
    bodies.append(("gate", {"tree": found.run.head_tree, "red": red, **facts}))
    records = seal.extend(chain, found.sealed[-1] if found.sealed else None, bodies)
    kind = EventKind.GATE_FAILED if red else EventKind.GATE_PASSED

    def work(ops: WriteOps) -> None:
        lifecycle.must_lead(ops, run, services.owner)
        evidence.append(ops, run, "", 0, None, chain, records)
        runs.append_event(ops, run, kind, data={"checks": len(gate.runs), "red": red})

    # Only a merged run commits, and perhaps applies, a result that names the seal.
    await services.store.write(work, durable=found.run.has_merged)
    return records


def _load_input(reads: ReadOps, run: str, plan: Plan) -> _OutcomeInput:
    known = {task.id: task for task in plan.tasks}
    # Projections: whole tasks would be most of the memory of a large run.
    tasks = list(record_loading.iterate_tasks(reads, run, AcceptedTaskRecord))
    accepted = [
        load_accepted_task(reads, known[task.task_id], task)
        for task in tasks
        if task.status is TaskStatus.COMPLETED
    ]
    keys = ((task.task_id, task.attempt_number) for task in tasks)
    return _OutcomeInput(
        run=record_loading.load_run(reads, run),
        tasks=tasks,
        accepted=accepted,
        chains=[
            (attempt.task_id, attempt.number, attempt.evidence_hash)
            for attempt in record_loading.iterate_attempts(reads, run, keys, AttemptSummaryRecord)
            if attempt.evidence_hash
        ],
        sealed=evidence.records(reads, gate_chain(run)),
        order=_load_merge_order(reads, run) if any(one.task.checks for one in accepted) else (),
        unanswered=_list_unanswered(reads, run, {one.task.id for one in accepted}),
        facts=load_facts(reads, run) if has_record_form(reads, run) else None,
    )


def _list_unanswered(reads: ReadOps, run: str, completed: Collection[str]) -> list[str]:
    """Return the questions of completed tasks that expired without an answer, in words."""
    asked = [one for one in question_rows.load_of_run(reads, run) if one.task in completed]
    return [
        describe_unanswered(one.task, one.id, one.name)
        for one in asked
        if is_unanswered(one.state, one.values)
    ]


def _load_merge_order(reads: ReadOps, run: str) -> list[str]:
    return [event.task for event in runs.each_event(reads, run, (EventKind.TASK_COMPLETED,))]


async def _publish_failed_deliverables(
    services: RunServices, history: GitHistory, tasks: Sequence[EndedTaskRecord]
) -> None:
    """Publish the last deliverable of each failed task as a branch, for the user to inspect."""
    run = services.facts.id
    for task in tasks:
        if task.status is not TaskStatus.FAILED:
            continue
        name, number = task.task_id, task.attempt_number
        attempt = await services.store.read(
            partial(record_loading.find_attempt, run=run, task=name, number=number)
        )
        if attempt and attempt.deliverable:
            commit = attempt.deliverable.decode(Deliverable).commit
            # Without a branch, git would remove the commit some day.
            if commit:
                await history.branch(f"{run}-{name}-{number}", commit)


def _describe_broken(accepted: Sequence[AcceptedTask]) -> Iterator[str]:
    for one in accepted:
        for check, reason in one.broken.items():
            yield describe_broken_check(one.task.id, check, reason)


def _describe(red: FailedGateCheck) -> str:
    after = f" It first failed after the merge of {red.merge}." if red.merge else ""
    return (
        f"Check {red.check!r} of {red.task} passed before, and is red on the final tree"
        f"{describe_restored_files(red.run)}.{after}"
    )


async def _final_commit(
    services: RunServices, history: GitHistory, run: RunRecord, run_seal: str
) -> tuple[str, str | None]:
    """Return the final commit and its branch; neither if nothing was merged."""
    if not run.has_merged:
        return "", None
    title = services.facts.plan.title
    message = f"{title}\n\nMimir-Run: {run.id}\nMimir-Seal: {run_seal}\n"
    commit = await history.commit(run.head_tree, [run.head], message)
    return commit, await history.branch(run.id, commit)


def _save_seal(ops: WriteOps, run: str, owner: str, change: RunSealChange) -> None:
    lifecycle.must_lead(ops, run, owner)
    record_loading.save_change(ops, run, change)
