"""Creation of a run: its base and plan are pinned; later edits do not count."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mimir.agents.context.receipt import ContextReceipt, GivenPiece, fingerprint
from mimir.agents.context.task_context import PlannerKnowledge
from mimir.attempts.deliverable import HIDDEN
from mimir.attempts.services import PinnedRun
from mimir.domain.event import EventKind
from mimir.domain.graph import TaskGraph
from mimir.domain.ids import PLAN_TASK, lane_id
from mimir.domain.invocation import (
    AGENT_TEXT,
    InvocationRequest,
    LedgerExcerpt,
    PinnedDefinition,
)
from mimir.domain.json_value import as_object, as_objects
from mimir.domain.plan import Plan
from mimir.domain.requirement import REQUIREMENTS_TEXT
from mimir.domain.run import RunBudget
from mimir.domain.task_states import RunStatus
from mimir.domain.usage import estimate
from mimir.errors import BusyError, LimitError, PlanError, UnavailableError, UsageError
from mimir.orchestrator.delegation.material import pin_material
from mimir.orchestrator.patterns.ledger_state import read_excerpt
from mimir.orchestrator.result_application import require_applicable
from mimir.orchestrator.services import ProjectServices
from mimir.orchestrator.sessions.children import place_child
from mimir.orchestrator.sessions.limits import admit_run, count_refusal
from mimir.scheduling.execution.pinned_preambles import Preambles, load_preambles
from mimir.scheduling.execution.preparation import named_model
from mimir.scheduling.lifecycle import COORDINATOR
from mimir.store.operations import budget, estimates, runs
from mimir.store.operations.record_loading import (
    decode_plan,
    find_json,
    find_latest_run,
    lease_holder,
    load_calls,
    load_run_with_plan,
    save_change,
    save_run_text,
)
from mimir.store.operations.runs import NewRun, RunKind
from mimir.store.protocol import ReadOps, WriteOps
from mimir.store.records.artifact_records import JsonArtifactRecord
from mimir.store.records.record_codec import PackedJson
from mimir.store.records.run_changes import (
    RunEnvironmentChange,
    RunPinnedChange,
)
from mimir.store.records.run_records import RunRecord
from mimir.store.schema import EdgeType, pack
from mimir.store.transcripts import shared_texts
from mimir.workspace.aio import gather_both
from mimir.workspace.git.base_capture import BaseCommit

_PIECES = {"system": "instructions", "user": "brief", "tool": "research"}
"""Role of a message to the PM → piece of its context; its own messages are the plan."""
_Artifact = JsonArtifactRecord | None


async def create_run(
    services: ProjectServices,
    plan: Plan,
    plan_path: str,
    *,
    only: Sequence[str],
    limits: RunBudget,
    from_run: str,
    kind: RunKind = "execute",
    definitions: Sequence[PinnedDefinition] = (),
    request: InvocationRequest | None = None,
) -> str:
    """Create a run of a checked plan, or of an invocation, with the definitions of its agents.

    Raises:
        BusyError: Another process runs the plan.
        ConfigurationError: The cost is limited, and a model has no price.
        UnavailableError: The sandbox is missing.
        LimitError: The invocation exceeds a limit of its session; nothing is created.
        UsageError: `only` names an unknown task, or the result could not be committed.
    """
    _require_pinned(plan, definitions)
    services.check_models()
    require_applicable(services, as_object(services.pinned["run"])["apply"])
    plan = _select_tasks(plan, only)
    # Refused now: a cost that cannot be computed would be noticed only after the first call.
    if limits.max_cost is not None:
        budget.must_have_prices(services.prices, models_of_plan(services, plan))
    await _require_not_running(services, plan_path)
    run = services.ids.new("agent" if kind == "agent" else "run")
    plan_text, (base, rules) = await _prepare(services, run, plan)
    # Agents of a plan have no material: their task names the work that it belongs to.
    ledger = await _read_ledger(services) if request else None
    definitions = [
        await pin_material(services, one, base.tree, plan.request, ledger) for one in definitions
    ]
    new = services.new_run(
        run,
        base,
        limits,
        kind=kind,
        name=plan.title or run,
        request=plan.request,
        plan=plan,
        plan_path=plan_path,
        only=tuple(only),
    )
    if request:
        new = await _as_invocation(services, new, definitions[0].address, request)
    environment = RunEnvironmentChange(
        user_head=base.head,
        user_branch=base.branch,
        is_exchanged=services.history.is_exchanged,
        ignore_rules=rules,
        sandbox=services.sandbox_name,
        from_run=from_run or None,
    )
    view = await services.sandbox.shared_view(services.project)
    warnings = (*services.warnings, *base.warnings, *view.describe_generated())

    dead = services.owners.find_dead()

    def work(ops: WriteOps) -> None:
        runs.create(ops, new, plan_text)
        if new.session_id and request:
            admit_run(ops, run, dead, services.limits, is_forced=request.is_forced)
        save_change(ops, run, environment)
        if definitions:
            save_run_text(ops, run, AGENT_TEXT, PackedJson.pack(tuple(definitions)).text)
        _save_provenance(ops, run, services.project_id, plan_path)
        roles = [task.worker_role for task in plan.tasks]
        known = estimates.load_estimates(ops, services.project_id, roles)
        if known:
            minutes = {role: one.minutes for role, one in known.items()}
            save_change(ops, run, RunPinnedChange(learned=PackedJson.pack(minutes)))
        if from_run:
            ops.link(EdgeType.FOLLOWS, [(run, from_run)])
        for warning in warnings:
            runs.append_event(ops, run, EventKind.WARNING, data={"message": warning})

    # Nothing exists outside the store yet, so after a power cut the run may be absent: no durable write is needed.
    try:
        await services.store.write(work, durable=False)
    except LimitError as error:
        # The refused transaction has no effect, so it is counted in one of its own.
        await services.store.write(partial(count_refusal, error=error), durable=False)
        raise
    return run


async def _read_ledger(services: ProjectServices) -> LedgerExcerpt | None:
    caller = services.spawned_by.run if services.spawned_by else ""
    read = partial(
        read_excerpt, project=services.project_id, caller=caller, now=services.clock.now()
    )
    return await services.store.read(read)


async def _as_invocation(
    services: ProjectServices, new: NewRun, agent: str, request: InvocationRequest
) -> NewRun:
    """Return a run of an invocation, in its session and below the agent that spawns it."""
    new = replace(new, agent=agent, session_id=services.session, refines=request.refines)
    if services.spawned_by is None:
        return new
    place = partial(place_child, new=new, caller=services.spawned_by, limits=services.limits)
    try:
        return await services.store.read(place)
    except LimitError as error:
        await services.store.write(partial(count_refusal, error=error), durable=False)
        raise


def _require_pinned(plan: Plan, definitions: Sequence[PinnedDefinition]) -> None:
    roles = {one.role for one in definitions}
    for task in plan.tasks:
        if task.agent and task.worker_role not in roles:
            raise PlanError(
                f"Task {task.id} names the agent {task.agent!r}, which is not looked up for a new plan.",
                next_step="Execute the file of the plan: mimir execute PLAN",
            )


async def _prepare(
    services: ProjectServices, run: str, plan: Plan
) -> tuple[str, tuple[BaseCommit, str]]:
    """Encode the plan and probe the sandbox, while git records base and ignore rules."""

    async def encode() -> str:
        await require_sandbox(services)
        return runs.encode_plan(plan)

    async def record() -> tuple[BaseCommit, str]:
        base = await services.history.base(run, hidden=HIDDEN)
        return base, await services.history.rules()

    return await gather_both(encode(), record())


def models_of_plan(services: ProjectServices, plan: Plan) -> frozenset[str]:
    """Return the names of all models that a run of a plan may call."""
    roles = {
        choice.model for role, choice in services.choices.items() if role not in ("ecko", "pm")
    }
    return frozenset(roles | {name for task in plan.tasks if (name := named_model(task))})


async def require_sandbox(services: ProjectServices) -> None:
    """Refuse to start without a sandbox, or if settings share a path that does not exist.

    Raises:
        ConfigurationError: An entry of `sandbox.share` matches nothing.
        UnavailableError: The sandbox is missing or broken; the error names the remedy.
    """
    report = await services.sandbox.probe()
    if not report.ok:
        raise UnavailableError(f"The sandbox does not work: {report.problem}", next_step=report.fix)
    await services.sandbox.shared_view(services.project)


async def load_pinned_run(services: ProjectServices, run: str) -> PinnedRun:
    """Return the pinned values of a run, with the preambles that are pinned so far."""

    def look(reads: ReadOps) -> tuple[RunRecord, Preambles, _Artifact, _Artifact]:
        background, named = (find_json(reads, run, name) for name in ("background", AGENT_TEXT))
        return load_run_with_plan(reads, run), load_preambles(reads, run), background, named

    record, preambles, background, named = await services.store.read(look, brief=True)
    plan = decode_plan(record)
    agents = named.value.decode(tuple[PinnedDefinition, ...]) if named else ()
    definitions = {one.role: one for one in agents}
    # No background: the user wrote the plan.
    given = ContextReceipt.from_json(background.value.mapping()) if background else None
    return PinnedRun(
        id=run,
        project=record.project_id,
        plan=plan,
        base_commit=record.base_commit,
        base_tree=record.base_tree,
        preambles=preambles,
        background=PlannerKnowledge.from_plan(plan, given),
        tasks={task.id: task for task in plan.tasks},
        graph=TaskGraph.from_plan(plan),
        learned=record.learned.decode(dict[str, float]) if record.learned else {},
        attempt_tokens=services.attempt_tokens,
        deliverable_limits=services.deliverable_limits,
        controls=record.controls or "never",
        green_runs=record.green_runs,
        depth=record.depth + 1,
        max_depth=services.limits.depth,
        agents=definitions,
    )


def _select_tasks(plan: Plan, only: Sequence[str]) -> Plan:
    """Keep the named tasks with all their dependencies."""
    if not only:
        return plan
    graph = TaskGraph.from_plan(plan)
    known = {task.id for task in plan.tasks}
    for task in only:
        if task not in known:
            raise UsageError(
                f"--only names {task!r}, which is not in the plan.",
                next_step=f"Its tasks: {', '.join(t.id for t in plan.tasks[:20])}",
            )
    wanted = set(only).union(*(graph.upstream(task) for task in only))
    return replace(plan, tasks=tuple(task for task in plan.tasks if task.id in wanted))


async def _require_not_running(services: ProjectServices, plan_path: str) -> None:
    if not plan_path:
        return
    find = partial(
        find_latest_run, project_id=services.project_id, kinds=["execute"], plan_path=plan_path
    )
    # The lease of a dead process does not block a new run of its plan.
    dead = services.owners.find_dead()

    def look(reads: ReadOps) -> tuple[str, str]:
        record = find(reads)
        if record is None or record.status is not RunStatus.RUNNING:
            return "", ""
        return record.id, lease_holder(record, COORDINATOR, reads.now(), dead)

    run, owner = await services.store.read(look, brief=True)
    if owner:
        raise BusyError(
            f"This plan is running as {run} in another process ({owner}).",
            next_step=f"Follow it: mimir status {run}  Help it: mimir worker --run {run}",
        )


def _save_provenance(ops: WriteOps, run: str, project: str, plan_path: str) -> None:
    """Record the planning run of a plan and its PM's context; a user's plan has none."""
    planning = find_latest_run(ops, project_id=project, kinds=["plan"], plan_path=plan_path)
    # Only a completed planning run is the source: a failed one left a file that the user edited.
    if planning is None or not plan_path or planning.status is not RunStatus.COMPLETED:
        return
    receipt = _receipt_of_pm(ops, lane_id(planning.id, PLAN_TASK, 1, "pm"))
    save_change(ops, run, RunPinnedChange(plan_run=planning.id))
    ops.link(EdgeType.FOLLOWS, [(run, planning.id)])
    save_run_text(ops, run, "background", pack(receipt.as_json()))
    approved = find_json(ops, planning.id, REQUIREMENTS_TEXT)
    if approved is not None:
        save_run_text(ops, run, REQUIREMENTS_TEXT, approved.value.text)


def _receipt_of_pm(reads: ReadOps, lane: str) -> ContextReceipt:
    """Add up the messages to the PM: each call stores only the new part of its request."""
    texts: dict[str, list[str]] = {}
    for call in load_calls(reads, lane, kind="model"):
        for message in as_objects(shared_texts.delta_of(reads, call).get("messages")):
            piece = _PIECES.get(str(message.get("role")))
            if piece:
                texts.setdefault(piece, []).append(str(message.get("text")))
    given = tuple(
        GivenPiece(
            name=piece,
            importance="important",
            tokens=sum(map(estimate, parts)),
            hash=fingerprint("\n".join(parts)),
        )
        for piece, parts in sorted(texts.items())
    )
    return ContextReceipt(role="pm", lane=lane, given=given)
