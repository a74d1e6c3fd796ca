"""Tools `open_session`, `get_agent_status` and `terminate_agent`."""

from collections.abc import Mapping

from mimir.bootstrap.stored_project import ProjectPlace
from mimir.domain import money
from mimir.domain.json_value import NO_MEMBERS, as_objects, as_text, as_whole_number
from mimir.domain.run import RunBudget
from mimir.errors import ToolError
from mimir.mcp_server.tools.command_following import wait_for_end
from mimir.mcp_server.tools.run_reading import load_status
from mimir.mcp_server.tools.run_results import list_open_questions
from mimir.mcp_server.tools.sessions.handles import find_session, keep_session, read_limits
from mimir.mcp_server.tools.tool_values import IncomingCall, ToolAnswer
from mimir.orchestrator.delegation.rules import find_place
from mimir.orchestrator.sessions.limits import load_session
from mimir.store.protocol import ReadOps
from mimir.store.run_reading import load_run
from mimir.tools.calls.arguments import ToolArguments

ENDED = ("completed", "answered", "failed", "cancelled")
_SESSION = "s-"
"""Beginning of the handle of a session."""


def read_subject(call: IncomingCall) -> str:
    """Return the run or session that a call names; empty: none."""
    given = call.arguments
    names = {name for name in (given.text("session_id"), given.text("run")) if name}
    if len(names) > 1:
        raise ToolError("session_id and run name different things.", next_step="Give one of them.")
    return next(iter(names), "")


def require_subject(call: IncomingCall) -> str:
    """Return the run or session that a call names."""
    if named := read_subject(call):
        return named
    raise ToolError("The call names no run.", next_step='Give session_id "agent-…".')


async def open_session(call: IncomingCall) -> ToolAnswer:
    """Open a session of the principal."""
    # Imported here: the first answer of the server needs none of it.
    from mimir.bootstrap import app

    given, project = call.arguments, call.project
    if not given.text("name").strip():
        raise ToolError("The name is empty.", next_step="Name the purpose of the session.")
    async with app.open(project.directory, project.load()) as mimir:
        session = await mimir.open_session(
            given.text("name"),
            principal=call.principal.name,
            chat=given.text("chat"),
            budget=_read_budget(given),
        )
    return ToolAnswer(content={"session": session, "limits": _describe_limits(call)})


def _read_budget(given: ToolArguments) -> RunBudget:
    # Read from its text: a binary fraction is no exact amount.
    cost = money.read_amount(str(given.values["max_cost"])) if given.has("max_cost") else None
    if cost is None and given.has("max_cost"):
        raise ToolError("max_cost is no plausible amount.", next_step="Give it such as 2.5.")
    return RunBudget(
        max_calls=as_whole_number(given.values.get("max_calls")),
        max_tokens=as_whole_number(given.values.get("max_tokens")),
        max_cost=cost,
    )


async def get_agent_status(call: IncomingCall) -> ToolAnswer:
    """Return the state of one invocation, or of a session."""
    named = read_subject(call)
    if named and not named.startswith(_SESSION):
        status = await load_status(call.project, call.principal, named)
        return ToolAnswer(content={**_describe_state(status), **await _find_place(call, status)})
    session = await find_session(call, named)
    await keep_session(call, session)
    limits = read_limits(call)
    from mimir.orchestrator.sessions.shape import shape_session

    def look(reads: ReadOps, place: ProjectPlace) -> Mapping[str, object]:
        return shape_session(reads, place.id, session, place.find_dead(), limits)

    return ToolAnswer(content=await call.project.read(look))


async def terminate_agent(call: IncomingCall) -> ToolAnswer:
    """Cancel an invocation, or the open ones of a session; ended ones do not change."""
    named = require_subject(call)
    if named.startswith(_SESSION):
        return await _terminate_session(call, named)
    status = await load_status(call.project, call.principal, named)
    run, state = as_text(status.get("run")), as_text(status.get("status"))
    if status.get("kind") != "agent":
        raise ToolError(f"{run} is not an invocation.", next_step=f"The user: mimir cancel {run}")
    if state not in ENDED:
        started = call.project.start(["cancel", run, "--json"], call.principal.name)
        await wait_for_end(started, call.wait, run)
        status = await load_status(call.project, call.principal, run)
        state = as_text(status.get("status"))
    return ToolAnswer(content={"run": run, "status": state}, is_error=state not in ENDED)


async def _terminate_session(call: IncomingCall, session: str) -> ToolAnswer:
    from mimir.bootstrap import app

    project, name = call.project, call.principal.name
    # A process of the server may have no invocation yet.
    if session == call.principal.session and not await _has_calls(call, session):
        return ToolAnswer(content={"session": session, "status": "cancelled", "cancelled": []})
    async with app.open(project.directory, project.load(), create=False) as mimir:
        ended = await mimir.cancel_session(session, name)
    content = {"session": session, "status": "cancelled", "cancelled": list(ended)}
    return ToolAnswer(content=content)


async def _has_calls(call: IncomingCall, session: str) -> bool:
    def look(reads: ReadOps, place: ProjectPlace) -> bool:
        return bool(load_session(reads, place.id, session, ()))

    return await call.project.read(look)


async def _find_place(call: IncomingCall, status: Mapping[str, object]) -> Mapping[str, object]:
    """Return the place in the queue as a member of a status; empty: it does not wait."""
    if status.get("queued") is not True:
        return {}
    run = as_text(status.get("run"))

    def look(reads: ReadOps, place: ProjectPlace) -> tuple[str, int]:
        session = load_run(reads, run).session_id
        return session, find_place(load_session(reads, place.id, session, place.find_dead()), run)

    session, position = await call.project.read(look)
    await keep_session(call, session)
    return {"status": "queued", "queue_position": position} if position else {}


def _describe_limits(call: IncomingCall) -> Mapping[str, object]:
    limits = read_limits(call)
    return {
        "calls": limits.calls,
        "active": limits.active,
        "refinements": limits.refinements,
        "depth": limits.depth,
        "calls_per_day": limits.per_day,
    }


def _describe_state(status: Mapping[str, object]) -> dict[str, object]:
    task = next(iter(as_objects(status.get("tasks"))), NO_MEMBERS)
    return {
        **{name: status.get(name) for name in ("run", "status", "message", "tokens", "cost")},
        "phase": task.get("status"),
        "elapsed": status.get("elapsed_seconds"),
        "tool_calls": task.get("tool_calls"),
        "tool_call_limit": task.get("limit"),
        "questions": list_open_questions(as_objects(status.get("questions"))),
    }
