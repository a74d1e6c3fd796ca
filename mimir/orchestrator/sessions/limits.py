"""Sessions of invocations: records of contact, and calls that are counted from the runs.

Each limit is checked in the transaction that creates something, after the project is locked. So
no two processes count at the same time.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from mimir.domain.clock import moment, stamp
from mimir.domain.invocation import DelegationLimits
from mimir.domain.json_value import as_object, as_text, as_whole_number
from mimir.domain.run import RunBudget
from mimir.domain.task_states import RUN_ENDED, RunStatus
from mimir.errors import LimitError
from mimir.orchestrator.delegation.rules import (
    DAY,
    SessionCall,
    SessionRefusal,
    choose_starts,
    find_place,
    find_refusal,
    find_session_refusal,
    is_slot_free,
)
from mimir.store.protocol import ReadOps, Where, WriteOps
from mimir.store.records.record_codec import PackedJson, encode
from mimir.store.records.run_changes import RunPauseChange, RunQueueChange
from mimir.store.records.run_records import RunOverviewRecord, RunRecord
from mimir.store.records.session_records import SessionBudgetChange, SessionRecord
from mimir.store.run_reading import find_records, load_record, load_run
from mimir.store.schema import NodeLabel

STARTING = timedelta(seconds=60)
"""Longest time until the process of a new run appears in the store."""
USER = "stdio:"
"""Beginning of the principals that are the user's own clients."""


def load_session(
    reads: ReadOps, project_id: str, session: str, dead: Collection[str]
) -> list[SessionCall]:
    """Return the invocations of a session, oldest first."""
    where = {"projectId": project_id, "sessionId": session, "kind": "agent"}
    found = find_records(reads, RunRecord, where, order=("createdAt", "seq"))
    return [_read_call(reads, one, dead) for one in found]


def open_session(ops: WriteOps, new: SessionRecord) -> None:
    """Create a session for its principal.

    Raises:
        LimitError: The principal has too many; nothing is created.
    """
    lock_project(ops, new.project_id)
    where = {"projectId": new.project_id, "principal": new.principal}
    own = [one for one in find_records(ops, SessionRecord, where) if one.name]
    now = moment(ops.now())
    refusal = find_session_refusal(
        open_now=sum(not is_closed(one, now) for one in own),
        today=sum(now - moment(one.created_at) < DAY for one in own),
    )
    if refusal:
        raise make_error(refusal)
    at = ops.now()
    ops.upsert(NodeLabel.SESSION, [encode(replace(new, created_at=at, last_seen_at=at))])


def admit_run(
    ops: WriteOps,
    run: str,
    dead: Collection[str],
    limits: DelegationLimits,
    *,
    is_forced: bool,
) -> None:
    """Require that a run, created in this transaction, keeps the limits of its session.

    The run is queued if the agents at work are as many as may be.

    Raises:
        LimitError: It exceeds a limit; the transaction must end without effect.
    """
    new = load_run(ops, run)
    lock_project(ops, new.project_id)
    touch_session(ops, new.project_id, new.session_id, new.principal)
    renew_budget(ops, new.session_id, limits)
    since = stamp(moment(ops.now()) - DAY)
    where: Where = {"projectId": new.project_id, "kind": "agent", "createdAt": (">", since)}
    today = [
        one
        for one in find_records(ops, RunOverviewRecord, where)
        if one.session_id and one.id != run
    ]
    calls = load_session(ops, new.project_id, new.session_id, dead)
    earlier = [one for one in calls if one.run != run]
    call = _read_call(ops, new, dead)
    refusal = find_refusal(earlier, call, limits, today=len(today), is_forced=is_forced)
    if refusal:
        raise make_error(refusal, new.session_id)
    if not is_slot_free(earlier, call, limits):
        message = f"Queued: {limits.active} agents of the session {new.session_id} are at work."
        changes = RunQueueChange(queued_at=ops.now()), RunPauseChange(pause_message=message)
        ops.patch(NodeLabel.RUN, run, encode(*changes))


def touch_session(ops: WriteOps, project_id: str, session: str, principal: str) -> None:
    """Record contact with a session; its first contact creates it.

    Raises:
        LimitError: It is closed, or belongs to another principal.
    """
    found = load_record(ops, SessionRecord, session)
    if found is None:
        at = ops.now()
        record = SessionRecord(
            id=session,
            project_id=project_id,
            principal=principal,
            created_at=at,
            last_seen_at=at,
        )
        ops.upsert(NodeLabel.SESSION, [encode(record)])
    else:
        require_own(found, session, principal, moment(ops.now()))
        ops.patch(NodeLabel.SESSION, session, {"lastSeenAt": ops.now()})


def renew_budget(ops: WriteOps, session: str, limits: DelegationLimits) -> None:
    """Give a session the limits of the settings, unless its client chose them."""
    found = load_record(ops, SessionRecord, session)
    if found is not None and not found.has_own_budget:
        ops.patch(NodeLabel.SESSION, session, encode(change_budget(limits.budget)))


def change_budget(budget: RunBudget) -> SessionBudgetChange:
    """Return the change that gives a session a budget."""
    return SessionBudgetChange(
        max_calls=budget.max_calls, max_tokens=budget.max_tokens, max_cost=budget.max_cost
    )


def require_own(session: SessionRecord | None, id: str, principal: str, now: datetime) -> None:
    """Require that a principal may use a session.

    Raises:
        LimitError: It does not exist, is closed, or belongs to another principal.
    """
    require_visible(session, id, principal)
    if session is not None and is_closed(session, now):
        raise _refuse_session(f"{id[:80]} is closed: there was no contact for 24 hours.")


def require_visible(session: SessionRecord | None, id: str, principal: str) -> None:
    """Require that a principal may see a session; a foreign one is answered as unknown.

    Raises:
        LimitError: It may not.
    """
    if session is None or not is_same_client(session.principal, principal):
        raise _refuse_session(f"There is no session {id[:80]!r}.")


def is_same_client(owner: str, principal: str) -> bool:
    """Return whether a principal is an owner; all clients of the user are one."""
    both = [not name or name.startswith(USER) for name in (principal, owner)]
    return owner == principal or all(both)


def _refuse_session(problem: str) -> LimitError:
    step = "Leave session out, or open another one: open_session"
    return make_error(SessionRefusal(rule="session", problem=problem, next_step=step))


def is_closed(session: SessionRecord, now: datetime) -> bool:
    """Return whether a session had no contact for too long."""
    return now - moment(session.last_seen_at) >= DAY


def count_refusal(ops: WriteOps, error: LimitError) -> None:
    """Count a refused invocation in its session, if there is one."""
    session, rule = error.session, error.rule
    found = load_record(ops, SessionRecord, session) if session else None
    if found is not None:
        counts = dict(found.refusals.mapping()) if found.refusals else {}
        counts[rule] = (as_whole_number(counts.get(rule)) or 0) + 1
        text = PackedJson.pack(counts).text
        ops.patch(NodeLabel.SESSION, session, {"refusalsJson": text})


def start_queued(
    ops: WriteOps, project_id: str, session: str, dead: Collection[str], limits: DelegationLimits
) -> Mapping[str, str]:
    """Take the invocations from the queue that may start now; return the model of each.

    The caller starts a process for each. If it dies before, they are queued again a minute later.
    """
    lock_project(ops, project_id)
    chosen = choose_starts(load_session(ops, project_id, session, dead), limits)
    models: dict[str, str] = {}
    for one in chosen:
        record = load_run(ops, one.run)
        change = RunQueueChange(queued_at=record.queued_at, dequeued_at=ops.now())
        ops.patch(NodeLabel.RUN, one.run, encode(change))
        models[one.run] = as_text(as_object(record.settings.mapping().get("llm")).get("model"))
    return models


def find_newest_session(reads: ReadOps, project_id: str, principal: str, *, since: str) -> str:
    """Return the newest session of a principal with contact since then; empty: there is none."""
    where: Where = {"projectId": project_id, "principal": principal, "lastSeenAt": (">=", since)}
    found = find_records(reads, SessionRecord, where, order=("-createdAt",), limit=1)
    return found[0].id if found else ""


def find_queue_place(reads: ReadOps, run: str, dead: Collection[str]) -> int:
    """Return the place of a run in the queue of its session, 1-based; 0: it does not wait."""
    record = load_run(reads, run)
    if not record.is_queued:
        return 0
    return find_place(load_session(reads, record.project_id, record.session_id, dead), run)


def make_error(refusal: SessionRefusal, session: str = "") -> LimitError:
    """Return the error of an exceeded limit; `session` counts it, if it is the caller's own."""
    return LimitError(
        f"Refused ({refusal.rule}): {refusal.problem}",
        rule=refusal.rule,
        next_step=refusal.next_step,
        session=session,
    )


def lock_project(ops: WriteOps, project_id: str) -> None:
    """Lock a project, so that no other transaction counts or creates at the same time."""
    # The first session of a project may precede its first run.
    if ops.patch_if(NodeLabel.PROJECT, project_id, {}, {}) is None:
        ops.upsert(NodeLabel.PROJECT, [{"id": project_id, "projectId": project_id}])


def _read_call(reads: ReadOps, run: RunRecord, dead: Collection[str]) -> SessionCall:
    now = moment(reads.now())
    is_new = now - moment(run.dequeued_at or run.created_at) < STARTING
    is_queued = run.is_queued and not (run.dequeued_at and is_new)
    shown = run.shown_status(reads.now(), dead)
    # A run without a process is active only until its process had time to appear.
    works = shown is RunStatus.RUNNING or (run.status is RunStatus.RUNNING and is_new)
    return SessionCall(
        run=run.id,
        agent=run.agent,
        task=run.request,
        refines=run.refines,
        parent=run.parent_run,
        is_active=works and not is_queued,
        is_queued=is_queued,
        has_ended=run.status in RUN_ENDED,
    )
