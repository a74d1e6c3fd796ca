"""Sessions of invocations, read from their runs: no process counts for itself."""

from collections.abc import Collection
from datetime import timedelta

from mimir.domain.clock import moment
from mimir.domain.task_states import RunStatus
from mimir.errors import UsageError
from mimir.orchestrator.delegation.rules import SessionCall, find_refusal
from mimir.store.protocol import ReadOps
from mimir.store.records.run_records import RunOverviewRecord, RunRecord
from mimir.store.run_reading import find_records, load_run

STARTING = timedelta(seconds=60)
"""Longest time until the process of a new run appears in the store."""


def load_session(
    reads: ReadOps, project_id: str, session: str, dead: Collection[str]
) -> list[SessionCall]:
    """Return the invocations of a session, oldest first."""
    where = {"projectId": project_id, "sessionId": session, "kind": "agent"}
    found = find_records(reads, RunRecord, where, order=("createdAt", "seq"))
    return [_read_call(reads, one, dead) for one in found]


def require_room(ops: ReadOps, run: str, dead: Collection[str], *, is_forced: bool) -> None:
    """Require that a run, created in this transaction, keeps the limits of its session.

    The creation has locked the project, so two processes never count at the same time.

    Raises:
        UsageError: It exceeds one of them; the transaction must end without effect.
    """
    new = load_run(ops, run)
    calls = load_session(ops, new.project_id, new.session_id, dead)
    earlier = [one for one in calls if one.run != run]
    refusal = find_refusal(earlier, _read_call(ops, new, dead), is_forced=is_forced)
    if refusal:
        raise UsageError(
            f"Refused ({refusal.rule}): {refusal.problem}", next_step=refusal.next_step
        )


def find_newest_session(reads: ReadOps, project_id: str, principal: str, *, since: str) -> str:
    """Return the session of the newest invocation of a principal; empty: none since then."""
    where = {"projectId": project_id, "principal": principal, "kind": "agent"}
    order = ("-createdAt", "-seq")
    found = find_records(reads, RunOverviewRecord, where, order=order, limit=1)
    return found[0].session_id if found and found[0].created_at >= since else ""


def _read_call(reads: ReadOps, run: RunRecord, dead: Collection[str]) -> SessionCall:
    now = reads.now()
    is_new = moment(now) - moment(run.created_at) < STARTING
    shown = run.shown_status(now, dead)
    # A run without a process is active only until its process had time to appear.
    is_active = shown is RunStatus.RUNNING or (run.status is RunStatus.RUNNING and is_new)
    return SessionCall(
        run=run.id,
        agent=run.agent,
        task=run.request,
        refines=run.refines,
        is_active=is_active,
    )
