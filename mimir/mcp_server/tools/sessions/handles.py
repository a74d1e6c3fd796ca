"""Session of a call: the named one, or the implicit one of the principal."""

import hashlib
from datetime import datetime, timedelta
from functools import partial

from mimir.bootstrap.clock import SystemClock
from mimir.bootstrap.stored_project import ProjectPlace, StoredProject
from mimir.domain.clock import moment, stamp
from mimir.domain.invocation import DelegationLimits
from mimir.errors import LimitError, MimirError
from mimir.mcp_server.tools.tool_values import IncomingCall
from mimir.orchestrator.delegation.rules import choose_starts
from mimir.orchestrator.sessions.limits import (
    find_newest_session,
    is_closed,
    load_session,
    require_own,
    start_queued,
    touch_session,
)
from mimir.store.protocol import ReadOps
from mimir.store.records.session_records import SessionRecord
from mimir.store.run_reading import load_record

CONTACT = timedelta(minutes=60)
"""Age of the last contact up to which a token continues its newest session."""
NOTED = timedelta(minutes=10)
"""Age from which a contact that only reads is written."""


async def find_session(call: IncomingCall, named: str = "") -> str:
    """Return the session whose limits hold for a call.

    Raises:
        LimitError: The named session is unknown, closed, or of another principal.
    """
    principal, now = call.principal, SystemClock().now()

    def look(reads: ReadOps, place: ProjectPlace) -> str:
        if named:
            found = load_record(reads, SessionRecord, named)
            # The session of the process exists from its first invocation on.
            if found is not None or named != principal.session:
                require_own(found, named, principal.name, now)
            return named
        if principal.session:
            found = load_record(reads, SessionRecord, principal.session)
            is_old = found is not None and is_closed(found, now)
            return f"{principal.session}-{now:%Y%m%d}" if is_old else principal.session
        since = stamp(now - CONTACT)
        return find_newest_session(reads, place.id, principal.name, since=since) or _name_implicit(
            principal.name, now
        )

    try:
        return await call.project.read(look)
    except LimitError:
        raise
    except MimirError:
        # The first invocation creates the store.
        return principal.session or _name_implicit(principal.name, now)


def _name_implicit(principal: str, now: datetime) -> str:
    # Computed, so that two first calls of one moment share a session.
    digest = hashlib.sha256(f"{principal} {now:%Y-%m-%d %H}".encode()).hexdigest()
    return f"s-{digest[:12]}"


async def keep_session(call: IncomingCall, session: str) -> None:
    """Note the contact with a session, and start its waiting invocations that may work now."""
    limits, now = read_limits(call), SystemClock().now()

    def look(reads: ReadOps, place: ProjectPlace) -> tuple[bool, bool]:
        found = load_record(reads, SessionRecord, session)
        if found is None:
            return False, False
        calls = load_session(reads, place.id, session, place.find_dead())
        is_old = now - moment(found.last_seen_at) > NOTED
        return is_old and not is_closed(found, now), bool(choose_starts(calls, limits))

    must_note, must_start = await call.project.read(look)

    async def change(opened: StoredProject) -> None:
        if must_note:
            touch = partial(
                touch_session,
                project_id=opened.id,
                session=session,
                principal=call.principal.name,
            )
            await opened.store.write(touch)
        if must_start:
            await _start(call, opened, session, limits)

    # Opening the store takes longer than a look at it.
    if must_note or must_start:
        await call.project.use_store(change)


def read_limits(call: IncomingCall) -> DelegationLimits:
    """Return the limits of delegation that the settings choose now."""
    # Imported here: the first answer of the server needs none of it.
    from mimir.bootstrap.delegation_limits import read_limits as read

    return read(call.project.load().settings)


async def _start(
    call: IncomingCall, opened: StoredProject, session: str, limits: DelegationLimits
) -> None:
    from mimir.bootstrap.agents.detached_worker import start_process

    take = partial(
        start_queued,
        project_id=opened.id,
        session=session,
        dead=opened.find_dead(),
        limits=limits,
    )
    settings = call.project.load().settings
    for run, model in (await opened.store.write(take)).items():
        start_process(call.project.directory, settings, run, model)
