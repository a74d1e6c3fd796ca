"""Tools of the set `delegation`: spawn an agent, follow it, read its answer, end it."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from mimir.agents.context.quotation import fence_block
from mimir.bootstrap.agents.invoke_options import list_options
from mimir.bootstrap.clock import SystemClock
from mimir.bootstrap.stored_project import ProjectPlace, StoredProject
from mimir.domain.json_value import as_object, as_objects, as_text
from mimir.errors import MimirError, ToolError
from mimir.mcp_server.tools.command_following import make_error, wait_for_end, wait_for_events
from mimir.mcp_server.tools.reading import PAGE_CHARS, POLL_SECONDS
from mimir.mcp_server.tools.run_reading import find_visible_run, load_status
from mimir.mcp_server.tools.run_results import WORKING, is_working
from mimir.mcp_server.tools.sessions.handles import find_session, keep_session, read_limits
from mimir.mcp_server.tools.sessions.session_tools import ENDED, require_subject
from mimir.mcp_server.tools.tool_values import IncomingCall, Principal, ToolAnswer
from mimir.orchestrator.delegation.rules import find_place
from mimir.orchestrator.sessions.limits import load_session
from mimir.store.protocol import ReadOps
from mimir.store.run_reading import load_run
from mimir.tools.secrets import Redactor

FOREGROUND = "foreground"
QUEUED = "queued"
_REFUSED = re.compile(r"Refused \((\w+)\): ")


async def spawn_agent(call: IncomingCall) -> ToolAnswer:
    """Invoke an agent for one task, in the session of the principal."""
    given, project = call.arguments, call.project
    session = await find_session(call, given.text("session"))
    inputs = [project.write_text(_require_text(given.text("task")))]
    # In files, as the request of a plan: a text is never read as an option or a path.
    words = ["invoke", "--json", *list_options(given.values)]
    if given.text("context"):
        inputs.append(project.write_text(given.text("context")))
        words.append(f"--context=@{_name(inputs[1], project.directory)}")
    # The address is no option, whatever it begins with.
    words += ["--", given.text("chatmode"), f"@{_name(inputs[0], project.directory)}"]
    started = project.start(words, call.principal.name, *inputs, session=session)
    try:
        run = await wait_for_events(project, started, call.wait)
    except MimirError as error:
        # The command names the limit at the beginning of its error.
        found = _REFUSED.match(str(error))
        if found is None:
            raise
        content = {"refused": found[1], "problem": str(error), "next": error.next_step or ""}
        return ToolAnswer(content=content, is_error=True)
    finally:
        started.forget_inputs()
    mode = given.text("mode", FOREGROUND)
    if mode != FOREGROUND:
        return await _acknowledge(call, run, mode)
    await wait_for_end(started, call.limit_wait(call.wait.seconds), run)
    if started.has_ended and not await _has_response(call, run):
        raise make_error(project, started)
    return await _describe(call, run, is_served=not started.has_ended)


async def _acknowledge(call: IncomingCall, run: str, mode: str) -> ToolAnswer:
    """Return the acknowledgement of an agent that works on without this call; it is no task."""
    described = await _describe(call, run, is_served=True)
    names = ("run", "session", "agent", "calls_left", "queue_position", "next")
    content = {name: described.content[name] for name in names if name in described.content}
    status = QUEUED if "queue_position" in content else WORKING
    return ToolAnswer(content={**content, "mode": mode, "status": status})


async def get_agent_output(call: IncomingCall) -> ToolAnswer:
    """Return the answer of an agent, or a part of its deliverables."""
    given = call.arguments
    load = partial(load_status, call.project, call.principal, require_subject(call))
    found, wait = await load(), call.limit_wait(0)
    while is_working(found, SystemClock().now(), is_followed=False) and await wait.rest(
        POLL_SECONDS
    ):
        await _keep_queue(call, found)
        found = await load()
    run = as_text(found.get("run"))
    part = given.text("part", "response")
    if part == "response":
        return await _describe(
            call, run, is_served=is_working(found, SystemClock().now(), is_followed=False)
        )
    text = await _load_part(call, run, part)
    offset = given.number("offset", 0)
    page = text[offset : offset + PAGE_CHARS]
    # Of a transcript, each page is quoted: models and tools wrote it.
    shown = fence_block(page) if part == "transcript" else page
    content: dict[str, object] = {"run": run, "text": shown, "characters": len(text)}
    if offset + len(page) < len(text):
        content["next"] = f"Call get_agent_output with offset {offset + len(page)}."
    return ToolAnswer(content=content)


async def list_available_chatmodes(call: IncomingCall) -> ToolAnswer:
    """Return the agent definitions that can be spawned."""
    # Imported here: the first answer of the server needs none of it.
    from mimir.bootstrap.agents.definition_files import open_agent_files
    from mimir.registry.listing import shape_entry

    given = call.arguments
    catalogue = open_agent_files(call.project.directory, call.project.load()).load()
    query = given.text("query").casefold()
    found: list[dict[str, object]] = []
    for entry in catalogue.entries:
        # Another definition answers to its name.
        if entry.hidden_by:
            continue
        shape = shape_entry(entry)
        if query in f"{shape['address']} {shape['description']}".casefold():
            tools, model = as_object(shape["tools"]), as_object(shape["model"])
            kept = {name: shape[name] for name in _LISTED}
            findings = [one.get("message") for one in as_objects(shape["findings"])]
            shown = {"tools": tools.get("granted"), "model": model.get("used")}
            found.append({**kept, **shown, "findings": findings})
    offset, limit = given.number("offset", 0), given.number("limit", 50)
    page = found[offset : offset + limit]
    return ToolAnswer(content={"chatmodes": page, "omitted": len(found) - len(page)})


_LISTED = ("address", "description", "kind", "trusted", "usable")


async def _keep_queue(call: IncomingCall, status: Mapping[str, object]) -> None:
    """Start the invocations that may leave the queue of a run: no process may watch it."""
    if status.get("queued") is not True:
        return
    run = as_text(status.get("run"))
    await keep_session(
        call, await call.project.read(lambda reads, _: load_run(reads, run).session_id)
    )


async def _describe(call: IncomingCall, run: str, *, is_served: bool) -> ToolAnswer:
    """Return the response of an invocation, with its session and the calls that are left."""
    content = await call.project.read(
        partial(read_response, principal=call.principal, run=run, calls=read_limits(call).calls)
    )
    if content.get("status") == QUEUED:
        names = ("run", "session", "agent", "calls_left", "status", "queue_position")
        content = {
            **{name: content.get(name) for name in names},
            "next": f'Call get_agent_output with session_id "{run}" and wait_seconds 45.',
        }
        return ToolAnswer(content=content, task=run)
    if is_served and as_text(content.get("status")) not in ENDED:
        content = {
            **{name: content.get(name) for name in ("run", "session", "agent", "calls_left")},
            "status": WORKING,
            "next": f'Call get_agent_output with session_id "{run}" and wait_seconds 45.',
        }
        return ToolAnswer(content=content, task=run)
    return ToolAnswer(content=content, is_error=content.get("status") == "failed")


def read_response(
    reads: ReadOps, place: ProjectPlace, principal: Principal, run: str, calls: int = 0
) -> Mapping[str, object]:
    """Return the `AgentResponse` of an invocation, with its session and place in the queue.

    `calls` is the limit of the session; 0: the calls that are left are not named.
    """
    from mimir.orchestrator.delegation.stored_response import load_response

    id = find_visible_run(reads, place, principal, run)
    record = load_run(reads, id)
    if record.kind != "agent":
        raise ToolError(f"{id} is not an invocation.", next_step=f'Call status with run "{id}".')
    dead = place.find_dead()
    shown = record.shown_status(reads.now(), dead)
    response = load_response(reads, id, shown, place.now, ())
    if not record.session_id:
        return response
    session = load_session(reads, place.id, record.session_id, dead)
    left = {"calls_left": max(0, calls - len(session))} if calls else {}
    position = find_place(session, id)
    queued = {"status": QUEUED, "queue_position": position} if position else {}
    return {**response, "session": record.session_id, **left, **queued}


async def _has_response(call: IncomingCall, run: str) -> bool:
    status = await load_status(call.project, call.principal, run)
    return as_text(status.get("status")) in (*ENDED, "paused")


async def _load_part(call: IncomingCall, run: str, part: str) -> str:
    if part == "diff":
        from mimir.orchestrator.runs.browsing import find_trees
        from mimir.orchestrator.runs.subjects import Subject

        trees = await call.project.read(lambda reads, _: find_trees(reads, Subject(run=run)))
        place = await call.project.read(lambda _, place: place)
        return await place.diff(*trees) if all(trees) else ""

    if part == "transcript":
        from mimir.orchestrator.delegation.transcript_text import read_transcript

        redact = Redactor(call.project.load().secrets)
        return redact(await call.project.read(lambda reads, _: read_transcript(reads, run)))

    async def load(opened: StoredProject) -> str:
        return await opened.report_files().read(run)

    return await call.project.use_store(load)


def _require_text(task: str) -> str:
    if not task.strip():
        raise ToolError("The task is empty.", next_step="Write the task of the agent.")
    return task


def _name(path: Path, project: Path) -> str:
    return str(path.relative_to(project))
