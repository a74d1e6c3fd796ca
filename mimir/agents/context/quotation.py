"""How text that nobody vouches for stands in a prompt: in blocks that it cannot close. Pure.

A fence is longer than any run of back-ticks inside, so what is inside stays inside. Nothing random is needed, so equal contents give
equal prompts.
"""

import json
import re

_TICKS = re.compile(r"`{3,}")
_HEADER = re.compile(r"^(?==== )", re.MULTILINE)


def fence_block(text: str) -> str:
    """Return a block that holds `text` and cannot be closed by it.

    A line that looks like one of the engine's `=== …` headers is set in by a blank; quotes are compared with white space collapsed, so
    it can still be quoted.
    """
    longest = max((len(run) for run in _TICKS.findall(text)), default=2)
    ticks = "`" * (longest + 1)
    body = _HEADER.sub(" ", text)
    end = "" if body.endswith("\n") else "\n"
    return f"{ticks}text\n{body}{end}{ticks}"


def header(words: str) -> str:
    """Return the engine's line above a block, such as `=== source check:unit ===`."""
    return f"=== {one_line(words)} ==="


def verbatim(text: str) -> str:
    """Return a task's prompt between marks, byte for byte: it is what is asked for, so nothing in it may change."""
    return f"<task>\n{text}\n</task>"


def one_line(text: str) -> str:
    """Return a text as one line: a title, a criterion, an issue; white space collapsed."""
    return " ".join(text.split())


def path(name: str) -> str:
    """Return a path as it can stand in a line: as it is, or in JSON's quotes if it holds what would break the line."""
    return name if name.isprintable() and name == one_line(name) else json.dumps(name)


def quote_argument(name: str) -> str:
    """Return a path or an id as a tool's argument is written."""
    return json.dumps(name, ensure_ascii=False)


def printable(text: str) -> str:
    """Return a text that can be encoded: bytes that were no UTF-8 are written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
