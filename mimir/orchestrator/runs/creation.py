"""How a run begins: its base, its plan, its preambles; pinned, so that edits count from the next run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from mimir.agents.context.receipt import ContextReceipt
from mimir.agents.context.task_context import PlannerKnowledge
from mimir.agents.preambles.preamble_cache import Kind
from mimir.attempts.deliverable import HIDDEN
from mimir.attempts.services import PinnedPreamble, PinnedRun
from mimir.domain.event import EventKind
from mimir.domain.graph import TaskGraph
from mimir.domain.ids import PLAN_TASK
from mimir.domain.plan import Plan
from mimir.domain.run import RunBudget
from mimir.domain.task_states import RunStatus
from mimir.errors import BusyError, UnavailableError, UsageError
from mimir.orchestrator import plan_provenance
from mimir.orchestrator.result_application import must_be_possible
from mimir.orchestrator.services import ProjectServices
from mimir.scheduling.completion.final_gate import await_all
from mimir.scheduling.execution.preparation import named_model
from mimir.scheduling.lifecycle import COORDINATOR
from mimir.store import row_fields
from mimir.store.operations import budget, estimates, leases, runs
from mimir.store.operations.runs import NewRun
from mimir.store.protocol import ReadOps, Row, WriteOps
from mimir.store.schema import EdgeType, NodeLabel, pack, unpack
from mimir.store.transcripts.stored_transcript import StoredTranscript
from mimir.workspace.aio import gather_both
from mimir.workspace.git.base_capture import BaseCommit


async def create(
    parts: ProjectServices,
    plan: Plan,
    plan_path: str,
    *,
    only: Sequence[str],
    limits: RunBudget,
    from_run: str,
) -> str:
    """Make a run of a checked plan; its id.

    Raises:
        BusyError: The plan is running in another process.
        ConfigurationError: Money is bounded, and a model has no price.
        UnavailableError: The sandbox is missing.
        UsageError: `only` names a task that is not in the plan, or the result could not be committed.
    """
    parts.check_models()
    must_be_possible(parts, cast("Mapping[str, object]", parts.pinned["run"])["apply"])
    plan = _only(plan, only)
    if limits.max_cost is not None:
        budget.must_have_prices(parts.prices, models_of_plan(parts, plan))
    await _not_running(parts, plan_path)
    run = parts.ids.new("run")
    written, (base, rules) = await _prepared(parts, run, plan)
    new = NewRun(
        id=run,
        kind="execute",
        project_id=parts.project_id,
        project_name=parts.project.name,
        name=plan.title or run,
        request=plan.request,
        plan=plan,
        plan_path=plan_path,
        settings=parts.pinned,
        engine_version=parts.engine_version,
        base_commit=base.commit,
        base_tree=base.tree,
        max_calls=limits.max_calls,
        max_tokens=limits.max_tokens,
        time_limit_seconds=limits.seconds,
        max_cost=limits.max_cost,
        prices=parts.prices,
        only=tuple(only),
    )

    def work(ops: WriteOps) -> None:
        runs.create(ops, new, written)
        ops.patch(
            NodeLabel.RUN,
            run,
            {
                "userHead": base.head,
                "userBranch": base.branch,
                "isExchanged": parts.history.is_exchanged,
                "ignoreRules": rules,
                "sandbox": parts.sandbox_name,
                "fromRun": from_run or None,
            },
        )
        plan_provenance.pin(ops, run, parts.project_id, plan_path)
        known = estimates.load_estimates(
            ops, parts.project_id, [task.worker_role for task in plan.tasks]
        )
        if known:
            minutes = {role: one.minutes for role, one in known.items()}
            ops.patch(NodeLabel.RUN, run, {"learnedJson": pack(minutes)})
        if from_run:
            ops.link(EdgeType.FOLLOWS, [(run, from_run)])
        for warning in (*parts.warnings, *base.warnings):
            runs.append_event(ops, run, EventKind.WARNING, data={"message": warning})

    # Nothing was done outside of the store yet: a power cut takes the run as if it had not begun.
    await parts.store.write(work, durable=False)
    return run


async def _prepared(
    parts: ProjectServices, run: str, plan: Plan
) -> tuple[str, tuple[BaseCommit, str]]:
    """Record the project and what is passed over in it while the sandbox is tried; and write the plan, while git is still at work."""

    async def write() -> str:
        await require_sandbox(parts)
        return runs.encode_plan(plan)

    async def record() -> tuple[BaseCommit, str]:
        return await parts.history.base(run, hidden=HIDDEN), await parts.history.rules()

    return await gather_both(write(), record())


def models_of_plan(parts: ProjectServices, plan: Plan) -> frozenset[str]:
    """Return the names of all models that the run of a plan may ask."""
    roles = {one.model for role, one in parts.choices.items() if role not in ("ecko", "pm")}
    return frozenset(roles | {name for task in plan.tasks if (name := named_model(task))})


async def require_sandbox(parts: ProjectServices) -> None:
    """Refuse to begin where commands cannot be confined.

    Raises:
        UnavailableError: The sandbox is missing or broken; it says how to mend it.
    """
    report = await parts.sandbox.probe()
    if not report.ok:
        raise UnavailableError(f"The sandbox does not work: {report.problem}", next_step=report.fix)


async def load_pinned_run(parts: ProjectServices, run: str) -> PinnedRun:
    """Return what is fixed for a run; its preambles are made, and pinned, the first time."""

    def look(reads: ReadOps) -> tuple[Row, Row | None, ContextReceipt | None]:
        made = reads.get(NodeLabel.ARTIFACT, f"{run}#preambles")
        return runs.get(reads, run), made, plan_provenance.load_provenance(reads, run)

    row, pinned, given = await parts.store.read(look, brief=True)
    plan = runs.plan_of(row)
    if pinned is None:
        preambles = await _make_preambles(parts, run, plan)
    else:
        preambles = _read_preambles(row_fields.text_field(pinned, "text"))
    return PinnedRun(
        id=run,
        project=row_fields.text_field(row, "projectId"),
        plan=plan,
        base_commit=row_fields.text_field(row, "baseCommit"),
        base_tree=row_fields.text_field(row, "baseTree"),
        preambles=preambles,
        background=PlannerKnowledge.of(plan, given),
        tasks={task.id: task for task in plan.tasks},
        graph=TaskGraph.from_plan(plan),
        learned=cast("Mapping[str, float]", row_fields.json_field(row, "learnedJson")),
        attempt_tokens=parts.attempt_tokens,
    )


def _only(plan: Plan, only: Sequence[str]) -> Plan:
    """Keep the named tasks with all their dependencies."""
    if not only:
        return plan
    graph = TaskGraph.from_plan(plan)
    known = {t.id for t in plan.tasks}
    for task in only:
        if task not in known:
            raise UsageError(
                f"--only names {task!r}, which is not in the plan.",
                next_step=f"Its tasks: {', '.join(t.id for t in plan.tasks[:20])}",
            )
    wanted = set(only).union(*(graph.upstream(t) for t in only))
    return replace(plan, tasks=tuple(t for t in plan.tasks if t.id in wanted))


async def _not_running(parts: ProjectServices, plan_path: str) -> None:
    dead = parts.owners.find_dead()

    def look(reads: ReadOps) -> tuple[Row, str] | None:
        row = runs.latest(
            reads, project_id=parts.project_id, kinds=["execute"], plan_path=plan_path
        )
        if row is None or row_fields.text_field(row, "status") != RunStatus.RUNNING.value:
            return None
        owner = leases.holder(reads, row, COORDINATOR, dead)
        return (row, owner) if owner else None

    found = await parts.store.read(look, brief=True)
    if found and plan_path:
        run = str(found[0]["id"])
        raise BusyError(
            f"This plan is running as {run} in another process ({found[1]}).",
            next_step=f"Follow it: mimir status {run}  Help it: mimir worker --run {run}",
        )


async def _make_preambles(
    parts: ProjectServices, run: str, plan: Plan
) -> dict[tuple[str, str], PinnedPreamble]:
    wanted: list[tuple[Kind, str]] = []
    for task in plan.tasks:
        wanted.append(("worker", task.worker_role))
        wanted.append(("qc", task.reviewer))
    roles = list(dict.fromkeys(wanted))

    async def lane(role: str, number: int) -> StoredTranscript:
        return await StoredTranscript.open(
            parts.store, run=run, task=PLAN_TASK, attempt=number, role=role, fence=None
        )

    maker = parts.agentinator(lane, run)
    made = await await_all([maker.preamble(kind, role) for kind, role in roles])
    preambles: dict[tuple[str, str], PinnedPreamble] = {
        key: PinnedPreamble(text=one.text, hash=one.hash)
        for key, one in zip(roles, made, strict=True)
    }
    text = pack([[k, r, p.text, p.hash] for (k, r), p in preambles.items()])

    def work(ops: WriteOps) -> None:
        ops.upsert(
            NodeLabel.ARTIFACT,
            [
                {
                    "id": f"{run}#preambles",
                    "name": "preambles",
                    "runId": run,
                    "kind": "preambles",
                    "text": text,
                }
            ],
        )
        for one in made:
            if one.origin != "found":
                runs.append_event(
                    ops,
                    run,
                    EventKind.PREAMBLE_MADE,
                    data={
                        "kind": one.kind,
                        "role": one.role[:200],
                        "path": one.path,
                        "origin": one.origin,
                        "why": one.why,
                    },
                )

    await parts.store.write(work, durable=any(one.origin != "found" for one in made))
    return preambles


def _read_preambles(text: str) -> dict[tuple[str, str], PinnedPreamble]:
    rows = cast("list[list[str]]", unpack(text))
    return {(kind, role): PinnedPreamble(text=said, hash=hash) for kind, role, said, hash in rows}
