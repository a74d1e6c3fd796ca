"""The three nodes of the attempt machine: work, check, judge. Each ends in one fenced transaction that moves the status."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from mimir.agents.agent_loop import Conversation, LoopServices, ModelSettings, converse
from mimir.agents.circuit_breaker import CircuitBreaker, Trip
from mimir.agents.citations import find_unsupported
from mimir.agents.stopwatch import WorkTimer
from mimir.attempts import deliverable
from mimir.attempts.attempt_workspace import AttemptWorkspace, WorkspaceDiff
from mimir.attempts.machine import PhaseNode
from mimir.attempts.nodes.judge import judge_attempt
from mimir.attempts.results import (
    OUTCOMES,
    WORK,
    AttemptRejection,
    AttemptState,
    Deliverable,
    WorkerUsage,
    phase_values,
)
from mimir.attempts.services import AttemptServices, Bodies, OpenLane, WorkerWorkspace, seal_records
from mimir.domain.agent import ROLES
from mimir.domain.clock import stamp
from mimir.domain.event import EventKind
from mimir.domain.ids import lane_id
from mimir.domain.task_states import Cause, TaskStatus
from mimir.errors import AnswerError, ModelError
from mimir.llm.wrappers.journaled_model import JournaledModel
from mimir.qc.evidence.payloads import check_bodies, deliverable_body

LEDGER_TEXT = 20_000
"""Characters kept of one tool result as a source of quotes."""


def nodes(desk: AttemptServices) -> Mapping[TaskStatus, PhaseNode]:
    """Return the machine's nodes for one attempt."""

    async def work(course: AttemptState) -> tuple[TaskStatus, AttemptState]:
        return await _work(desk, course)

    async def check(course: AttemptState) -> tuple[TaskStatus, AttemptState]:
        return await _check(desk, course)

    async def rule(course: AttemptState) -> tuple[TaskStatus, AttemptState]:
        return await judge_attempt(desk, course)

    return {
        TaskStatus.WORKER_EXECUTING: work,
        TaskStatus.WORKER_COMPLETED: check,
        TaskStatus.QC_EXECUTING: rule,
    }


async def _work(desk: AttemptServices, course: AttemptState) -> tuple[TaskStatus, AttemptState]:
    """Let the worker work; its answer and tree become a deliverable, or are rejected without QC."""
    started = desk.clock.monotonic()
    place = AttemptWorkspace(desk)
    if desk.is_new:
        await _prepare(desk)
    try:
        talk = await _converse(desk, place)
    except AnswerError as error:
        rejection = AttemptRejection(cause=Cause.INVALID_ANSWER, issues=(str(error),))
    except ModelError as error:
        if error.scope != "attempt":
            raise
        issue = f"The model could not answer: {error}"
        rejection = AttemptRejection(cause=Cause.MODEL_ERROR, issues=(issue,), smaller_context=True)
    else:
        return await _answered(desk, course, place, talk, started)
    finally:
        await place.leave()
    kept = await _kept(desk, place)
    return _rejected(course, replace(rejection, tree=kept.tree), _spent(desk, place, started))


async def _prepare(desk: AttemptServices) -> None:
    """Make the runs before the work that can be made, and say at once which program is not there."""
    runs = await desk.checks.prepare(desk.task, desk.start.first_base_tree)
    for run in runs if desk.number == 1 else ():
        if run.missing:
            message = (
                f"Check {run.check!r} of {desk.task.id} cannot prove anything: "
                f"its program is not on this machine, or not where commands see it ({' '.join(run.argv)[:200]})."
            )
            await desk.note(EventKind.WARNING, attempt={}, data={"message": message})


async def _answered(
    desk: AttemptServices,
    course: AttemptState,
    place: AttemptWorkspace,
    talk: Conversation,
    started: float,
) -> tuple[TaskStatus, AttemptState]:
    """Make a deliverable of the answer and the workspace's last tree, or reject it."""
    effort = WorkerUsage(
        tool_calls=talk.tool_calls,
        messages=talk.message_count,
        usage=talk.usage,
        seconds=desk.clock.monotonic() - started,
    )
    made = await _deliver(desk, place, talk)
    if isinstance(made, AttemptRejection):
        return _rejected(course, made, effort)
    now = stamp(desk.clock.now())
    values = phase_values(made.answer, effort) | {"workerCompletedAt": now}
    await desk.move(
        TaskStatus.WORKER_COMPLETED,
        EventKind.WORK_ANSWERED,
        task=values,
        attempt={"workJson": WORK.encode(made)},
        data={
            "tool_calls": made.tool_calls,
            "limit": _breaker(desk).limit,
            "changed": list(made.changed),
            "tripped": made.tripped,
        },
        artifacts={"answer": made.answer},
        waits=not desk.task.checks,  # what checks cost is not spent before it is known on what
    )
    return TaskStatus.WORKER_COMPLETED, replace(course, work=made)


def _spent(desk: AttemptServices, place: AttemptWorkspace, started: float) -> WorkerUsage:
    """Return what a conversation used that came to no answer; its messages are not known."""
    seconds = desk.clock.monotonic() - started
    if place.lane is None:
        return WorkerUsage(seconds=seconds)
    return WorkerUsage(tool_calls=place.lane.tool_calls, usage=place.lane.usage, seconds=seconds)


def _rejected(
    course: AttemptState, rejection: AttemptRejection, effort: WorkerUsage
) -> tuple[TaskStatus, AttemptState]:
    return TaskStatus.WORKER_EXECUTING, replace(course, rejection=replace(rejection, effort=effort))


async def _converse(desk: AttemptServices, place: AttemptWorkspace) -> Conversation:
    lane = await desk.open_lane("worker")
    watch = WorkTimer(desk.clock)

    async def on_live(tree: str) -> None:
        place.restore(tree)
        watch.start()

    lane.on_live = on_live
    place.lane = lane
    tools = desk.tools.worker(await _bench(desk, place, lane))
    name = lane_id(desk.facts.id, desk.task.id, desk.number, "worker")
    model = JournaledModel(desk.models.for_lane("worker", name, desk.start.model), lane)
    talk = await converse(
        desk.start.brief,
        LoopServices(
            model=model,
            tools=tools,
            context=desk.context,
            breaker=_breaker(desk),
            settings=_turn(desk),
            elapsed=watch,
            recorded=desk.recorded_trip,
            on_trip=lambda trip: _tripped(desk, trip),
        ),
    )
    await lane.flush()
    return talk


async def _bench(desk: AttemptServices, place: AttemptWorkspace, lane: OpenLane) -> WorkerWorkspace:
    globs = [glob for check in desk.task.checks for glob in check.protect]
    base = desk.start.base_tree
    return WorkerWorkspace(
        run=desk.facts.id,
        task=desk.task,
        where=desk.where,
        stand=place.stand,
        base_commit=desk.start.base_commit,
        tree=desk.start.tree,
        lane=lane,
        snapshot=place.snapshot,
        artifacts=desk.artifacts,
        protected=await desk.history.paths(base, globs) if globs else (),
    )


def _breaker(desk: AttemptServices) -> CircuitBreaker:
    return CircuitBreaker.for_estimate(
        desk.task.estimated_tool_calls,
        seconds=desk.task.time_limit_minutes * 60,
        max_tokens=desk.facts.attempt_tokens,
    )


def _turn(desk: AttemptServices) -> ModelSettings:
    limits = ROLES["worker"]
    return ModelSettings(
        model=desk.start.model,
        temperature=desk.start.temperature,
        answer_tokens=desk.start.max_tokens or limits.answer_tokens,
        working_tokens=max(desk.start.max_tokens or 0, limits.working_tokens),
    )


async def _tripped(desk: AttemptServices, trip: Trip) -> None:
    values = trip.as_json()
    await desk.note(
        EventKind.BREAKER_TRIPPED, attempt={"tripJson": json.dumps(asdict(trip))}, data=dict(values)
    )


async def _deliver(
    desk: AttemptServices, place: AttemptWorkspace, talk: Conversation
) -> Deliverable | AttemptRejection:
    """Turn the workspace's last tree into a commit, by the rules of `deliverable`."""
    answer = talk.answer.text
    kept = await _kept(desk, place)
    made, refusal = kept.made, kept.refusal
    if refusal:
        return AttemptRejection(
            cause=Cause.REFUSED_DELIVERABLE, issues=refusal.issues, answer=answer, tree=kept.tree
        )
    idle = deliverable.silent_no_op(desk.task, made.changed)
    if idle:
        return AttemptRejection(
            cause=Cause.SILENT_NO_OP, issues=(idle,), answer=answer, tree=kept.tree
        )
    ledger = talk.ledger
    return Deliverable(
        answer=answer,
        base_commit=desk.start.base_commit,
        base_tree=desk.start.base_tree,
        tree=made.tree,
        commit=await place.commit(made),
        changed=made.changed,
        left_out=made.left_out,
        protected=deliverable.find_protected_changes(desk.task, made.changed, made.in_base),
        notes=made.notes,
        unsupported=find_unsupported(answer, {n: e.text for n, e in ledger.items()}),
        tripped=talk.trip.detail if talk.trip else "",
        tool_calls=talk.tool_calls,
        messages=talk.message_count,
        usage=talk.usage,
        ledger=tuple((n, e.tree, e.text[:LEDGER_TEXT]) for n, e in ledger.items()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _WorkspaceResult:
    """What a worker left in its workspace."""

    made: WorkspaceDiff
    refusal: deliverable.DeliverableRefusal | None
    tree: str
    """What a next attempt goes on from."""


async def _kept(desk: AttemptServices, place: AttemptWorkspace) -> _WorkspaceResult:
    """Look at the workspace's last tree; what is refused is taken out of it: the next attempt's tools could not undo it."""
    made = await place.deliverable()
    refusal = deliverable.refuse_deliverable(
        made.changed, tool_table_changed=made.tool_table_changed, links_out=made.links_out
    )
    tree = made.tree
    if refusal:
        tree = await desk.history.with_files(tree, desk.start.base_tree, refusal.paths)
    return _WorkspaceResult(made=made, refusal=refusal, tree=tree)


async def _check(desk: AttemptServices, course: AttemptState) -> tuple[TaskStatus, AttemptState]:
    """Run the task's checks on clean checkouts and seal what they showed."""
    work = course.work
    if work is None:
        raise AssertionError("worker_completed without a deliverable")
    outcomes = await desk.checks.outcomes(
        desk.task,
        base_tree=desk.start.first_base_tree,
        tree=work.tree,
        changed=work.changed,
        answer=work.answer,
        own_base=desk.start.base_tree,
    )
    bodies: Bodies = [
        ("deliverable", deliverable_body(work.tree, work.base_tree, work.answer, work.changed)),
        *(("check", body) for outcome in outcomes for body in check_bodies(outcome)),
    ]
    records = seal_records(desk, bodies)
    now = stamp(desk.clock.now())
    await desk.move(
        TaskStatus.QC_EXECUTING,
        EventKind.JUDGING_STARTED,
        task={"checksCompletedAt": now, "qcStartTime": now, "qcAttemptNumber": desk.number},
        attempt={"checksJson": OUTCOMES.encode(outcomes)},
        data={"checks": {o.check: o.state for o in outcomes}},
        records=records,
        waits=True,  # for QC's first question
    )
    return TaskStatus.QC_EXECUTING, replace(course, outcomes=outcomes)
