"""Answers on the wire: results of tools, and errors in the words of mimir."""

import json
import logging
import sys
from collections.abc import Mapping
from typing import Literal

from mcp_types import CallToolResult, TextContent

from mimir.domain.json_value import as_object
from mimir.errors import LimitError, MimirError
from mimir.mcp_server.project_access import hide_paths
from mimir.mcp_server.tools.tool_values import IncomingCall, ToolAnswer

MAX_ERROR_CHARS = 2_000
_LOGGER = logging.getLogger("mimir.mcp")


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


Level = Literal["debug", "info", "warning", "error"]


class _JsonLines(logging.Formatter):
    """Form of the log: one JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        # The place, not the text: a text of a library may hold secrets.
        is_own = record.name == _LOGGER.name
        event = record.msg if is_own else f"{record.name}:{record.lineno}"
        values: Mapping[str, object] = as_object(record.args) if is_own else {}
        shown = {"level": record.levelname.lower(), "event": event, **values}
        return json.dumps(shown, default=str)


def start_log(level: str) -> None:
    """Write lines of this level and above to standard error; errors alone of libraries."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    logging.basicConfig(level=logging.ERROR, handlers=[handler], force=True)
    _LOGGER.setLevel(level.upper())


def log(event: str, level: Level = "info", **values: object) -> None:
    """Write one JSON line to standard error."""
    _LOGGER.log(logging.getLevelNamesMapping()[level.upper()], event, values)
