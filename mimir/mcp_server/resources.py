"""Resources and prompts of the server: runs, inbox, ledger, agents and the guide."""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

from mimir.bootstrap.stored_project import ProjectPlace, StoredProject
from mimir.errors import MimirError, UsageError
from mimir.mcp_server.guide import DELEGATION_GUIDE, PROMPTS, fill_prompt
from mimir.mcp_server.project_access import hide_paths
from mimir.mcp_server.tools.run_reading import find_visible_run, read_visible_inbox
from mimir.mcp_server.tools.tool_values import IncomingCall
from mimir.store.protocol import ReadOps

Context = ServerRequestContext[Any, Any]
FindCall = Callable[[Context], IncomingCall]
Read = Callable[[IncomingCall, str], Awaitable[str]]

MAX_CHARS = 200_000
"""Longest text of a resource; the rest of a diff is in the project."""
MARKDOWN = "text/markdown"
JSON = "application/json"


async def _read_report(call: IncomingCall, name: str) -> str:
    async def load(opened: StoredProject) -> str:
        run = await opened.store.read(
            lambda reads: find_visible_run(reads, opened, call.principal, name)
        )
        return await opened.report_files().read(run)

    return await call.project.use_store(load)


async def _read_plan(call: IncomingCall, name: str) -> str:
    # Imported here: the first answer of the server needs none of it.
    from mimir.planning.renderer import render
    from mimir.store.operations.record_loading import decode_plan, load_run_with_plan

    def look(reads: ReadOps, place: ProjectPlace) -> str:
        run = load_run_with_plan(reads, find_visible_run(reads, place, call.principal, name))
        if run.kind == "plan":
            raise UsageError(f"Run {run.id} makes a plan; it has none of its own.")
        return render(decode_plan(run))

    return await call.project.read(look)


async def _read_diff(call: IncomingCall, name: str) -> str:
    from mimir.orchestrator.runs.browsing import find_trees
    from mimir.orchestrator.runs.subjects import Subject

    def look(reads: ReadOps, place: ProjectPlace) -> tuple[ProjectPlace, str, str]:
        run = find_visible_run(reads, place, call.principal, name)
        return place, *find_trees(reads, Subject(run=run))

    # The trees are in the store; git alone has the differences between them.
    place, before, after = await call.project.read(look)
    return await place.diff(before, after) if before and after else ""


async def _read_inbox(call: IncomingCall, _: str) -> str:
    found = await call.project.read(
        lambda reads, place: read_visible_inbox(reads, place, call.principal, every=False)
    )
    return json.dumps(found, ensure_ascii=False, indent=2)


async def _read_ledger(call: IncomingCall, _: str) -> str:
    from mimir.orchestrator.patterns.ledger import render

    # It lists runs of every principal.
    if call.principal.is_token:
        raise UsageError("The ledger is not for tokens.")

    async def load(opened: StoredProject) -> str:
        return render(await opened.read_ledger(None))

    return await call.project.use_store(load)


async def _read_agent(call: IncomingCall, name: str) -> str:
    from mimir.bootstrap.agents.definition_files import open_agent_files
    from mimir.registry.listing import shape_definition, shape_entry

    entry = open_agent_files(call.project.directory, call.project.load()).load().find(name)
    shape = {**shape_entry(entry), **shape_definition(entry.definition)}
    return json.dumps(shape, ensure_ascii=False, indent=2, default=str)


async def _read_guide(_: IncomingCall, __: str) -> str:
    return DELEGATION_GUIDE


FIXED: dict[str, tuple[str, str, Read]] = {
    "mimir://inbox": ("Open questions to the user", JSON, _read_inbox),
    "mimir://ledger": ("Ledger of the latest run", MARKDOWN, _read_ledger),
    "mimir://guide/delegation": ("When and how to delegate work", MARKDOWN, _read_guide),
}
TEMPLATES: dict[str, tuple[str, str, Read]] = {
    "mimir://runs/{run}/report": ("Report of a run", MARKDOWN, _read_report),
    "mimir://runs/{run}/plan": ("Plan of a run", MARKDOWN, _read_plan),
    "mimir://runs/{run}/diff": ("Changes of a run", "text/x-diff", _read_diff),
    "mimir://agents/{address}": ("Definition of an agent", JSON, _read_agent),
}


class ServedResources:
    """Resources and prompts for one server."""

    def __init__(self, find_call: FindCall) -> None:
        self._find_call = find_call

    def register(self, server: Server[Any]) -> None:
        """Add the methods to a server."""
        page = PaginatedRequestParams
        server.add_request_handler("resources/list", page, self._list)
        server.add_request_handler("resources/templates/list", page, self._list_templates)
        server.add_request_handler("resources/read", ReadResourceRequestParams, self._read)
        server.add_request_handler("prompts/list", page, self._list_prompts)
        server.add_request_handler("prompts/get", GetPromptRequestParams, self._get_prompt)

    async def _list(self, context: Context, _: PaginatedRequestParams) -> ListResourcesResult:
        # Every listed resource can be read.
        is_token = self._find_call(context).principal.is_token
        shown = {
            uri: one for uri, one in FIXED.items() if not (is_token and one[2] is _read_ledger)
        }
        return ListResourcesResult(
            resources=[
                Resource(uri=uri, name=uri.removeprefix("mimir://"), title=title, mime_type=kind)
                for uri, (title, kind, _) in shown.items()
            ]
        )

    async def _list_templates(
        self, _: Context, __: PaginatedRequestParams
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(
            resource_templates=[
                ResourceTemplate(
                    uri_template=uri, name=uri.removeprefix("mimir://"), title=title, mime_type=kind
                )
                for uri, (title, kind, _) in TEMPLATES.items()
            ]
        )

    async def _read(
        self, context: Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        call = self._find_call(context)
        # Without the scope, a resource is answered like an unknown one.
        kind, read, name = _find_reader(params.uri)
        if read is None or "read" not in call.principal.scopes:
            raise MCPError(INVALID_PARAMS, f"There is no resource {params.uri[:200]!r}.")
        try:
            text = await read(call, name)
        except (MimirError, OSError) as error:
            shown = str(error) if isinstance(error, MimirError) else "It cannot be read."
            problem = hide_paths(shown, call.project.directory)
            raise MCPError(INVALID_PARAMS, problem[:2_000]) from None
        text = hide_paths(text, call.project.directory)
        if len(text) > MAX_CHARS:
            text = f"{text[:MAX_CHARS]}\n… {len(text) - MAX_CHARS:,} more characters\n"
        return ReadResourceResult(
            contents=[TextResourceContents(uri=params.uri, mime_type=kind, text=text)]
        )

    async def _list_prompts(self, _: Context, __: PaginatedRequestParams) -> ListPromptsResult:
        return ListPromptsResult(
            prompts=[
                Prompt(
                    name=name,
                    description=description,
                    arguments=[PromptArgument(name=argument, required=True)],
                )
                for name, (description, argument, _) in PROMPTS.items()
            ]
        )

    async def _get_prompt(self, _: Context, params: GetPromptRequestParams) -> GetPromptResult:
        found = PROMPTS.get(params.name)
        if found is None:
            known = ", ".join(PROMPTS)
            raise MCPError(
                INVALID_PARAMS, f"There is no prompt {params.name[:80]!r}. Prompts: {known}."
            )
        description, argument, __ = found
        value = (params.arguments or {}).get(argument, "")
        if not value.strip():
            raise MCPError(INVALID_PARAMS, f"The prompt {params.name} needs {argument}.")
        text = fill_prompt(params.name, value)
        message = PromptMessage(role="user", content=TextContent(type="text", text=text))
        return GetPromptResult(description=description, messages=[message])


def find_run_of(uri: str) -> str:
    """Return the run that the address of a resource names; empty: it names none."""
    _, __, name = _find_reader(uri)
    return name if uri.startswith("mimir://runs/") else ""


def _find_reader(uri: str) -> tuple[str, Read | None, str]:
    """Return type, reader and name of a resource; without a reader there is none."""
    if uri in FIXED:
        _, kind, read = FIXED[uri]
        return kind, read, ""
    for template, (_, kind, read) in TEMPLATES.items():
        before, _, rest = template.partition("{")
        after = rest.partition("}")[2]
        # The address of an agent may have slashes, the id of a run has none.
        inner = "[^/]+" if after else ".+"
        found = re.fullmatch(f"{re.escape(before)}({inner}){re.escape(after)}", uri)
        if found:
            return kind, read, unquote(found[1])
    return "", None, ""
