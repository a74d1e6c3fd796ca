"""Reads of runs for the tools; a token sees its own runs only."""

from collections.abc import Mapping

from mimir.bootstrap.stored_project import ProjectPlace
from mimir.domain.json_value import as_objects, as_text
from mimir.errors import MimirError, UsageError
from mimir.mcp_server.project_access import ProjectAccess
from mimir.mcp_server.tools.tool_values import Principal
from mimir.orchestrator.runs.listing import find_id, match_id
from mimir.store.protocol import ReadOps, Where
from mimir.store.records.run_records import RunOverviewRecord
from mimir.store.run_reading import NEWEST_FIRST, find_records, load_run_overviews


def find_visible_run(
    reads: ReadOps, place: ProjectPlace, principal: Principal, run: str | None
) -> str:
    """Return the id of a run that the principal may see; None: its newest.

    Raises:
        UsageError: There is none; a run of another principal is answered like an unknown one.
    """
    if not principal.is_token:
        return find_id(reads, place.id, run, planning=True)
    own = _own_runs(reads, place, principal)
    # As for the user: a planning run counts only if nothing was executed, a todo list last.
    if run is None:
        ranked = sorted(own.values(), key=lambda one: (one.is_todo_list, one.kind == "plan"))
        newest = next((one.id for one in ranked), "")
        if not newest:
            raise UsageError("You have started no run yet.", next_step="Call plan or execute.")
        return newest
    titles = {id: one.display_title for id, one in own.items()}
    found = match_id(run, titles, "runs") if own else ""
    if not found:
        raise UsageError(f"There is no run {run[:80]!r}.", next_step="Call status without a run.")
    return found


async def load_status(
    project: ProjectAccess, principal: Principal, run: str | None
) -> Mapping[str, object]:
    """Return `status --json` of a run; a planning run names the run that executes its plan."""

    def look(reads: ReadOps, place: ProjectPlace) -> Mapping[str, object]:
        id = find_visible_run(reads, place, principal, run)
        status = place.read_status(reads, id)
        executed = _find_execution(reads, principal, id) if status.get("kind") == "plan" else ""
        return {**status, "executed_by": executed} if executed else status

    return await project.read(look)


async def find_planning(project: ProjectAccess, path: str) -> str:
    """Return the planning run of a plan's file; empty: it does not exist yet."""

    def look(reads: ReadOps, place: ProjectPlace) -> str:
        where: Where = {"projectId": place.id, "kind": "plan", "planPath": path}
        found = find_records(reads, RunOverviewRecord, where, order=NEWEST_FIRST, limit=1)
        return found[0].id if found else ""

    try:
        return await project.read(look)
    except MimirError:  # the command creates the store of a new project
        return ""


async def find_execution(project: ProjectAccess, principal: Principal, planning: str) -> str:
    """Return the newest run that executes the plan of a planning run; empty: there is none."""
    return await project.read(lambda reads, _: _find_execution(reads, principal, planning))


def read_visible_inbox(
    reads: ReadOps, place: ProjectPlace, principal: Principal, *, every: bool
) -> Mapping[str, object]:
    """Return the inbox with the questions that the principal may see."""
    # Imported here: the first answer of the server needs none of it.
    from mimir.orchestrator.questions.inbox import load_inbox

    found = load_inbox(reads, place.id, every=every)
    if not principal.is_token:
        return found
    own = _own_runs(reads, place, principal)
    shown = [one for one in as_objects(found["questions"]) if as_text(one.get("run")) in own]
    proposals = [
        one
        for one in as_objects(found["proposals"])
        if as_text(one.get("run")) in own or one.get("proposed_by") == principal.name
    ]
    return {**found, "questions": shown, "proposals": proposals}


def _own_runs(
    reads: ReadOps, place: ProjectPlace, principal: Principal
) -> Mapping[str, RunOverviewRecord]:
    """Return the runs of a principal by id, newest first."""
    known = load_run_overviews(reads, place.id)
    return {one.id: one for one in known if one.principal == principal.name}


def _find_execution(reads: ReadOps, principal: Principal, planning: str) -> str:
    own: Where = {"principal": principal.name} if principal.is_token else {}
    where: Where = {"planRun": planning, **own}
    found = find_records(reads, RunOverviewRecord, where, order=NEWEST_FIRST, limit=1)
    return found[0].id if found else ""
