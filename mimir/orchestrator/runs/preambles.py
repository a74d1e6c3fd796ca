"""Preambles of a run: all roles' are made at once, each is pinned when it is ready."""

import asyncio
from collections.abc import Mapping
from functools import partial

from mimir.agents.preambles.agentinator import Agentinator, Preamble, use_definition
from mimir.agents.preambles.trust import describe_ignored
from mimir.attempts.services import PinnedPreamble, PinnedRun
from mimir.domain.event import EventKind
from mimir.domain.plan import PreambleRole, preamble_roles
from mimir.orchestrator.services import ProjectServices
from mimir.scheduling.execution.pinned_preambles import Preambles, load_preambles, pin_preambles
from mimir.store.operations import runs
from mimir.store.protocol import WriteOps
from mimir.workspace.aio import cancel_all


async def make_preambles(services: ProjectServices, facts: PinnedRun) -> None:
    """Make the missing preambles of a run; each is in `facts` as soon as it is pinned.

    Raises:
        PlanError: A template or a preamble file of the project is invalid.
        ModelError: Scope `run`: no model call can succeed.
        Paused: From a model, or the disk is full.
    """
    roles = preamble_roles(facts.plan.tasks)
    if all(role in facts.preambles for role in roles):
        return
    agentinator = services.agentinator(partial(services.open_transcript, facts.id), facts.id)
    # Also the pinned ones: the agentinator numbers its transcripts in the order of requests, and finds the others in its cache.
    jobs = {asyncio.ensure_future(_make(agentinator, facts, role)): role for role in roles}
    waiting = set(jobs)
    try:
        while waiting:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finished = {role: job.result() for job, role in jobs.items() if job not in waiting}
            await _pin(services, facts, finished)
    # A failed job must not leave the others calling a model.
    finally:
        await cancel_all(jobs)


async def _make(agentinator: Agentinator, facts: PinnedRun, key: PreambleRole) -> Preamble:
    kind, role = key
    if kind == "worker" and role in facts.agents:
        agent = facts.agents[role]
        return use_definition(role, agent.prompt, agent.output_schema)
    return await agentinator.preamble(kind, role)


async def _pin(
    services: ProjectServices, facts: PinnedRun, made: Mapping[PreambleRole, Preamble]
) -> None:
    """Pin those of `made` that are not pinned, and let the coordinator release their tasks."""
    new = {role: one for role, one in made.items() if role not in facts.preambles}
    if not new:
        return

    def work(ops: WriteOps) -> Preambles:
        known = load_preambles(ops, facts.id)
        for role, one in new.items():
            if role not in known and one.origin != "found":
                _report(ops, facts.id, one)
        return pin_preambles(
            ops,
            facts.id,
            {role: PinnedPreamble(text=one.text, hash=one.hash) for role, one in new.items()},
        )

    # Preambles from the cache can be found again; only new ones cost model calls.
    is_costly = any(one.origin != "found" for one in new.values())
    facts.preambles.update(await services.store.write(work, durable=is_costly))
    services.wake.task_moved()


def _report(ops: WriteOps, run: str, made: Preamble) -> None:
    """Write the events of a preamble that was not found in the cache."""
    data = {
        "kind": made.kind,
        # Roles are free text of the plan, and events are shown on one line.
        "role": made.role[:200],
        "path": made.path,
        "origin": made.origin,
        "why": made.why,
    }
    runs.append_event(ops, run, EventKind.PREAMBLE_MADE, data=data)
    if made.ignored:
        message = describe_ignored(made.ignored)
        runs.append_event(ops, run, EventKind.WARNING, data={"message": message})
