"""The tool set `todo`: a list of work that several clients share, with locks."""

from mimir.mcp_server.tools.sets.declarations import (
    FLAG,
    arguments_of,
    import_later,
    read_tool,
    result_of,
    text,
    whole,
    work_tool,
)
from mimir.mcp_server.tools.tool_values import ServedTool

_LIST = text("Name of the list; default: main.", 60, 1)
_TODO = text("Id of a todo.", 40, 1)
_FENCE = {**whole(), "description": "From lock_todo."}
_RESULT = result_of(list="string", todo="string", status="string", next="string")

TODOS: tuple[ServedTool, ...] = (
    work_tool(
        "create_todo",
        "Add a todo to a list.",
        import_later("todos", "create_todo"),
        arguments_of("title", title=text(most=200, least=1), text=text(most=4_000), list=_LIST),
        _RESULT,
        is_idempotent=False,
    ),
    read_tool(
        "list_todos",
        "Todos of a list: open, locked or done. Done is the word of a client, not proof.",
        import_later("todos", "list_todos"),
        arguments_of(list=_LIST, all={**FLAG, "description": "Those that are done too."}),
        result_of(list="string", run="string", todos="array"),
    ),
    work_tool(
        "lock_todo",
        "Lock a todo for yourself, so that no other client works on it; without an id the oldest "
        "open one. With its fence it extends your lock.",
        import_later("todos", "lock_todo"),
        arguments_of(
            list=_LIST,
            todo={**_TODO, "description": "Default: the oldest open one."},
            minutes=whole(1, 240),
            fence=_FENCE,
        ),
        _RESULT,
        is_idempotent=False,
    ),
    work_tool(
        "complete_todo",
        "Mark a todo that you have locked as done.",
        import_later("todos", "complete_todo"),
        arguments_of(
            "todo",
            "fence",
            todo=_TODO,
            fence=_FENCE,
            note=text("What was done.", 4_000),
            list=_LIST,
        ),
        _RESULT,
    ),
    work_tool(
        "release_todo",
        "Give up the lock of a todo: another client may lock it.",
        import_later("todos", "release_todo"),
        arguments_of("todo", "fence", todo=_TODO, fence=_FENCE, list=_LIST),
        _RESULT,
    ),
)
"""In the order of the list."""
