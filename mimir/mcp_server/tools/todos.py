"""Tools of the set `todo`: each works in one transaction of the store."""

from collections.abc import Callable
from functools import partial
from importlib.metadata import version

from mimir.bootstrap.clock import RandomIds
from mimir.bootstrap.stored_project import ProjectPlace
from mimir.errors import ToolError, UsageError
from mimir.mcp_server.tools.tool_values import IncomingCall, ToolAnswer
from mimir.orchestrator.todos import lists, locks
from mimir.orchestrator.todos.lists import TodoList
from mimir.store.protocol import WriteOps
from mimir.tools.secrets import Redactor

MAIN = "main"
"""List of a call that names none."""
MINUTES = 30
"""Length of a lock that names none."""


async def create_todo(call: IncomingCall) -> ToolAnswer:
    """Add a todo to a list, which its first todo creates."""
    given, redact = call.arguments, Redactor(call.project.load().secrets)
    title = " ".join(redact(given.text("title")).split())
    if not title:
        raise ToolError("The title is empty.", next_step="Write a title for the item.")
    add = partial(
        lists.add_todo,
        run=RandomIds().new("run"),
        title=title,
        text=redact(given.text("text")).strip(),
    )
    try:
        return await _write(call, add)
    except UsageError:
        # The first todo of a new project creates its store.
        from mimir.bootstrap import app

        async with app.open(call.project.directory, call.project.load()):
            pass
        return await _write(call, add)


async def list_todos(call: IncomingCall) -> ToolAnswer:
    """Return the todos of a list."""
    every = call.arguments.values.get("all") is True
    found = await call.project.read(
        lambda reads, place: lists.list_todos(reads, _name_list(call, place), every=every)
    )
    return ToolAnswer(content=found)


async def lock_todo(call: IncomingCall) -> ToolAnswer:
    """Lock a todo, or extend its lock."""
    given = call.arguments
    minutes = given.number("minutes", MINUTES)
    # On standard input, each process of the server has a session of its own.
    owner = "/".join(filter(None, (call.principal.name, call.principal.session)))
    todo = given.text("todo")
    if given.has("fence"):
        if not todo:
            raise ToolError("A fence needs its todo.", next_step='Give todo "todo-…".')
        fence = given.number("fence", 0)
        return await _write(
            call,
            partial(locks.extend_lock, todo=todo, fence=fence, owner=owner, minutes=minutes),
        )
    return await _write(call, partial(locks.lock_todo, todo=todo, owner=owner, minutes=minutes))


async def complete_todo(call: IncomingCall) -> ToolAnswer:
    """Mark a locked todo as done."""
    given, redact = call.arguments, Redactor(call.project.load().secrets)
    return await _write(
        call,
        partial(
            locks.complete_todo,
            todo=given.text("todo"),
            fence=given.number("fence", 0),
            note=redact(given.text("note")),
        ),
    )


async def release_todo(call: IncomingCall) -> ToolAnswer:
    """End the lock of a todo."""
    given = call.arguments
    return await _write(
        call,
        partial(locks.release_todo, todo=given.text("todo"), fence=given.number("fence", 0)),
    )


async def _write(
    call: IncomingCall, work: Callable[[WriteOps, TodoList], dict[str, object]]
) -> ToolAnswer:
    content = await call.project.use_store(
        lambda opened: opened.store.write(lambda ops: work(ops, _name_list(call, opened)))
    )
    return ToolAnswer(content=content)


def _name_list(call: IncomingCall, place: ProjectPlace) -> TodoList:
    name = call.arguments.text("list", MAIN).strip()
    if not name or not name.isprintable():
        raise ToolError("The name of the list is empty or not printable.", next_step="Give a name.")
    return TodoList(
        name=name,
        project_id=place.id,
        project_name=place.directory.name,
        principal=call.principal.name,
        engine_version=version("mimir"),
    )
