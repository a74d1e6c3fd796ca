"""The protocol server: lists and calls tools for a principal."""

import asyncio
import json
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    ElicitRequest,
    ElicitResult,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
    ToolAnnotations,
)

from mimir.bootstrap.clock import SystemClock
from mimir.bootstrap.stored_project import find_place
from mimir.domain.json_value import as_object, as_text
from mimir.domain.message import ToolSpec
from mimir.errors import UnavailableError
from mimir.mcp_server.elicitation import (
    FORM,
    MAX_FORMS,
    make_form,
    read_responses,
    read_state,
    request_forms,
)
from mimir.mcp_server.messages import describe_error, log, to_result
from mimir.mcp_server.preloading import IDLE_SECONDS, import_handlers
from mimir.mcp_server.project_access import ProjectAccess
from mimir.mcp_server.resources import ServedResources
from mimir.mcp_server.state_key import load_key
from mimir.mcp_server.subscriptions import ServedSubscriptions
from mimir.mcp_server.tasks import TaskMethods, can_ask, has_forms, has_tasks, make_task
from mimir.mcp_server.tools.tool_values import (
    ANSWER_SECONDS,
    CALL_SECONDS,
    IncomingCall,
    Principal,
    ServedTool,
    ToolAnswer,
    WaitLimit,
)
from mimir.settings.state_directory import find_state_directory
from mimir.tools.calls.arguments import ToolArguments, parse_arguments

Context = ServerRequestContext[Any, Any]
FindPrincipal = Callable[[Context], Principal]

TTL_MS = 300_000
PROGRESS_WAIT_SECONDS = 600.0
"""Longest wait of a call whose client listens to its progress."""
INSTRUCTIONS = (
    "mimir plans and executes work on this project and proves results. Call plan, then execute, "
    "then report. A call that takes long returns a run: call status with it. Questions are for the user."
)


class ProtocolServer:
    """Tools of one project, served to the principals of one transport."""

    def __init__(
        self,
        project: ProjectAccess,
        tools: Sequence[ServedTool],
        find_principal: FindPrincipal,
        *,
        wait_seconds: float,
    ) -> None:
        self._tasks = TaskMethods(project)
        self._key = load_key(find_state_directory(find_place(project.directory).id))
        self._project = project
        self._tools = {tool.name: tool for tool in tools}
        self._find_principal = find_principal
        self._wait_seconds = wait_seconds
        self._preloading: asyncio.Task[None] | None = None

    def make(self) -> Server[Any]:
        """Return the server of the library."""
        server = Server[Any](
            "mimir",
            version=version("mimir"),
            instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools,
        )
        server.add_request_handler("tools/call", CallToolRequestParams, self.call_tool)
        self._tasks.register(server, self._find_call)
        ServedResources(self._find_call).register(server)
        ServedSubscriptions(self._find_call).register(server)
        security = RequestStateSecurity(keys=[self._key], bind_principal=self._name_principal)
        server.middleware.append(RequestStateBoundary(security, default_audience="mimir"))
        return server

    async def list_tools(
        self, context: Context, _: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """Return the tools that the principal may call, always in the same order."""
        self._preloading = self._preloading or asyncio.create_task(_preload())
        principal = self._find_principal(context)
        listed = [
            describe_tool(tool) for tool in self._tools.values() if principal.has_any(tool.scopes)
        ]
        return ListToolsResult(tools=listed, ttl_ms=TTL_MS, cache_scope="private")

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> HandlerResult:
        """Call one tool; its errors are results.

        A client with tasks gets a task for work that continues, one with forms those of questions.
        """
        call = self._find_call(context)
        tool = self._tools.get(params.name)
        if tool is None or not call.principal.has_any(tool.scopes):
            # A tool outside of the scopes is answered like an unknown one.
            known = [one.name for one in self._tools.values() if call.principal.has_any(one.scopes)]
            raise MCPError(
                INVALID_PARAMS,
                f"There is no tool {params.name[:80]!r} for you. Tools: {', '.join(known)}.",
            )
        # The second part of a call that asked for forms.
        if params.input_responses is not None:
            shown = params.model_dump(by_alias=True, mode="json", exclude_none=True)
            responses = as_object(shown.get("inputResponses"))
            asked = read_state(params.request_state)
            return to_result(await _take_forms(tool, call, responses, asked))
        answer = await _answer(tool, call, params.arguments or {})
        if answer.task and has_tasks(context):
            return make_task(answer)
        if answer.forms and has_forms(context):
            return request_forms(answer.forms)
        if answer.forms and can_ask(context):
            asked = [as_text(one["id"]) for one in answer.forms]
            responses = await self._send_forms(context, answer.forms)
            return to_result(await _take_forms(tool, call, responses, asked))
        return to_result(answer)

    async def _send_forms(
        self, context: Context, questions: Sequence[Mapping[str, object]]
    ) -> dict[str, object]:
        """Show forms one after another until the time of a call is over."""
        responses: dict[str, object] = {}
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wait_seconds):
                for one in questions[:MAX_FORMS]:
                    form = make_form(one).params
                    found = await context.session.send_request(
                        ElicitRequest(params=form),
                        ElicitResult,
                        metadata=ServerMessageMetadata(related_request_id=context.request_id),
                    )
                    responses[as_text(one["id"])] = found.model_dump(mode="json")
        return responses

    def _find_call(self, context: Context) -> IncomingCall:
        return IncomingCall(
            arguments=ToolArguments({}),
            principal=self._find_principal(context),
            project=self._project,
            wait=self._limit_wait(context),
        )

    def _name_principal(self, context: Context) -> str:
        return self._find_principal(context).name

    def _limit_wait(self, context: Context) -> WaitLimit:
        meta = context.meta or {}
        has_progress = meta.get("progress_token") is not None
        wanted = min(self._wait_seconds, CALL_SECONDS - ANSWER_SECONDS)
        seconds = PROGRESS_WAIT_SECONDS if has_progress else wanted
        # A client with tasks polls: it gets the task as soon as the run exists.
        seconds = 0.0 if has_tasks(context) else seconds
        clock = SystemClock()

        async def report(elapsed: float, message: str) -> None:
            await context.session.report_progress(elapsed, None, message)

        return WaitLimit(seconds=seconds, report=report, clock=clock, arrived=clock.monotonic())


async def _preload() -> None:
    await asyncio.sleep(IDLE_SECONDS)
    await asyncio.to_thread(import_handlers)


async def _answer(tool: ServedTool, call: IncomingCall, given: dict[str, object]) -> ToolAnswer:
    """Check the arguments and call the handler; errors become an answer."""
    spec = ToolSpec(name=tool.name, description="", input_schema=tool.input_schema)

    async def work() -> ToolAnswer:
        arguments = parse_arguments(json.dumps(given), spec, is_exact=True)
        return await tool.handle(replace(call, arguments=arguments))

    return await _describe_errors(tool, call, work)


async def _take_forms(
    tool: ServedTool, call: IncomingCall, responses: Mapping[str, object], asked: Sequence[str]
) -> ToolAnswer:
    """Take the forms that the user filled in for the asked questions."""
    given, left = read_responses(responses, asked)

    async def work() -> ToolAnswer:
        from mimir.mcp_server.tools.writing import close_questions

        content = await close_questions(call, given, transport=FORM)
        return ToolAnswer(content={**content, "left_open": left})

    return await _describe_errors(tool, call, work)


async def end_in_time(work: Callable[[], Awaitable[ToolAnswer]], seconds: float) -> ToolAnswer:
    """Do the work of a call; a lost store would be waited for longer than a client waits.

    Raises:
        UnavailableError: The time is over.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await work()
    except TimeoutError:
        if not limit.expired():
            raise
        raise UnavailableError(
            "The call took too long; the store may be away.",
            next_step="Call status: the started work continues.",
        ) from None


async def _describe_errors(
    tool: ServedTool, call: IncomingCall, work: Callable[[], Awaitable[ToolAnswer]]
) -> ToolAnswer:
    try:
        answer = await end_in_time(work, max(CALL_SECONDS, call.wait.seconds + ANSWER_SECONDS))
    except Exception as error:  # noqa: BLE001  the boundary of a call: every error becomes a result
        found = describe_error(error, call)
        # The place, not the text: a text of a library may hold secrets.
        where = traceback.extract_tb(error.__traceback__)[-1]
        log(
            "refused",
            "warning",
            tool=tool.name,
            principal=call.principal.name,
            problem=found.content.get("problem"),
            place=f"{where.name}:{where.lineno}",
        )
        return found
    named: dict[str, Any] = {
        name: answer.content[name] for name in ("run", "session") if name in answer.content
    }
    log("called", tool=tool.name, principal=call.principal.name, **named)
    return answer


def describe_tool(tool: ServedTool) -> Tool:
    """Return a tool as it is listed."""
    return Tool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(tool.input_schema),
        output_schema=dict(tool.output_schema),
        annotations=ToolAnnotations(
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_idempotent,
            open_world_hint=tool.reaches_out,
        ),
    )
