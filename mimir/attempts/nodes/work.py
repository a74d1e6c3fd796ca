"""Work node: the worker's conversation ends in a deliverable or a rejection."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from mimir.agents.agent_loop import Conversation, LoopServices, ModelSettings, converse
from mimir.agents.circuit_breaker import CircuitBreaker, Trip
from mimir.agents.citations import find_unsupported, parse_citations
from mimir.agents.stopwatch import WorkTimer
from mimir.attempts.agent_answers.cited_sources import look_up_citations
from mimir.attempts.agent_answers.form_request import require_form
from mimir.attempts.agent_answers.response_form import answer_schema, find_words
from mimir.attempts.attempt_workspace import AttemptWorkspace, WorkspaceDiff
from mimir.attempts.deliverable import (
    DeliverableRefusal,
    find_protected_changes,
    find_silent_no_op,
    refuse_deliverable,
    refuse_unsettled,
)
from mimir.attempts.nodes.program_work import ProgramFailed, work_by_program
from mimir.attempts.results import AttemptRejection, Checking, WorkerUsage, answered_change
from mimir.attempts.services import AttemptServices, WorkerWorkspace
from mimir.domain.agent import ROLES
from mimir.domain.call_outcome import Transcript
from mimir.domain.clock import stamp
from mimir.domain.deliverable import Deliverable
from mimir.domain.event import EventKind
from mimir.domain.ids import lane_id
from mimir.domain.message import Message
from mimir.domain.task_states import Cause, TaskStatus
from mimir.errors import AnswerError, ModelError
from mimir.llm.wrappers.journaled_model import JournaledModel
from mimir.store.records.attempt_changes import AttemptResultChange
from mimir.store.records.record_codec import PackedJson

TOOL_LOG_TEXT = 20_000
"""Characters that are kept of one tool result as a source of quotes."""


async def run_worker(services: AttemptServices) -> Checking | AttemptRejection:
    """Run the worker; its answer and last tree become a deliverable or a rejection."""
    started = services.clock.monotonic()
    workspace = AttemptWorkspace(services)
    # A resumed attempt has made these check runs before.
    if services.is_new:
        await _prepare_checks(services)
    try:
        conversation = await _converse(services, workspace)
    except ProgramFailed as error:
        return await _keep_work(services, workspace, error, started)
    except AnswerError as error:
        rejection = AttemptRejection(cause=Cause.INVALID_ANSWER, issues=(str(error),))
    except ModelError as error:
        # Errors of another scope concern the whole run: they pause it.
        if error.scope != "attempt":
            raise
        # The context may be too long for the model, so the retry gets less.
        issue = f"The model could not answer: {error}"
        rejection = AttemptRejection(cause=Cause.MODEL_ERROR, issues=(issue,), smaller_context=True)
    else:
        return await _deliver(services, workspace, conversation, started)
    finally:
        await workspace.leave()
    _, _, tree = await _inspect(services, workspace, ())
    return replace(rejection, tree=tree, effort=_usage_so_far(services, workspace, started))


async def _prepare_checks(services: AttemptServices) -> None:
    """Run the checks before the work where possible, and warn at once of a missing program."""
    runs = await services.checks.prepare(services.task, services.start.first_base_tree)
    # A later attempt would repeat the same warning.
    for run in runs if services.number == 1 else ():
        if run.missing:
            message = (
                f"Check {run.check!r} of {services.task.id} cannot run: its program is not installed, "
                f"or the sandbox does not contain it ({' '.join(run.argv)[:200]})."
            )
            await services.journal.note(EventKind.WARNING, data={"message": message})


async def _converse(services: AttemptServices, workspace: AttemptWorkspace) -> Conversation:
    transcript = await services.journal.open_transcript("worker")
    timer = WorkTimer(services.clock)

    async def on_live(tree: str) -> None:
        # Recorded calls are served without a workspace; the first live call needs their last tree.
        workspace.restore(tree)
        timer.start()

    async def on_trip(trip: Trip) -> None:
        # The stored text has blanks between its members, unlike other JSON of the store.
        change = AttemptResultChange(trip=PackedJson(json.dumps(asdict(trip))))
        data = dict(trip.as_json())
        await services.journal.note(EventKind.BREAKER_TRIPPED, change, data=data)

    transcript.on_live = on_live
    workspace.transcript = transcript
    bench = await _worker_workspace(services, workspace, transcript)
    program = services.agent.program if services.agent else None
    if program is not None:
        return await work_by_program(
            services, workspace, bench, program, interruptions=transcript.interruptions
        )
    tools = services.tools.worker(bench)
    name = lane_id(services.facts.id, services.task.id, services.number, "worker")
    model = services.models.for_lane("worker", name, services.start.model)
    loop = LoopServices(
        model=JournaledModel(model, transcript),
        tools=tools,
        context=services.context,
        breaker=_circuit_breaker(services),
        settings=_model_settings(services),
        elapsed=timer,
        recorded=services.recorded_trip,
        on_trip=on_trip,
    )
    conversation = await converse(services.start.brief, loop)
    if agent := services.agent:
        conversation = await require_form(agent, conversation, loop)
    # Reading calls are buffered; the deliverable may cite them.
    await transcript.flush()
    return conversation


async def _worker_workspace(
    services: AttemptServices, workspace: AttemptWorkspace, transcript: Transcript
) -> WorkerWorkspace:
    globs = [glob for check in services.task.checks for glob in check.protect]
    base = services.start.base_tree
    scope = await workspace.write_scope()
    return WorkerWorkspace(
        run=services.facts.id,
        task=services.task,
        where=services.directory,
        stand=workspace.stand,
        base_commit=services.start.base_commit,
        tree=services.start.tree,
        lane=transcript,
        snapshot=workspace.snapshot,
        artifacts=services.artifacts,
        agent=services.agent.address if services.agent else "",
        depth=services.facts.depth,
        may_spawn=services.facts.may_spawn(services.task),
        skills=services.agent.skills if services.agent else (),
        protected=await services.history.paths(base, globs) if globs else (),
        refuse_write=scope.with_installed(services.history.installed_modules).refuse,
    )


def _circuit_breaker(services: AttemptServices) -> CircuitBreaker:
    return CircuitBreaker.for_estimate(
        services.task.estimated_tool_calls,
        seconds=services.task.time_limit_minutes * 60,
        max_tokens=services.facts.attempt_tokens,
    )


def _model_settings(services: AttemptServices) -> ModelSettings:
    limits, max_tokens, agent = ROLES["worker"], services.start.max_tokens, services.agent
    # Of two limits the stricter one applies. Each reply may turn out to be the answer.
    own = [one for one in (agent and agent.max_tokens, max_tokens) if one]
    temperature = agent.temperature if agent else None
    return ModelSettings(
        model=services.start.model,
        temperature=services.start.temperature if temperature is None else temperature,
        answer_tokens=min(own, default=limits.answer_tokens),
        working_tokens=min(own, default=limits.working_tokens),
    )


async def _deliver(
    services: AttemptServices,
    workspace: AttemptWorkspace,
    conversation: Conversation,
    started: float,
) -> Checking | AttemptRejection:
    """Record the answer and the last tree as a deliverable, or reject them."""
    effort = WorkerUsage(
        tool_calls=conversation.tool_calls,
        messages=conversation.message_count,
        usage=conversation.usage,
        seconds=services.clock.monotonic() - started,
    )
    work = await _make_deliverable(services, workspace, conversation)
    if isinstance(work, AttemptRejection):
        return replace(work, effort=effort)
    now = stamp(services.clock.now())
    await services.journal.transition(
        TaskStatus.WORKER_COMPLETED,
        EventKind.WORK_ANSWERED,
        task=(answered_change(work.answer, effort, now),),
        attempt=(AttemptResultChange(deliverable=PackedJson.pack(work)),),
        data={
            "tool_calls": work.tool_calls,
            "limit": _circuit_breaker(services).limit,
            "changed": list(work.changed),
            "tripped": work.tripped,
        },
        artifacts={"answer": work.answer},
        # Checks are expensive, so the deliverable that they run on is committed first.
        defer=not services.task.checks,
    )
    return Checking(work=work)


async def _keep_work(
    services: AttemptServices, workspace: AttemptWorkspace, error: ProgramFailed, started: float
) -> AttemptRejection:
    """Reject the attempt of a program that did not succeed, with the changes that it left."""
    # No commit: nothing of it may reach the run branch.
    diff, refusal, tree = await _inspect(services, workspace, ())
    effort = _usage_so_far(services, workspace, started)
    work = Deliverable(
        answer=error.answer,
        base_commit=services.start.base_commit,
        base_tree=services.start.base_tree,
        tree=diff.tree,
        changed=diff.changed,
        left_out=diff.left_out,
        notes=diff.notes,
        tool_calls=effort.tool_calls,
        usage=effort.usage,
    )
    return AttemptRejection(
        cause=error.cause,
        issues=(str(error), *(refusal.issues if refusal else ())),
        answer=error.answer,
        tree=tree,
        effort=effort,
        work=None if refusal or not diff.changed else work,
    )


def _usage_so_far(
    services: AttemptServices, workspace: AttemptWorkspace, started: float
) -> WorkerUsage:
    """Return the usage of a conversation without an answer; its messages are not known."""
    seconds = services.clock.monotonic() - started
    transcript = workspace.transcript
    if transcript is None:
        return WorkerUsage(seconds=seconds)
    return WorkerUsage(tool_calls=transcript.tool_calls, usage=transcript.usage, seconds=seconds)


async def _make_deliverable(
    services: AttemptServices, workspace: AttemptWorkspace, conversation: Conversation
) -> Deliverable | AttemptRejection:
    """Commit the workspace's last tree, or reject it by the rules of `attempts.deliverable`."""
    answer = conversation.answer.text
    diff, refusal, tree = await _inspect(services, workspace, conversation.messages)
    if refusal:
        return _reject(refusal.cause, refusal.issues, answer, tree)
    no_op = find_silent_no_op(services.task, diff.changed)
    if no_op:
        return _reject(Cause.SILENT_NO_OP, (no_op,), answer, tree)
    tool_log = conversation.ledger
    return Deliverable(
        answer=answer,
        base_commit=services.start.base_commit,
        base_tree=services.start.base_tree,
        tree=diff.tree,
        commit=await workspace.commit(diff),
        changed=diff.changed,
        left_out=diff.left_out,
        protected=find_protected_changes(services.task, diff.changed, diff.in_base),
        notes=diff.notes,
        unsupported=await _find_unsupported(services, diff.tree, conversation),
        tripped=conversation.trip.detail if conversation.trip else "",
        tool_calls=conversation.tool_calls,
        messages=conversation.message_count,
        usage=conversation.usage,
        ledger=tuple((n, e.tree, e.text[:TOOL_LOG_TEXT]) for n, e in tool_log.items()),
        cited_arguments=tuple(
            (n, tool_log[n].arguments[:TOOL_LOG_TEXT])
            for n in sorted({one.number for one in parse_citations(answer)} & tool_log.keys())
        ),
    )


async def _find_unsupported(
    services: AttemptServices, tree: str, conversation: Conversation
) -> tuple[str, ...]:
    """Return the citations of the answer that do not hold; an invoked agent cites files too."""
    answer, log = conversation.answer.text, conversation.ledger
    if agent := services.agent:
        words = find_words(answer, answer_schema(agent))
        return await look_up_citations(
            words,
            tree,
            log,
            read_file=services.history.file,
            redact=services.redact,
            material=agent.material,
        )
    return find_unsupported(answer, log)


def _reject(cause: Cause, issues: Sequence[str], answer: str, tree: str) -> AttemptRejection:
    return AttemptRejection(cause=cause, issues=tuple(issues), answer=answer, tree=tree)


async def _inspect(
    services: AttemptServices, workspace: AttemptWorkspace, messages: Sequence[Message]
) -> tuple[WorkspaceDiff, DeliverableRefusal | None, str]:
    """Return (last tree compared, refusal, tree for the next attempt)."""
    diff = await workspace.deliverable()
    refusal = refuse_deliverable(
        diff.changed,
        tool_table_changed=diff.tool_table_changed,
        links_out=diff.links_out,
        filtered=diff.filtered,
        oversized=diff.oversized,
        limits=services.facts.deliverable_limits,
        files=services.task.files,
    )
    tree = diff.tree
    if refusal is not None:
        # Refused changes are reverted: the next attempt's tools could not undo them.
        base = services.start.base_tree
        tree = await services.history.with_files(tree, base, refusal.paths)
    unsettled = await workspace.find_unsettled(diff.whole_tree, messages)
    if unsettled:
        refusal = refuse_unsettled(unsettled, refusal)
        tree = await workspace.restore_earlier(tree, unsettled)
    return diff, refusal, tree
