"""Verbs of sessions: open one, start its waiting invocations, end its invocations."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from mimir.domain.run import NO_LIMITS, RunBudget
from mimir.errors import UsageError
from mimir.orchestrator.services import ProjectServices
from mimir.orchestrator.sessions import limits
from mimir.orchestrator.sessions.limits import load_session, require_visible
from mimir.store.operations.record_loading import load_run
from mimir.store.protocol import ReadOps
from mimir.store.records.session_records import SessionRecord
from mimir.store.run_reading import load_record


async def open_session(
    services: ProjectServices, name: str, *, principal: str, chat: str, budget: RunBudget
) -> str:
    """Create a session; return its id. Its `budget` only lowers that of the settings.

    Raises:
        LimitError: Its principal has too many.
    """
    own = services.limits.budget
    new = SessionRecord(
        id=services.ids.new("s"),
        project_id=services.project_id,
        principal=principal,
        name=name,
        chat=chat or None,
        has_own_budget=budget != NO_LIMITS,
        max_calls=_lower(budget.max_calls, own.max_calls),
        max_tokens=_lower(budget.max_tokens, own.max_tokens),
        max_cost=_lower(budget.max_cost, own.max_cost),
    )
    await services.store.write(partial(limits.open_session, new=new))
    return new.id


def _lower(one: int | None, other: int | None) -> int | None:
    given = [limit for limit in (one, other) if limit is not None]
    return min(given, default=None)


async def start_waiting(services: ProjectServices, session: str) -> None:
    """Start a process for each invocation of a session that may start now."""
    dead = services.owners.find_dead()
    # Most sessions have no queue, and a look costs no write.
    look = partial(load_session, project_id=services.project_id, session=session, dead=dead)
    if not any(one.is_queued for one in await services.store.read(look)):
        return
    take = partial(
        limits.start_queued,
        project_id=services.project_id,
        session=session,
        dead=dead,
        limits=services.limits,
    )
    for run, model in (await services.store.write(take)).items():
        services.start_process(run, model)


async def start_waiting_after(services: ProjectServices, run: str) -> None:
    """Start the waiting invocations of the session of a run that has ended or paused."""
    record = await services.store.read(partial(load_run, run=run), brief=True)
    if record.kind == "agent" and record.session_id:
        await start_waiting(services, record.session_id)


async def cancel_session(
    services: ProjectServices,
    session: str,
    principal: str,
    cancel: Callable[[ProjectServices, str], Awaitable[None]],
) -> list[str]:
    """Cancel the open invocations of a session, queued ones first; return them.

    Raises:
        LimitError: It belongs to another principal.
    """

    def look(reads: ReadOps) -> list[str]:
        # One that is closed may still be ended.
        require_visible(load_record(reads, SessionRecord, session), session, principal)
        calls = load_session(reads, services.project_id, session, services.owners.find_dead())
        opened = [one for one in calls if not one.has_ended]
        return [one.run for one in sorted(opened, key=lambda one: not one.is_queued)]

    ended: list[str] = []
    # The end of an agent may start a queued one, which the next look finds.
    while left := [run for run in await services.store.read(look) if run not in ended]:
        for run in left:
            with suppress(UsageError):  # it has ended by itself
                await cancel(services, run)
            ended.append(run)
    return ended
