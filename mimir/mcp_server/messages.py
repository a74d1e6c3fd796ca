"""Answers on the wire: results of tools, and errors in the words of mimir."""

import json
import sys
from collections.abc import Mapping

from mcp_types import CallToolResult, TextContent

from mimir.errors import LimitError, MimirError
from mimir.mcp_server.project_access import hide_paths
from mimir.mcp_server.tools.tool_values import IncomingCall, ToolAnswer

MAX_ERROR_CHARS = 2_000


def to_result(answer: ToolAnswer) -> CallToolResult:
    """Return an answer as structured content, and as one text with the same data."""
    text = json.dumps(answer.content, ensure_ascii=False, default=str)
    # Values that JSON lacks become text in both forms.
    content = json.loads(text)
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=content,
        is_error=answer.is_error,
    )


def describe_error(error: Exception, call: IncomingCall) -> ToolAnswer:
    """Return problem, reason and next step of an error, without local paths."""
    content = {
        name: hide_paths(text, call.project.directory)[:MAX_ERROR_CHARS]
        for name, text in _parts(error).items()
        if text
    }
    return ToolAnswer(content=content, is_error=True)


def _parts(error: Exception) -> Mapping[str, str]:
    match error:
        case LimitError():
            step = error.next_step or ""
            return {"refused": error.rule, "problem": str(error), "next": step}
        case MimirError():
            problem, _, reason = str(error).strip().partition("\n")
            return {"problem": problem, "reason": reason, "next": error.next_step or ""}
        case TimeoutError():
            return {
                "problem": "The command did not create a run in time.",
                "next": "Call status to see whether it did later.",
            }
        case OSError():
            return {"problem": f"The system reports: {error.strerror or type(error).__name__}."}
        case _:
            # The text of an unknown error may hold paths and words of a library.
            return {"problem": f"mimir has a bug: {type(error).__name__}."}


def log(event: str, **values: object) -> None:
    """Write one JSON line to standard error."""
    print(json.dumps({"event": event, **values}, default=str), file=sys.stderr, flush=True)  # noqa: T201  the log of the server
