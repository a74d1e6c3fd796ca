"""The tasks extension: a run is the task, so every process of the server answers for it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RequestParams
from pydantic import Field

from mimir.bootstrap.clock import SystemClock
from mimir.bootstrap.stored_project import ProjectPlace
from mimir.domain.clock import moment
from mimir.domain.json_value import as_objects, as_text
from mimir.errors import MimirError, UsageError
from mimir.mcp_server.elicitation import FORM, MAX_FORMS, make_form, read_responses
from mimir.mcp_server.messages import to_result
from mimir.mcp_server.project_access import ProjectAccess, hide_paths
from mimir.mcp_server.tools.delegating import read_response
from mimir.mcp_server.tools.run_reading import find_visible_run, load_status
from mimir.mcp_server.tools.run_results import (
    WORKING,
    describe_planning,
    describe_run,
    is_working,
    list_open_questions,
)
from mimir.mcp_server.tools.tool_values import (
    EXECUTING,
    IncomingCall,
    Principal,
    ToolAnswer,
)
from mimir.store.protocol import ReadOps

TASKS = "io.modelcontextprotocol/tasks"
VERSION = "2026-07-28"
TTL_MS = 7 * 24 * 3_600_000
POLL_MS = 1_000
SLOW_POLL_MS = 3_000
"""Of a run that works for over a minute."""
Context = ServerRequestContext[Any, Any]


class TaskParams(RequestParams):
    """Parameters that name a task."""

    task_id: str = Field(alias="taskId", max_length=300)


class TaskUpdateParams(TaskParams):
    """Answers to the forms of a task."""

    input_responses: dict[str, Any] = Field(alias="inputResponses", default_factory=dict)


def has_tasks(context: Context) -> bool:
    """Return whether the client of a request declares tasks."""
    capabilities = context.session.client_capabilities
    extensions = (capabilities.extensions if capabilities else None) or {}
    return context.protocol_version == VERSION and TASKS in extensions


def has_forms(context: Context) -> bool:
    """Return whether the client of a request shows forms."""
    return context.protocol_version == VERSION and _declares_forms(context)


def can_ask(context: Context) -> bool:
    """Return whether the client shows forms that the server sends, as in earlier versions."""
    is_earlier = context.protocol_version != VERSION
    return is_earlier and _declares_forms(context) and context.session.can_send_request


def _declares_forms(context: Context) -> bool:
    capabilities = context.session.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None


def make_task(answer: ToolAnswer) -> dict[str, Any]:
    """Return the result that names a task instead of its outcome."""
    now = _format(SystemClock().now())
    return {
        "resultType": "task",
        "taskId": answer.task,
        "status": WORKING,
        "createdAt": now,
        "lastUpdatedAt": now,
        "ttlMs": TTL_MS,
        "pollIntervalMs": POLL_MS,
    }


class TaskMethods:
    """The methods `tasks/get`, `tasks/update` and `tasks/cancel`."""

    def __init__(self, project: ProjectAccess) -> None:
        self._project = project
        self._declined: set[str] = set()
        """Questions whose form the user has closed in this process; they stay open."""

    def register(self, server: Server[Any], find_call: Any) -> None:
        """Add the methods to a server; `find_call` makes the call of a request."""

        async def get(context: Context, params: TaskParams) -> dict[str, Any]:
            call = _require_call(context, find_call)
            return await self._get(context, call.principal, params.task_id)

        async def update(context: Context, params: TaskUpdateParams) -> dict[str, Any]:
            call = _require_call(context, find_call)
            await self._update(call, params)
            return {"resultType": "complete"}

        async def cancel(context: Context, params: TaskParams) -> dict[str, Any]:
            call = _require_call(context, find_call)
            await self._cancel(call.principal, params.task_id)
            return {"resultType": "complete"}

        server.extensions[TASKS] = {}
        server.add_request_handler("tasks/get", TaskParams, get)
        server.add_request_handler("tasks/update", TaskUpdateParams, update)
        server.add_request_handler("tasks/cancel", TaskParams, cancel)

    async def _get(self, context: Context, principal: Principal, id: str) -> dict[str, Any]:
        status = await self._load(principal, id)
        state, now = as_text(status.get("status")), SystemClock().now()
        questions = self._open_questions(status)
        seconds = status.get("elapsed_seconds")
        is_slow = isinstance(seconds, float) and seconds > 60
        task: dict[str, Any] = {
            "resultType": "complete",
            "taskId": id,
            "createdAt": _format(moment(as_text(status.get("started")))),
            "lastUpdatedAt": _format(now),
            "ttlMs": TTL_MS,
            "pollIntervalMs": SLOW_POLL_MS if is_slow else POLL_MS,
        }
        # The only end of a run that has no result for the model.
        if state == "cancelled":
            return {**task, "status": "cancelled"}
        if is_working(status, now, is_followed=id.endswith(EXECUTING)):
            return {**task, "status": WORKING}
        if state == "paused" and questions and has_forms(context):
            forms = {
                as_text(one["id"]): make_form(one).model_dump(by_alias=True, exclude_none=True)
                for one in questions[:MAX_FORMS]
            }
            return {**task, "status": "input_required", "inputRequests": forms}
        if status.get("kind") == "agent":
            read = partial(read_response, principal=principal, run=as_text(status.get("run")))
            content = await self._project.read(read)
            return {**task, "status": "completed", "result": _shape_result(content, state)}
        describe = describe_planning if status.get("kind") == "plan" else describe_run
        content = describe(status, is_served=False)
        return {**task, "status": "completed", "result": _shape_result(content, state)}

    async def _update(self, call: IncomingCall, params: TaskUpdateParams) -> None:
        status = await self._load(call.principal, params.task_id)
        # Answers to questions of other runs are left out.
        asked = [as_text(one["id"]) for one in self._open_questions(status)]
        given, left = read_responses(params.input_responses, asked)
        self._declined.update(left)
        if given:
            from mimir.mcp_server.tools.writing import close_questions

            await close_questions(call, given, transport=FORM)

    async def _cancel(self, principal: Principal, id: str) -> None:
        status = await self._load(principal, id)
        # A run that has ended stays as it is: a repeated call is no error.
        if as_text(status.get("status")) in ("running", "paused"):
            self._project.start(["cancel", as_text(status.get("run"))], principal.name)

    def _open_questions(self, status: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
        found = list_open_questions(as_objects(status.get("questions")))
        return [one for one in found if one["id"] not in self._declined]

    async def _load(self, principal: Principal, id: str) -> Mapping[str, object]:
        """Return the status of a task's run; a foreign id is answered like an unknown one."""
        run = id.removesuffix(EXECUTING)

        def look(reads: ReadOps, place: ProjectPlace) -> str:
            return find_visible_run(reads, place, principal, run)

        try:
            is_known = await self._project.read(look) == run
        except UsageError:
            is_known = False
        except MimirError as error:
            # The store is away: a client that polls must not forget its task.
            problem = hide_paths(str(error), self._project.directory)
            raise MCPError(INTERNAL_ERROR, problem) from None
        if not is_known:
            raise MCPError(INVALID_PARAMS, f"There is no task {id[:80]!r}.")
        status = await load_status(self._project, principal, run)
        # From its creation on, the executing run is the one that the task reports.
        executed = as_text(status.get("executed_by"))
        if id.endswith(EXECUTING) and executed:
            return await load_status(self._project, principal, executed)
        return status


def _shape_result(content: Mapping[str, object], state: str) -> dict[str, Any]:
    result = to_result(ToolAnswer(content=content, is_error=state == "failed"))
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


def _require_call(context: Context, find_call: Any) -> IncomingCall:
    # Earlier versions of the protocol have other methods with these names.
    if context.protocol_version != VERSION:
        raise MCPError(METHOD_NOT_FOUND, "Method not found")
    return find_call(context)


def _format(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
