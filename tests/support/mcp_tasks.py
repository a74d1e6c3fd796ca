"""The tasks extension on the side of a client of the library."""

from typing import Any, Literal

from mcp.client.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp_types import CallToolResult, Request, Result
from pydantic import ConfigDict, Field


class TaskState(Result):
    """Any result of a method of the extension."""

    model_config = ConfigDict(extra="allow")


class NamedTask(Result):
    """The result that names a task."""

    result_type: Literal["task"] = "task"
    task_id: str = Field(alias="taskId")
    status: str


async def _resolve(task: NamedTask, _: ClaimContext) -> CallToolResult:
    return CallToolResult(content=[], structured_content={"taskId": task.task_id})


class TaskClient(ClientExtension):
    """Declares tasks, and hands the id of a task to the test."""

    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> list[ResultClaim[Any]]:
        """Return the claim of results that name a task."""
        return [ResultClaim(result_type="task", model=NamedTask, resolve=_resolve)]


async def ask_task(client: Client, verb: str, task: str, **more: object) -> dict[str, Any]:
    """Send `tasks/get`, `tasks/update` or `tasks/cancel`."""
    request = Request[dict[str, Any], str](method=f"tasks/{verb}", params={"taskId": task, **more})
    state = await client.session.send_request(request, TaskState)
    return state.model_dump(by_alias=True)
