"""Invocations that agents spawn: their place below the caller, the open ones of a run."""

from dataclasses import replace

from mimir.domain.invocation import DelegationLimits, SpawnCaller
from mimir.domain.task_states import RUN_ENDED
from mimir.orchestrator.delegation.rules import find_chain_refusal
from mimir.orchestrator.sessions.limits import make_error
from mimir.store.operations.runs import NewRun
from mimir.store.protocol import ReadOps
from mimir.store.records.run_records import RunOverviewRecord
from mimir.store.run_reading import find_records, load_run


def place_child(
    reads: ReadOps, new: NewRun, caller: SpawnCaller, limits: DelegationLimits
) -> NewRun:
    """Return an invocation with the parent, the session and the principal of its caller.

    Raises:
        LimitError: It is too deep, or in its own line of ancestors.
    """
    root = parent = load_run(reads, caller.run)
    chain = [caller.agent]
    # Depth and ancestors of a run never change, so no transaction is needed.
    for _ in range(parent.depth):
        chain.insert(0, root.spawned_by)
        root = load_run(reads, root.parent_run)
    refusal = find_chain_refusal(chain, new.agent, limits)
    # The agents of a run without a session have one of their own.
    session = parent.session_id or f"s-{root.id}"
    if refusal:
        raise make_error(refusal, session)
    return replace(
        new,
        parent_run=parent.id,
        spawned_by=caller.agent,
        spawn_key=caller.key,
        principal=parent.principal,
        session_id=session,
    )


def find_open_children(reads: ReadOps, run: str) -> list[str]:
    """Return the invocations that an agent of a run has spawned and that have not ended."""
    found = find_records(reads, RunOverviewRecord, {"parentRun": run})
    return [one.id for one in found if one.status not in RUN_ENDED]
