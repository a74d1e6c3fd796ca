"""Reads of runs for the tools: the status, and the runs that follow from a planning run."""

from collections.abc import Mapping

from mimir.bootstrap.stored_project import ProjectPlace
from mimir.domain.json_value import as_text
from mimir.errors import MimirError
from mimir.mcp_server.project_access import ProjectAccess
from mimir.store.protocol import ReadOps
from mimir.store.records.run_records import RunRecord
from mimir.store.run_reading import NEWEST_FIRST, find_records


async def load_status(project: ProjectAccess, run: str | None) -> Mapping[str, object]:
    """Return `status --json` of a run; a planning run names the run that executes its plan."""

    def look(reads: ReadOps, place: ProjectPlace) -> Mapping[str, object]:
        status = place.read_status(reads, run)
        id = as_text(status.get("run"))
        executed = _find_execution(reads, id) if status.get("kind") == "plan" else ""
        return {**status, "executed_by": executed} if executed else status

    return await project.read(look)


async def find_planning(project: ProjectAccess, path: str) -> str:
    """Return the planning run of a plan's file; empty: it does not exist yet."""

    def look(reads: ReadOps, place: ProjectPlace) -> str:
        where = {"projectId": place.id, "kind": "plan", "planPath": path}
        found = find_records(reads, RunRecord, where, order=NEWEST_FIRST, limit=1)
        return found[0].id if found else ""

    try:
        return await project.read(look)
    except MimirError:  # the command creates the store of a new project
        return ""


async def find_execution(project: ProjectAccess, planning: str) -> str:
    """Return the newest run that executes the plan of a planning run; empty: there is none."""
    return await project.read(lambda reads, _: _find_execution(reads, planning))


def _find_execution(reads: ReadOps, planning: str) -> str:
    found = find_records(reads, RunRecord, {"planRun": planning}, order=NEWEST_FIRST, limit=1)
    return found[0].id if found else ""
