"""The end of a run: the final gate, the seals, and the outcome that follows from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from mimir.attempts.results import WORK
from mimir.domain.actor import CURRENT_ACTOR, Actor, act_for_task
from mimir.domain.event import EventKind
from mimir.domain.evidence import CheckRun, EvidenceRecord
from mimir.domain.ids import attempt_id
from mimir.domain.plan import Check, Plan
from mimir.domain.task_states import RunStatus, TaskStatus
from mimir.qc.checks.check_runner import CheckRunner
from mimir.qc.checks.regression import AcceptedTask
from mimir.qc.evidence import seal
from mimir.qc.evidence.payloads import Body, run_body
from mimir.scheduling import lifecycle
from mimir.scheduling.completion.final_gate import (
    FailedGateCheck,
    GateResult,
    MergeStep,
    pass_through,
    put_back,
)
from mimir.scheduling.run_services import RunServices
from mimir.scheduling.task_queries import load_accepted_task, of_accepted
from mimir.store import row_fields
from mimir.store.operations import evidence, runs
from mimir.store.operations import evidence as tally
from mimir.store.protocol import ReadOps, Row, WriteOps
from mimir.store.schema import NodeLabel, pack
from mimir.workspace.git.history import GitHistory

_ASKED = ("taskId", "status", tally.OPEN, "integratedTree", "attemptNumber")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run ended."""

    outcome: RunStatus
    seal: str
    commit: str
    """Final commit, with the seal in its message; empty if nothing was merged."""
    tree: str
    red: tuple[str, ...]
    """What is red on the final tree, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OutcomeInput:
    """A run whose tasks have all ended, in one view of the store."""

    run: Row
    tasks: Sequence[Row]
    """In the plan's order; of each only what is asked for here."""
    accepted: Sequence[AcceptedTask]
    chains: Sequence[tuple[str, int, str]]
    """(task, attempt, last hash) of every attempt that sealed something."""
    sealed: Sequence[EvidenceRecord]
    """Of the gate, if it was passed before a crash."""
    order: Sequence[str]
    """Completed tasks in the order in which they came onto the line; empty where no check could ask for it."""


def gate_chain(run: str) -> str:
    """Name the chain of a run's final gate."""
    return f"{run}/gate"


async def finish_run(crew: RunServices, history: GitHistory, checks: CheckRunner) -> RunOutcome:
    """Pass the final gate, seal the run and name its outcome. Nothing is ended yet: that is the last write of a run.

    Raises:
        Paused: A check could not be run.
    """
    run = crew.facts.id
    CURRENT_ACTOR.set(Actor(run=run))
    found = await crew.store.read(partial(_standing, run=run, plan=crew.facts.plan))
    tree = row_fields.text_field(found.run, "headTree")
    passage = await _gate(checks, found, tree)
    await _keep_failed(crew, history, found.tasks)
    records = await _seal_gate(crew, passage, found)
    last = records[-1].hash if records else seal.start(gate_chain(run))
    whole = seal.run_seal(last, found.chains)
    red = tuple(_words(r) for r in passage.red)
    outcome = decide_outcome(found.tasks, red=bool(red))
    commit = await _final_commit(crew, history, found.run, whole)
    note = partial(_note, run=run, owner=crew.owner, end=(outcome, whole, commit), red=red)
    await crew.store.write(note, durable=_is_merged(found.run))
    return RunOutcome(outcome=outcome, seal=whole, commit=commit, tree=tree, red=red)


def decide_outcome(tasks: Sequence[Row], *, red: bool) -> RunStatus:
    """Name the outcome of a run whose tasks have all ended."""
    statuses = {row_fields.text_field(row, "status") for row in tasks}
    if TaskStatus.CANCELLED.value in statuses:
        return RunStatus.CANCELLED
    if red or statuses != {TaskStatus.COMPLETED.value}:
        return RunStatus.FAILED
    gaps = any(row_fields.int_field(row, tally.OPEN) for row in tasks)
    return RunStatus.COMPLETED_WITH_GAPS if gaps else RunStatus.COMPLETED


async def _gate(checks: CheckRunner, found: _OutcomeInput, tree: str) -> GateResult:
    async def run_check(
        one: AcceptedTask, check: Check, tree: str, others: Sequence[AcceptedTask]
    ) -> Sequence[CheckRun]:
        act_for_task(one.task.id)
        return await checks.on_tree(one, check, tree, others, phase="gate")

    trees = {
        row_fields.text_field(row, "taskId"): row_fields.text_field(row, "integratedTree")
        for row in found.tasks
    }
    merges = [MergeStep(task=task, tree=trees[task]) for task in found.order if trees.get(task)]
    return await pass_through(found.accepted, merges, tree, run_check)


async def _seal_gate(
    crew: RunServices, passage: GateResult, found: _OutcomeInput
) -> tuple[EvidenceRecord, ...]:
    """Seal what the gate saw; a gate that was passed before a crash is sealed again behind it."""
    run, chain, before = crew.facts.id, gate_chain(crew.facts.id), found.sealed
    bodies: list[tuple[seal.RecordKind, Body]] = [
        ("check", run_body(one, task=task)) for task, one in passage.runs
    ]
    red = [{"task": r.task, "check": r.check, "merge": r.merge} for r in passage.red]
    bodies.append(("gate", {"tree": row_fields.text_field(found.run, "headTree"), "red": red}))
    records = seal.extend(chain, before[-1] if before else None, bodies)
    kind = EventKind.GATE_FAILED if red else EventKind.GATE_PASSED

    def work(ops: WriteOps) -> None:
        lifecycle.must_lead(ops, run, crew.owner)
        evidence.append(ops, run, "", 0, None, chain, records)
        runs.append_event(ops, run, kind, data={"checks": len(passage.runs), "red": red})

    await crew.store.write(work, durable=_is_merged(found.run))
    return records


def _is_merged(run: Row) -> bool:
    """Tell whether something is committed, and perhaps applied, on the strength of the seal."""
    return row_fields.text_field(run, "head") != row_fields.text_field(run, "baseCommit")


def _standing(reads: ReadOps, run: str, plan: Plan) -> _OutcomeInput:
    known = {task.id: task for task in plan.tasks}
    tasks: list[Row] = []
    done: list[AcceptedTask] = []
    for row in runs.each_task(reads, run, only=(*_ASKED, *of_accepted(plan))):
        # Whole rows of thousands would be most of the memory of a run.
        tasks.append({name: row[name] for name in _ASKED if name in row})
        if row.get("status") == TaskStatus.COMPLETED.value:
            done.append(load_accepted_task(reads, known[row_fields.text_field(row, "taskId")], row))
    return _OutcomeInput(
        run=runs.node(reads, run),
        tasks=tasks,
        accepted=done,
        chains=_chains(reads, run, tasks),
        sealed=evidence.records(reads, gate_chain(run)),
        order=_merge_order(reads, run) if any(one.task.checks for one in done) else (),
    )


def _chains(reads: ReadOps, run: str, tasks: Sequence[Row]) -> list[tuple[str, int, str]]:
    made = (
        (row_fields.text_field(row, "taskId"), row_fields.int_field(row, "attemptNumber"))
        for row in tasks
    )
    return [
        (
            row_fields.text_field(row, "taskId"),
            row_fields.int_field(row, "seq"),
            row_fields.text_field(row, "chainHash"),
        )
        for row in runs.attempts_of(reads, run, made, only=("taskId", "seq", "chainHash"))
        if row.get("chainHash")
    ]


def _merge_order(reads: ReadOps, run: str) -> list[str]:
    return [event.task for event in runs.each_event(reads, run, (EventKind.TASK_COMPLETED,))]


async def _keep_failed(crew: RunServices, history: GitHistory, tasks: Sequence[Row]) -> None:
    """Keep the last deliverable of each failed task on a branch, where a person can look at it."""
    run = crew.facts.id
    for row in tasks:
        if row_fields.text_field(row, "status") != TaskStatus.FAILED.value:
            continue
        task, number = (
            row_fields.text_field(row, "taskId"),
            row_fields.int_field(row, "attemptNumber"),
        )
        name = attempt_id(run, task, number)
        attempt = await crew.store.read(partial(_attempt, name=name))
        text = row_fields.text_field(attempt, "workJson")
        commit = WORK.decode(text).commit if text else ""
        if commit:
            await history.keep(f"{run}-{task}-{number}", commit)


def _attempt(reads: ReadOps, name: str) -> Row:
    return reads.get(NodeLabel.ATTEMPT, name) or {}


def _words(one: FailedGateCheck) -> str:
    after = f" It first failed after the merge of {one.merge}." if one.merge else ""
    return (
        f"Check {one.check!r} of {one.task} was passed, and is red on the final tree"
        f"{put_back(one.run)}.{after}"
    )


async def _final_commit(crew: RunServices, history: GitHistory, row: Row, whole: str) -> str:
    if not _is_merged(row):
        return ""
    head = row_fields.text_field(row, "head")
    message = f"{crew.facts.plan.title}\n\nMimir-Run: {crew.facts.id}\nMimir-Seal: {whole}\n"
    commit = await history.commit(row_fields.text_field(row, "headTree"), [head], message)
    await history.branch(crew.facts.id, commit)
    return commit


def _note(
    ops: WriteOps, run: str, owner: str, end: tuple[RunStatus, str, str], red: tuple[str, ...]
) -> None:
    lifecycle.must_lead(ops, run, owner)
    outcome, whole, commit = end
    ops.patch(
        "Run",
        run,
        {
            "outcome": outcome.value,
            "seal": whole,
            "finalCommit": commit or None,
            "gateRedJson": pack(list(red)),
        },
    )
