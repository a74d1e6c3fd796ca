"""The protocol server: lists and calls tools for a principal."""

import json
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
    ToolAnnotations,
)

from mimir.domain.message import ToolSpec
from mimir.mcp_server.messages import describe_error, log, to_result
from mimir.mcp_server.project_access import ProjectAccess
from mimir.mcp_server.tools.tool_values import (
    IncomingCall,
    Principal,
    ServedTool,
    ToolAnswer,
    WaitLimit,
)
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
        self._project = project
        self._tools = {tool.name: tool for tool in tools}
        self._find_principal = find_principal
        self._wait_seconds = wait_seconds

    def make(self) -> Server[Any]:
        """Return the server of the library."""
        return Server(
            "mimir",
            version=version("mimir"),
            instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
        )

    async def list_tools(
        self, context: Context, _: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """Return the tools that the principal may call, always in the same order."""
        principal = self._find_principal(context)
        listed = [
            describe_tool(tool) for tool in self._tools.values() if principal.has_any(tool.scopes)
        ]
        return ListToolsResult(tools=listed, ttl_ms=TTL_MS, cache_scope="private")

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        """Call one tool; its errors are results."""
        principal = self._find_principal(context)
        tool = self._tools.get(params.name)
        if tool is None or not principal.has_any(tool.scopes):
            # A tool outside of the scopes is answered like an unknown one.
            known = [one.name for one in self._tools.values() if principal.has_any(one.scopes)]
            raise MCPError(
                INVALID_PARAMS,
                f"There is no tool {params.name[:80]!r} for you. Tools: {', '.join(known)}.",
            )
        call = IncomingCall(
            arguments=ToolArguments({}),
            principal=principal,
            project=self._project,
            wait=self._limit_wait(context),
        )
        return to_result(await _answer(tool, call, params.arguments or {}))

    def _limit_wait(self, context: Context) -> WaitLimit:
        meta = context.meta or {}
        has_progress = meta.get("progress_token") is not None
        seconds = PROGRESS_WAIT_SECONDS if has_progress else self._wait_seconds

        async def report(elapsed: float, message: str) -> None:
            await context.session.report_progress(elapsed, None, message)

        return WaitLimit(seconds=seconds, report=report)


async def _answer(tool: ServedTool, call: IncomingCall, given: dict[str, object]) -> ToolAnswer:
    spec = ToolSpec(name=tool.name, description="", input_schema=tool.input_schema)
    try:
        arguments = parse_arguments(json.dumps(given), spec)
        return await tool.handle(
            IncomingCall(
                arguments=arguments, principal=call.principal, project=call.project, wait=call.wait
            )
        )
    except Exception as error:  # noqa: BLE001  the boundary of a call: every error becomes a result
        found = describe_error(error, call)
        # The place, not the text: a text of a library may hold secrets.
        where = traceback.extract_tb(error.__traceback__)[-1]
        log(
            "refused",
            tool=tool.name,
            principal=call.principal.name,
            problem=found.content.get("problem"),
            place=f"{where.name}:{where.lineno}",
        )
        return found


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
